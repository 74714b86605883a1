"""The parameters that POP, its variants and PMLP share, and what they mean."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from ...common.checks import check_number, is_auto, is_integer, is_listed, is_number
from ...growth.methods.pop import POPMethod, POPSettings
from ...growth.model import criterion_of
from ...operators import OperatorSet
from ...rows.problem import Problem
from ..base import GrowingEstimator
from ..parameter_groups import TuningParameters, declares_parameters
from ..parameters import n_threads
from ..regressor import GrowingRegressor
from .paper_scales import TUNING_AS_READ, TUNING_OF_LARGE_PROBLEMS, held_out, is_large
from .translation import fine_tuning_of, loss_of, sized_of, tuning_of

__all__ = ["TEXTS", "LayerEstimator", "LayerParameters", "LayerRegressor", "WeightParameters"]

#: What parameters mean in this family, where `opgrow.estimators.documentation` has no text or another one.
TEXTS = {
    "widths": """sequence of int
        Neurons of each layer; there are at most as many layers.""",
    "layer_threshold": """float
        Least relative improvement of the score by which a new layer is kept.""",
    "weight_range": """"auto" or float
        Weights start uniform in [-range, range]. "auto" is 1.5 / sqrt(inputs).""",
    "learning_rates, epochs": """sequences of float and int
        Schedule of the training of every candidate.""",
    "dropout": """float
        Dropout on hidden features.""",
    "activation": """str
        Activation of the perceptrons.""",
    "memory": """{"pca", "lda"}
        How a layer's inputs are projected: principal directions, or, for classes only, discriminant ones.""",
    "memory_energy": """float
        Share of the energy that the fewest principal directions must keep.""",
    "memory_ridge": """float
        Added to the diagonal of the matrices whose eigenvectors the directions are.""",
}


@declares_parameters
class LayerParameters:
    """The first parameters of all methods of the family, which those of a method follow."""

    widths: Sequence[int] = (40, 40)
    layer_threshold: float = 1e-4
    target: float | None = None

    @abstractmethod
    def _operator_sets(self) -> tuple[OperatorSet, ...]:
        """The operator sets to choose from."""

    def _memory_settings(self, classification: bool) -> dict[str, Any]:
        """Settings of the memory of those that have one."""
        return {}


@declares_parameters
class WeightParameters:
    """How weights are drawn."""

    weight_range: str | float = "auto"


@declares_parameters
class LayerEstimator(TuningParameters, WeightParameters, LayerParameters, GrowingEstimator[POPSettings]):
    """What the parameters mean that all methods of the family have."""

    _method: ClassVar[POPMethod]
    dropout: float = 0.1

    @classmethod
    def paper(cls, scale: str = "small", **changes: Any) -> Self:
        """The settings of the paper's experiments.

        Parameters
        ----------
        scale : {"small", "large"}
            The paper's small problems (below 2,000 samples: four layers at most, a fifth of the training
            data validates) or its larger ones (eight layers at most, a quarter validates, inputs are deep
            features with dropout). Every layer has 200 neurons. What the paper does not say is read as for
            HeMLGOP.
        **changes
            Parameters to set differently; the paper selected ``dropout`` from 0.1, 0.3, 0.5 and either
            ``weight_decay=1e-4, max_norm=None`` or ``max_norm`` from 1, 2, 3.
        """
        settings: dict[str, Any] = {
            "widths": (200,) * 4,
            "criterion": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "patience": None,
            "validation_fraction": held_out(scale),
        }
        settings |= TUNING_AS_READ
        if is_large(scale):
            settings |= TUNING_OF_LARGE_PROBLEMS | {"widths": (200,) * 8}
        return cls(**(settings | changes))

    def _settings(self, classification: bool) -> POPSettings:
        check_number("layer_threshold", self.layer_threshold, -np.inf, np.inf)
        if self.target is not None:
            check_number("target", self.target, -np.inf, np.inf, "None or ")
        if not is_auto(self.weight_range):
            check_number("weight_range", self.weight_range, 1e-12, 1e12, "'auto' or ")
        if not is_number(self.dropout) or not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be a number in [0, 1), got {self.dropout!r}")
        loss = loss_of(self, classification)
        if is_auto(self.loss) and self._method.neurons_in_head:
            loss = "mse"  # activated neurons are no logits
        threads = n_threads(self.n_jobs)
        tuning = tuning_of(self, loss, threads)
        widths = self._widths()
        return POPSettings(
            sets=self._operator_sets(),
            tuning=tuning,
            fine_tuning=fine_tuning_of(self, tuning),
            widths=widths,
            max_layers=len(widths),
            weight_range=None if is_auto(self.weight_range) else float(self.weight_range),
            criterion=criterion_of(self, classification),
            layer_threshold=float(self.layer_threshold),
            target=None if self.target is None else float(self.target),
            n_threads=threads,
            **self._memory_settings(classification),
        )

    def _complete(self, settings: POPSettings, problem: Problem) -> POPSettings:
        sized = sized_of(self, problem.n_rows)
        return replace(
            settings,
            tuning=replace(settings.tuning, **sized),
            fine_tuning=replace(settings.fine_tuning, **sized),
        )

    def _widths(self) -> tuple[int, ...]:
        widths: Any = (self.widths,) if is_integer(self.widths) else self.widths
        if not (is_listed(widths) and len(widths) and all(is_integer(w) and w >= 1 for w in widths)):
            raise ValueError(f"widths must be a sequence of integers of at least 1, got {self.widths!r}")
        return tuple(int(width) for width in widths)


class LayerRegressor(GrowingRegressor[POPSettings]):
    """Regression by training alone, which only comes near a target that is constant."""

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        center, spread = super()._target_constants(target, weight)
        negligible = 1e-6 * np.where(center == 0, 1.0, np.abs(center))
        negligible = np.maximum(negligible, np.finfo(np.float64).smallest_subnormal)
        return center, np.where((target == target[0]).all(axis=0), negligible, spread)
