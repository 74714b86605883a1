"""The parameters that HeMLGOP, HoMLGOP, HeMLRN and HoMLRN share, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from ...growth.methods.hemlgop import BlockSettings
from ...rows.problem import Problem
from ..base import GrowingEstimator, NetworkSize
from ..classifier import GrowingClassifier
from ..parameter_groups import ChunkParameters, RunParameters, TuningParameters, declares_parameters
from ..parameters import Operators
from ..regressor import GrowingRegressor
from .block_settings import fill_in, patient, plain_sets, translate
from .paper_scales import TUNING_AS_READ, TUNING_OF_LARGE_PROBLEMS, held_out, is_large
from .presets import finds_its_size, n_networks, sizes_up_to, student_follows, student_size, widths

__all__ = ["BlockClassifier", "BlockEstimator", "BlockRegressor"]


@declares_parameters
class BlockParameters:
    """The parameters that only this family has."""

    preset: str | None = "balanced"
    n_min: int | str = "auto"
    n_step: int | str = "auto"
    max_neurons: int | str = "auto"
    max_layers: int | str = "auto"
    n_estimators: int | str = "auto"
    distill: int | str | None = "auto"
    block_threshold: float = 1e-3
    layer_threshold: float = 1e-3
    ridge: str | float | Sequence[float] = "auto"
    operators: Operators = "default"
    weight_range: str | float | Sequence[float] = "auto"
    n_draws: int = 2
    share_draws: bool = True
    focus: int | None = 2
    search_neurons: int | None = 16
    search_score: str = "loo"
    tune_perceptron: str | bool = "auto"
    growth_rows: int | None = 4096
    fine_tune_ridge: float | None = 0.1


@declares_parameters
class BlockEstimator(TuningParameters, BlockParameters, GrowingEstimator[BlockSettings]):
    """What the parameters of the family mean."""

    #: Whether networks that may be tuned as a whole grow block by block unless the former is better.
    _blocks_first: ClassVar[bool] = False
    learning_rates: str | Sequence[float] = "auto"
    epochs: Sequence[int] = (15, 15)
    patience: int | None = 8
    dropout: float | Sequence[float] = (0.3, 0.0)
    fine_tune_epochs: int | str = "auto"
    fine_tune_learning_rate: float = 0.01
    fine_tune_schedule: str = "cosine"
    fine_tune_dropout: float | None = 0.0

    @classmethod
    def paper(cls, scale: str = "small", **changes: Any) -> Self:
        """The settings of the paper's experiments.

        What the paper does not say is read so that sizes and accuracies come nearest to the printed ones
        (``opgrow bench readings``): a fifth of the rows decides on small problems, tuning ends with its last
        state, weights are in [-1, 1], batches have 128 rows, the loss is the squared error.

        Parameters
        ----------
        scale : {"small", "large"}
            The paper's small problems (below 2,000 samples) or its larger ones (a quarter of the training
            data validates, inputs are deep features with dropout).
        **changes
            Parameters to set differently; the paper selected ``dropout`` from 0.1, 0.3, 0.5 and either
            ``weight_decay=1e-4, max_norm=None`` or ``max_norm`` from 1, 2, 3. With
            ``validation_fraction=0.0`` the training rows decide.
        """
        settings: dict[str, Any] = {
            "preset": None,
            "n_min": 40,
            "n_step": 20,
            "max_neurons": 200,
            "n_estimators": 1,
            "distill": None,
            "operators": "paper",
            "ridge": (0.1, 1.0, 10.0),
            "weight_range": 1.0,
            "n_draws": 1,
            "share_draws": False,
            "focus": None,
            "search_neurons": None,
            "block_threshold": 1e-4,
            "layer_threshold": 1e-4,
            "search_score": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "criterion": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "learning_rates": (0.01, 0.001, 0.0001),
            "epochs": (20, 40, 40),
            "fine_tune_epochs": 200,
            "fine_tune_learning_rate": 5e-5,
            "fine_tune_schedule": "constant",
            "fine_tune_dropout": None,
            "max_layers": 8,
            "patience": None,
            "tune_perceptron": False,
            "growth_rows": None,
            "fine_tune_ridge": None,
            "validation_fraction": held_out(scale),
        }
        settings |= TUNING_AS_READ
        if is_large(scale):
            settings |= TUNING_OF_LARGE_PROBLEMS
        return cls(**(settings | changes))

    def _n_networks(self, n_rows: int) -> int:
        return n_networks(self, n_rows)

    def _sketch_rows(self) -> int | None:
        return self.growth_rows

    def _member(
        self, settings: BlockSettings, number: int, n_networks: int, n_rows: int
    ) -> list[BlockSettings]:
        """Networks of an average take the values of dropout in turn, where a single one tries them all.

        Two of three are tuned as a whole, and held-out rows decide how many neurons their layers have.
        """
        if n_networks == 1:
            return [settings]
        dropout = settings.dropouts[number % len(settings.dropouts)]
        tuning = replace(settings.tuning, dropout=dropout)
        settings = replace(settings, dropouts=(dropout,), tuning=tuning)
        sizes = widths(self, n_rows) if number % 3 else []
        whole = [replace(_of_size(settings, size), layer_threshold=-np.inf) for size in sizes]
        return [settings, *whole] if self._blocks_first or not whole else whole

    def _student_follows(self, max_parameters: int | None) -> bool:
        return student_follows(self, max_parameters)

    def _students(self, settings: BlockSettings, teacher: NetworkSize) -> list[list[BlockSettings]]:
        size = student_size(self, teacher, settings.max_parameters)
        if size is None:
            return []
        tuning = replace(settings.tuning, dropout=0.0, input_dropout=0.0)
        settings = replace(settings, tuning=tuning, dropouts=(0.0,), last_dropout=0.0, max_layers=1)
        if self._learns_on or not finds_its_size(self):
            return [[_of_size(settings, size)]]
        settings = patient(self, settings)
        kinds = dict.fromkeys(sets for sets in (plain_sets(settings.sets), settings.sets) if sets)
        return [[replace(_of_size(settings, n), sets=sets) for n in sizes_up_to(size)] for sets in kinds]

    def _settings(self, classification: bool) -> BlockSettings:
        return translate(self, classification)

    def _complete(self, settings: BlockSettings, problem: Problem) -> BlockSettings:
        return fill_in(self, settings, problem)


def _of_size(settings: BlockSettings, size: int) -> BlockSettings:
    """Settings of layers of one block with so many neurons."""
    return replace(settings, n_min=size, max_neurons=size)


@declares_parameters
class BlockClassifier(RunParameters, ChunkParameters, GrowingClassifier[BlockSettings], BlockEstimator):
    """The classifiers of the family."""


@declares_parameters
class BlockRegressor(RunParameters, ChunkParameters, GrowingRegressor[BlockSettings], BlockEstimator):
    """The regressors of the family: for numbers, dropout costs accuracy, and blocks are worth a trial."""

    _blocks_first = True
    dropout: float | Sequence[float] = 0.0
