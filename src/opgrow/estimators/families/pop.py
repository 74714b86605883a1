"""POP, POPFast, POPMemO and POPMemH as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...growth import methods
from ..classifier import GrowingClassifier
from ..documentation import documentation
from ..registry import listed
from .layers import TEXTS, LayerEstimator
from .remembering_layers import RememberingClassifier, RememberingRegressor
from .searching_layers import SearchingClassifier, SearchingRegressor

__all__ = [
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
_POP_TEXTS = TEXTS | {
    "loss": """{"auto", "mse", "cross_entropy"} or callable
        The loss that training minimises. "auto" is "mse": the outputs are activated neurons, and no logits.
        For their sake, regression scales its targets to [-0.8, 0.8].""",
}
_SUMMARIES = {
    "POP": "Progressive operational perceptrons: GOP neurons in hidden layers and head, operators by search.",
    "POPFast": "POP with a linear head, which needs a quarter of the search.",
    "POPMemO": "POPFast whose head also sees a projection of the last layer's inputs.",
    "POPMemH": "POPFast whose layers also see a projection of the inputs of the layer before.",
}


def _text(name: str, base: type[LayerEstimator], texts: Mapping[str, str] = TEXTS) -> str:
    kind = "Classifier" if issubclass(base, GrowingClassifier) else "Regressor"
    quick = 'widths=[10], operators=[("harmonic", "sum", "tanh")]'
    return documentation(_SUMMARIES[name], name + kind, base.__init__, quick, texts)


@listed
class POPClassifier(SearchingClassifier):
    __doc__ = _text("POP", SearchingClassifier, _POP_TEXTS)
    _method = methods.POP


@listed
class POPFastClassifier(SearchingClassifier):
    __doc__ = _text("POPFast", SearchingClassifier)
    _method = methods.POPFAST


@listed
class POPMemOClassifier(RememberingClassifier):
    __doc__ = _text("POPMemO", RememberingClassifier)
    _method = methods.POPMEMO


@listed
class POPMemHClassifier(RememberingClassifier):
    __doc__ = _text("POPMemH", RememberingClassifier)
    _method = methods.POPMEMH


@listed
class POPRegressor(SearchingRegressor):
    __doc__ = _text("POP", SearchingRegressor, _POP_TEXTS)
    _method = methods.POP

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        center, spread = super()._target_constants(target, weight)
        farthest = np.abs((target - center) / spread).max(axis=0)
        return center, spread * np.maximum(farthest / _REACH, 1.0)


@listed
class POPFastRegressor(SearchingRegressor):
    __doc__ = _text("POPFast", SearchingRegressor)
    _method = methods.POPFAST


@listed
class POPMemORegressor(RememberingRegressor):
    __doc__ = _text("POPMemO", RememberingRegressor)
    _method = methods.POPMEMO


@listed
class POPMemHRegressor(RememberingRegressor):
    __doc__ = _text("POPMemH", RememberingRegressor)
    _method = methods.POPMEMH
