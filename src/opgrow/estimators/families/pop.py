"""POP, POPFast, POPMemO and POPMemH as scikit-learn estimators."""

from __future__ import annotations

import numpy as np

from ...growth import methods
from ..documentation import documented
from ..registry import listed
from .layers import TEXTS
from .remembering_layers import RememberingClassifier, RememberingRegressor
from .searching_layers import SearchingClassifier, SearchingRegressor

#: Farthest target from the mean for POP's regression. No activation of the paper has values below -1, and
#: those that have values on both sides of 0 only creep towards it.
_REACH = 0.8
_POP_TEXTS = TEXTS | {
    "loss": """{"auto", "mse", "cross_entropy"} or callable
        The loss that training minimises. "auto" is "mse": the outputs are activated neurons, and no logits.
        For their sake, regression scales its targets to [-0.8, 0.8].""",
}
#: What the examples set so that they are quick.
_QUICK = 'widths=[10], operators=[("harmonic", "sum", "tanh")]'
_SUMMARIES = {
    "POP": "Progressive operational perceptrons: GOP neurons in hidden layers and head, operators by search.",
    "POPFast": "POP with a linear head, which needs a quarter of the search.",
    "POPMemO": "POPFast whose head also sees a projection of the last layer's inputs.",
    "POPMemH": "POPFast whose layers also see a projection of the inputs of the layer before.",
}


@listed
@documented(_SUMMARIES["POP"], _QUICK, _POP_TEXTS)
class POPClassifier(SearchingClassifier):
    _method = methods.POP


@listed
@documented(_SUMMARIES["POPFast"], _QUICK, TEXTS)
class POPFastClassifier(SearchingClassifier):
    _method = methods.POPFAST


@listed
@documented(_SUMMARIES["POPMemO"], _QUICK, TEXTS)
class POPMemOClassifier(RememberingClassifier):
    _method = methods.POPMEMO


@listed
@documented(_SUMMARIES["POPMemH"], _QUICK, TEXTS)
class POPMemHClassifier(RememberingClassifier):
    _method = methods.POPMEMH


@listed
@documented(_SUMMARIES["POP"], _QUICK, _POP_TEXTS)
class POPRegressor(SearchingRegressor):
    _method = methods.POP

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        center, spread = super()._target_constants(target, weight)
        farthest = np.abs((target - center) / spread).max(axis=0)
        return center, spread * np.maximum(farthest / _REACH, 1.0)


@listed
@documented(_SUMMARIES["POPFast"], _QUICK, TEXTS)
class POPFastRegressor(SearchingRegressor):
    _method = methods.POPFAST


@listed
@documented(_SUMMARIES["POPMemO"], _QUICK, TEXTS)
class POPMemORegressor(RememberingRegressor):
    _method = methods.POPMEMO


@listed
@documented(_SUMMARIES["POPMemH"], _QUICK, TEXTS)
class POPMemHRegressor(RememberingRegressor):
    _method = methods.POPMEMH
