"""PMLP as scikit-learn estimators: the POP family's growth of perceptrons, with nothing to search."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..common.checks import check_choice
from ..growth import methods
from ..growth.methods.pop import POPSettings
from ..operators import OperatorSet, registered
from ..training.scores import Loss
from ..training.settings import Optimizer
from .classifier import GrowingClassifier
from .documentation import documentation
from .layers import TEXTS, LayerEstimator, LayerRegressor
from .listeners import Callback
from .parameters import ClassWeight, Folder, RandomState
from .registry import listed

__all__ = ["PMLPClassifier", "PMLPRegressor"]


class PerceptronEstimator(LayerEstimator):
    """The parameters of PMLP and what they mean."""

    def __init__(
        self,
        *,
        widths: Sequence[int] = (40, 40),
        layer_threshold: float = 1e-4,
        target: float | None = None,
        activation: str = "sigmoid",
        weight_range: str | float = "auto",
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
        self.activation = activation

    def _operator_sets(self) -> tuple[OperatorSet, ...]:
        check_choice("activation", self.activation, registered("activation"))
        return (OperatorSet("multiplication", "sum", self.activation),)


_SUMMARY = "Progressive multilayer perceptron: layer after layer of perceptrons, trained one at a time."


def _text(name: str, init: Callable[..., None]) -> str:
    return documentation(_SUMMARY, name, init, "widths=[10]", TEXTS)


class _Classifier(GrowingClassifier[POPSettings], PerceptronEstimator):
    def __init__(
        self,
        *,
        widths: Sequence[int] = (40, 40),
        layer_threshold: float = 1e-4,
        target: float | None = None,
        activation: str = "sigmoid",
        weight_range: str | float = "auto",
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
            activation=activation,
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
        self.class_weight = class_weight


@listed
class PMLPClassifier(_Classifier):
    __doc__ = _text("PMLPClassifier", _Classifier.__init__)
    _method = methods.PMLP


@listed
class PMLPRegressor(LayerRegressor, PerceptronEstimator):
    __doc__ = _text("PMLPRegressor", PerceptronEstimator.__init__)
    _method = methods.PMLP
