"""The parameters that HeMLGOP, HoMLGOP, HeMLRN and HoMLRN share, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from ..growth.methods.hemlgop import BlockSettings
from ..rows.problem import Problem
from ..training.scores import Loss
from ..training.settings import Optimizer
from .base import GrowingEstimator, NetworkSize
from .block_settings import fill_in, translate
from .classifier import GrowingClassifier
from .listeners import Callback
from .parameters import ClassWeight, Folder, Operators, RandomState
from .presets import deepest, n_networks, student_follows, student_size
from .regressor import GrowingRegressor

__all__ = ["BlockClassifier", "BlockEstimator", "BlockRegressor"]


class BlockEstimator(GrowingEstimator[BlockSettings]):
    """The parameters of the family and what they mean."""

    def __init__(
        self,
        *,
        preset: str | None = "balanced",
        n_min: int | str = "auto",
        n_step: int | str = "auto",
        max_neurons: int | str = "auto",
        max_layers: int | str = "auto",
        n_estimators: int | str = "auto",
        distill: int | str | None = "auto",
        block_threshold: float = 1e-4,
        layer_threshold: float = 1e-4,
        ridge: str | float | Sequence[float] = "auto",
        operators: Operators = "default",
        weight_range: str | float | Sequence[float] = "auto",
        n_draws: int = 1,
        share_draws: bool = True,
        search_score: str = "loo",
        tune_perceptron: str | bool = "auto",
        criterion: str = "auto",
        loss: Loss = "auto",
        learning_rates: Sequence[float] = (0.01, 0.001, 0.0001),
        epochs: Sequence[int] = (40, 40, 40),
        patience: int | None = 20,
        batch_size: int | str = "auto",
        dropout: float | Sequence[float] = (0.3, 0.0),
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
        memory_limit: int | str | None = None,
        max_parameters: int | None = None,
        max_seconds: float | None = None,
        checkpoint_dir: Folder = None,
        checkpoint_seconds: float = 60.0,
        callbacks: Sequence[Callback] | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.preset = preset
        self.n_min = n_min
        self.n_step = n_step
        self.max_neurons = max_neurons
        self.max_layers = max_layers
        self.n_estimators = n_estimators
        self.distill = distill
        self.block_threshold = block_threshold
        self.layer_threshold = layer_threshold
        self.ridge = ridge
        self.operators = operators
        self.weight_range = weight_range
        self.n_draws = n_draws
        self.share_draws = share_draws
        self.search_score = search_score
        self.tune_perceptron = tune_perceptron
        self.criterion = criterion
        self.loss = loss
        self.learning_rates = learning_rates
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.weight_decay = weight_decay
        self.max_norm = max_norm
        self.optimizer = optimizer
        self.fine_tune_epochs = fine_tune_epochs
        self.fine_tune_learning_rate = fine_tune_learning_rate
        self.validation_fraction = validation_fraction
        self.standardize = standardize
        self.device = device
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.max_parameters = max_parameters
        self.max_seconds = max_seconds
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_seconds = checkpoint_seconds
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state

    @classmethod
    def paper(cls, scale: str = "small", **changes: Any) -> Self:
        """The settings of the paper's experiments.

        What the paper does not say (range of the weights, batch size, optimiser, loss) is taken from its
        authors' later library or appendix: weights in [-2 pi, 2 pi], batches of 32, Adam, squared error.

        Parameters
        ----------
        scale : {"small", "large"}
            The paper's small problems (below 2,000 samples: no validation data) or its larger ones (a
            quarter of the training data validates, inputs are deep features with dropout).
        **changes
            Parameters to set differently; the paper selected ``ridge`` from 0.1, 1, 10, ``dropout`` from
            0.1, 0.3, 0.5 and either ``weight_decay=1e-4`` or ``max_norm`` from 1, 2, 3.
        """
        settings: dict[str, Any] = {
            "preset": None,
            "n_min": 40,
            "n_step": 20,
            "max_neurons": 200,
            "n_estimators": 1,
            "distill": None,
            "operators": "paper",
            "ridge": 1.0,
            "weight_range": 2 * np.pi,
            "share_draws": False,
            "search_score": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "criterion": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "loss": "mse",
            "epochs": (20, 40, 40),
            "batch_size": 32,
            "dropout": 0.3,
            "weight_decay": 1e-4,
            "max_layers": 8,
            "patience": None,
            "tune_perceptron": False,
            "validation_fraction": 0.0,
        }
        if scale == "large":
            settings |= {
                "learning_rates": (0.01, 0.005, 0.001, 0.0005, 0.0001),
                "epochs": (100,) * 5,
                "input_dropout": 0.2,
                "validation_fraction": 0.25,
            }
        elif scale != "small":
            raise ValueError(f"scale must be 'small' or 'large', got {scale!r}")
        return cls(**(settings | changes))

    def _n_networks(self, n_rows: int) -> int:
        return n_networks(self, n_rows)

    def _member(self, settings: BlockSettings, number: int, n_networks: int) -> BlockSettings:
        """Networks of an average take the values of dropout in turn, where a single one tries them all."""
        if n_networks == 1:
            return replace(settings, max_layers=deepest(self, 1))
        dropout = settings.dropouts[number % len(settings.dropouts)]
        return replace(settings, dropouts=(dropout,), tuning=replace(settings.tuning, dropout=dropout))

    def _student_follows(self, max_parameters: int | None) -> bool:
        return student_follows(self, max_parameters)

    def _student(self, settings: BlockSettings, teacher: NetworkSize) -> BlockSettings | None:
        size = student_size(self, teacher, settings.max_parameters)
        if size is None:
            return None
        tuning = replace(settings.tuning, dropout=0.0, input_dropout=0.0)
        return replace(settings, tuning=tuning, dropouts=(0.0,), n_min=size, max_neurons=size, max_layers=1)

    def _settings(self, classification: bool) -> BlockSettings:
        return translate(self, classification)

    def _complete(self, settings: BlockSettings, problem: Problem) -> BlockSettings:
        return fill_in(self, settings, problem)


class BlockClassifier(GrowingClassifier[BlockSettings], BlockEstimator):
    """The classifiers of the family."""

    def __init__(
        self,
        *,
        preset: str | None = "balanced",
        n_min: int | str = "auto",
        n_step: int | str = "auto",
        max_neurons: int | str = "auto",
        max_layers: int | str = "auto",
        n_estimators: int | str = "auto",
        distill: int | str | None = "auto",
        block_threshold: float = 1e-4,
        layer_threshold: float = 1e-4,
        ridge: str | float | Sequence[float] = "auto",
        operators: Operators = "default",
        weight_range: str | float | Sequence[float] = "auto",
        n_draws: int = 1,
        share_draws: bool = True,
        search_score: str = "loo",
        tune_perceptron: str | bool = "auto",
        criterion: str = "auto",
        loss: Loss = "auto",
        learning_rates: Sequence[float] = (0.01, 0.001, 0.0001),
        epochs: Sequence[int] = (40, 40, 40),
        patience: int | None = 20,
        batch_size: int | str = "auto",
        dropout: float | Sequence[float] = (0.3, 0.0),
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
        memory_limit: int | str | None = None,
        max_parameters: int | None = None,
        max_seconds: float | None = None,
        checkpoint_dir: Folder = None,
        checkpoint_seconds: float = 60.0,
        callbacks: Sequence[Callback] | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            preset=preset,
            n_min=n_min,
            n_step=n_step,
            max_neurons=max_neurons,
            max_layers=max_layers,
            n_estimators=n_estimators,
            distill=distill,
            block_threshold=block_threshold,
            layer_threshold=layer_threshold,
            ridge=ridge,
            operators=operators,
            weight_range=weight_range,
            n_draws=n_draws,
            share_draws=share_draws,
            search_score=search_score,
            tune_perceptron=tune_perceptron,
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
            memory_limit=memory_limit,
            max_parameters=max_parameters,
            max_seconds=max_seconds,
            checkpoint_dir=checkpoint_dir,
            checkpoint_seconds=checkpoint_seconds,
            callbacks=callbacks,
            verbose=verbose,
            random_state=random_state,
        )
        self.class_weight = class_weight


class BlockRegressor(GrowingRegressor[BlockSettings], BlockEstimator):
    """The regressors of the family."""
