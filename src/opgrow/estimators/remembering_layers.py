"""The parameters of POPMemO and POPMemH, which have a memory beside the operators that they search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..common.checks import check_choice, check_number
from ..growth.methods.pop import POPSettings
from ..training.scores import Loss
from ..training.settings import Optimizer
from .classifier import GrowingClassifier
from .layers import LayerRegressor
from .listeners import Callback
from .parameters import ClassWeight, Folder, Operators, RandomState
from .searching_layers import SearchingEstimator

__all__ = ["RememberingClassifier", "RememberingEstimator", "RememberingRegressor"]


class RememberingEstimator(SearchingEstimator):
    """Methods with a memory."""

    def __init__(
        self,
        *,
        widths: Sequence[int] = (40, 40),
        layer_threshold: float = 1e-4,
        target: float | None = None,
        operators: Operators = "default",
        weight_range: str | float = "auto",
        memory: str = "pca",
        memory_energy: float = 0.98,
        memory_ridge: float = 0.1,
        criterion: str = "auto",
        loss: Loss = "auto",
        learning_rates: Sequence[float] = (0.01, 0.001, 0.0001),
        epochs: Sequence[int] = (20, 40, 40),
        patience: int | None = 5,
        batch_size: int | str = "auto",
        dropout: float = 0.1,
        input_dropout: float = 0.0,
        weight_decay: str | float = "auto",
        max_norm: float | None = None,
        optimizer: Optimizer = "adam",
        fine_tune_epochs: int = 200,
        fine_tune_learning_rate: float = 5e-5,
        validation_fraction: float = 0.2,
        standardize: bool = True,
        device: str = "auto",
        n_jobs: int | None = None,
        max_parameters: int | None = None,
        max_seconds: float | None = None,
        checkpoint_dir: Folder = None,
        checkpoint_seconds: float = 60.0,
        callbacks: Sequence[Callback] | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            widths=widths,
            layer_threshold=layer_threshold,
            target=target,
            operators=operators,
            weight_range=weight_range,
            criterion=criterion,
            loss=loss,
            learning_rates=learning_rates,
            epochs=epochs,
            patience=patience,
            batch_size=batch_size,
            dropout=dropout,
            input_dropout=input_dropout,
            weight_decay=weight_decay,
            max_norm=max_norm,
            optimizer=optimizer,
            fine_tune_epochs=fine_tune_epochs,
            fine_tune_learning_rate=fine_tune_learning_rate,
            validation_fraction=validation_fraction,
            standardize=standardize,
            device=device,
            n_jobs=n_jobs,
            max_parameters=max_parameters,
            max_seconds=max_seconds,
            checkpoint_dir=checkpoint_dir,
            checkpoint_seconds=checkpoint_seconds,
            callbacks=callbacks,
            verbose=verbose,
            random_state=random_state,
        )
        self.memory = memory
        self.memory_energy = memory_energy
        self.memory_ridge = memory_ridge

    def _memory_settings(self, classification: bool) -> dict[str, Any]:
        check_choice("memory", self.memory, ("pca", "lda") if classification else ("pca",))
        check_number("memory_energy", self.memory_energy, 1e-6, 1.0)
        check_number("memory_ridge", self.memory_ridge, 1e-12, 1e12)
        return {
            "memory": self.memory,
            "memory_energy": float(self.memory_energy),
            "memory_ridge": float(self.memory_ridge),
        }


class RememberingClassifier(GrowingClassifier[POPSettings], RememberingEstimator):
    """Classifiers with a memory."""

    def __init__(
        self,
        *,
        widths: Sequence[int] = (40, 40),
        layer_threshold: float = 1e-4,
        target: float | None = None,
        operators: Operators = "default",
        weight_range: str | float = "auto",
        memory: str = "pca",
        memory_energy: float = 0.98,
        memory_ridge: float = 0.1,
        criterion: str = "auto",
        loss: Loss = "auto",
        learning_rates: Sequence[float] = (0.01, 0.001, 0.0001),
        epochs: Sequence[int] = (20, 40, 40),
        patience: int | None = 5,
        batch_size: int | str = "auto",
        dropout: float = 0.1,
        input_dropout: float = 0.0,
        weight_decay: str | float = "auto",
        max_norm: float | None = None,
        optimizer: Optimizer = "adam",
        fine_tune_epochs: int = 200,
        fine_tune_learning_rate: float = 5e-5,
        validation_fraction: float = 0.2,
        standardize: bool = True,
        class_weight: ClassWeight = None,
        device: str = "auto",
        n_jobs: int | None = None,
        max_parameters: int | None = None,
        max_seconds: float | None = None,
        checkpoint_dir: Folder = None,
        checkpoint_seconds: float = 60.0,
        callbacks: Sequence[Callback] | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            widths=widths,
            layer_threshold=layer_threshold,
            target=target,
            operators=operators,
            weight_range=weight_range,
            memory=memory,
            memory_energy=memory_energy,
            memory_ridge=memory_ridge,
            criterion=criterion,
            loss=loss,
            learning_rates=learning_rates,
            epochs=epochs,
            patience=patience,
            batch_size=batch_size,
            dropout=dropout,
            input_dropout=input_dropout,
            weight_decay=weight_decay,
            max_norm=max_norm,
            optimizer=optimizer,
            fine_tune_epochs=fine_tune_epochs,
            fine_tune_learning_rate=fine_tune_learning_rate,
            validation_fraction=validation_fraction,
            standardize=standardize,
            device=device,
            n_jobs=n_jobs,
            max_parameters=max_parameters,
            max_seconds=max_seconds,
            checkpoint_dir=checkpoint_dir,
            checkpoint_seconds=checkpoint_seconds,
            callbacks=callbacks,
            verbose=verbose,
            random_state=random_state,
        )
        self.class_weight = class_weight


class RememberingRegressor(LayerRegressor, RememberingEstimator):
    """Regressors with a memory."""
