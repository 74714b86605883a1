"""POP, POPFast, POPMemO, POPMemH and PMLP as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from ..common.checks import check_choice, check_number, is_auto, is_integer, is_listed, is_number
from ..growth import methods
from ..growth.loop import Problem
from ..growth.methods.pop import POPMethod, POPSettings
from ..growth.model import criterion_of
from ..operators import OperatorSet, library, registered
from .base import (
    ClassifierFace,
    GrowingEstimator,
    RegressorFace,
    with_class_weight,
    with_parameters,
)
from .listeners import Callback
from .parameters import documentation, n_threads
from .translation import fine_tuning_of, loss_of, sized_of, tuning_of

__all__ = [
    "PMLPClassifier",
    "PMLPRegressor",
    "POPClassifier",
    "POPFastClassifier",
    "POPFastRegressor",
    "POPMemHClassifier",
    "POPMemHRegressor",
    "POPMemOClassifier",
    "POPMemORegressor",
    "POPRegressor",
]


#: Farthest target from the mean for POP's regression. No activation of the paper has values below -1, and
#: those that have values on both sides of 0 only creep towards it.
_REACH = 0.8


class LayerEstimator(GrowingEstimator):
    """The parameters that all methods of the family have, and what they mean."""

    _method: ClassVar[POPMethod]

    def __init__(
        self,
        *,
        widths: Sequence[int] = (40, 40),
        layer_threshold: float = 1e-4,
        target: float | None = None,
        weight_range: str | float = "auto",
        criterion: str = "auto",
        loss: Any = "auto",
        learning_rates: Sequence[float] = (0.01, 0.001, 0.0001),
        epochs: Sequence[int] = (20, 40, 40),
        patience: int | None = 5,
        batch_size: int | str = "auto",
        dropout: float = 0.1,
        input_dropout: float = 0.0,
        weight_decay: str | float = "auto",
        max_norm: float | None = None,
        optimizer: Any = "adam",
        fine_tune_epochs: int = 200,
        fine_tune_learning_rate: float = 5e-5,
        validation_fraction: float = 0.2,
        standardize: bool = True,
        device: str = "auto",
        n_jobs: int | None = None,
        max_parameters: int | None = None,
        max_seconds: float | None = None,
        checkpoint_dir: Any = None,
        checkpoint_seconds: float = 60.0,
        callbacks: Sequence[Callback] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        for name, value in locals().items():
            if name != "self":
                setattr(self, name, value)

    @classmethod
    def paper(cls, scale: str = "small", **changes: Any) -> Self:
        """The settings of the paper's experiments.

        Parameters
        ----------
        scale : {"small", "large"}
            The paper's small problems (below 2,000 samples: four layers at most, no validation data) or its
            larger ones (eight layers at most, a quarter of the training data validates, inputs are deep
            features with dropout). Every layer has 200 neurons.
        **changes
            Parameters to set differently; the paper selected ``dropout`` from 0.1, 0.3, 0.5 and either
            ``weight_decay=1e-4`` or ``max_norm`` from 1, 2, 3.
        """
        settings: dict[str, Any] = {
            "widths": (200,) * 4,
            "criterion": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "loss": "mse",
            "dropout": 0.3,
            "weight_decay": 1e-4,
            "patience": None,
            "validation_fraction": 0.0,
        }
        if scale == "large":
            settings |= {
                "widths": (200,) * 8,
                "learning_rates": (0.01, 0.005, 0.001, 0.0005, 0.0001),
                "epochs": (100,) * 5,
                "input_dropout": 0.2,
                "validation_fraction": 0.25,
            }
        elif scale != "small":
            raise ValueError(f"scale must be 'small' or 'large', got {scale!r}")
        return cls(**(settings | changes))

    # --- what the methods say ---

    def _operator_sets(self) -> tuple[OperatorSet, ...]:
        raise NotImplementedError

    def _memory_settings(self, classification: bool) -> dict[str, Any]:
        return {}

    # --- the family's parameters ---

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
        given = (self.widths,) if is_integer(self.widths) else self.widths
        if not (is_listed(given) and len(given) and all(is_integer(w) and w >= 1 for w in given)):
            raise ValueError(f"widths must be a sequence of integers of at least 1, got {self.widths!r}")
        return tuple(int(width) for width in given)


class SearchingEstimator(LayerEstimator):
    """Methods that search operators."""

    __init__ = with_parameters(LayerEstimator.__init__, "weight_range", operators="default")

    def _operator_sets(self) -> tuple[OperatorSet, ...]:
        return tuple(library(self.operators))


class RememberingEstimator(SearchingEstimator):
    """Methods with a memory."""

    __init__ = with_parameters(
        SearchingEstimator.__init__, "criterion", memory="pca", memory_energy=0.98, memory_ridge=0.1
    )

    def _memory_settings(self, classification: bool) -> dict[str, Any]:
        check_choice("memory", self.memory, ("pca", "lda") if classification else ("pca",))
        check_number("memory_energy", self.memory_energy, 1e-6, 1.0)
        check_number("memory_ridge", self.memory_ridge, 1e-12, 1e12)
        return {
            "memory": self.memory,
            "memory_energy": float(self.memory_energy),
            "memory_ridge": float(self.memory_ridge),
        }


class PerceptronEstimator(LayerEstimator):
    """PMLP, which has nothing to search."""

    __init__ = with_parameters(LayerEstimator.__init__, "weight_range", activation="sigmoid")

    def _operator_sets(self) -> tuple[OperatorSet, ...]:
        check_choice("activation", self.activation, registered("activation"))
        return (OperatorSet("multiplication", "sum", self.activation),)


_TEXTS = {
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
_POP_TEXTS = _TEXTS | {
    "loss": """{"auto", "mse", "cross_entropy"} or callable
        What training descends. "auto" is "mse": the outputs are activated neurons, and no logits. For
        their sake, regression scales its targets to [-0.8, 0.8].""",
}
_SUMMARIES = {
    "POP": "Progressive operational perceptrons: GOP neurons in hidden layers and head, operators by search.",
    "POPFast": "POP with a linear head, which needs a quarter of the search.",
    "POPMemO": "POPFast whose head also sees a projection of the last layer's inputs.",
    "POPMemH": "POPFast whose layers also see a projection of the inputs of the layer before.",
    "PMLP": "Progressive multilayer perceptron: layer after layer of perceptrons, trained one at a time.",
}


def _text(name: str, base: type[Any], texts: Mapping[str, str] = _TEXTS) -> str:
    kind = "Classifier" if issubclass(base, ClassifierFace) else "Regressor"
    quick = "widths=[10]" if name == "PMLP" else 'widths=[10], operators=[("harmonic", "sum", "tanh")]'
    return documentation(_SUMMARIES[name], name + kind, base.__init__, quick, texts)


class SearchingClassifier(ClassifierFace, SearchingEstimator):
    __init__ = with_class_weight(SearchingEstimator.__init__)


class LayerRegressor(RegressorFace):
    """Regression by training alone, which only comes near a target that is constant."""

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        center, spread = super()._target_constants(target, weight)
        negligible = 1e-6 * np.where(center == 0, 1.0, np.abs(center))
        negligible = np.maximum(negligible, np.finfo(np.float64).smallest_subnormal)
        return center, np.where((target == target[0]).all(axis=0), negligible, spread)


class SearchingRegressor(LayerRegressor, SearchingEstimator):
    pass


class RememberingClassifier(ClassifierFace, RememberingEstimator):
    __init__ = with_class_weight(RememberingEstimator.__init__)


class RememberingRegressor(LayerRegressor, RememberingEstimator):
    pass


class PerceptronClassifier(ClassifierFace, PerceptronEstimator):
    __init__ = with_class_weight(PerceptronEstimator.__init__)


class PerceptronRegressor(LayerRegressor, PerceptronEstimator):
    pass


class POPClassifier(SearchingClassifier):
    __doc__ = _text("POP", SearchingClassifier, _POP_TEXTS)
    _method = methods.POP


class POPFastClassifier(SearchingClassifier):
    __doc__ = _text("POPFast", SearchingClassifier)
    _method = methods.POPFAST


class POPMemOClassifier(RememberingClassifier):
    __doc__ = _text("POPMemO", RememberingClassifier)
    _method = methods.POPMEMO


class POPMemHClassifier(RememberingClassifier):
    __doc__ = _text("POPMemH", RememberingClassifier)
    _method = methods.POPMEMH


class PMLPClassifier(PerceptronClassifier):
    __doc__ = _text("PMLP", PerceptronClassifier)
    _method = methods.PMLP


class POPRegressor(SearchingRegressor):
    __doc__ = _text("POP", SearchingRegressor, _POP_TEXTS)
    _method = methods.POP

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        center, spread = super()._target_constants(target, weight)
        farthest = np.abs((target - center) / spread).max(axis=0)
        return center, spread * np.maximum(farthest / _REACH, 1.0)


class POPFastRegressor(SearchingRegressor):
    __doc__ = _text("POPFast", SearchingRegressor)
    _method = methods.POPFAST


class POPMemORegressor(RememberingRegressor):
    __doc__ = _text("POPMemO", RememberingRegressor)
    _method = methods.POPMEMO


class POPMemHRegressor(RememberingRegressor):
    __doc__ = _text("POPMemH", RememberingRegressor)
    _method = methods.POPMEMH


class PMLPRegressor(PerceptronRegressor):
    __doc__ = _text("PMLP", PerceptronRegressor)
    _method = methods.PMLP
