"""HeMLGOP, HoMLGOP, HeMLRN and HoMLRN as scikit-learn estimators."""

from __future__ import annotations

from ...growth import methods
from ..classifier import GrowingClassifier
from ..documentation import documentation
from ..registry import listed
from .blocks import BlockClassifier, BlockEstimator, BlockRegressor

__all__ = [
    "HeMLGOPClassifier",
    "HeMLGOPRegressor",
    "HeMLRNClassifier",
    "HeMLRNRegressor",
    "HoMLGOPClassifier",
    "HoMLGOPRegressor",
    "HoMLRNClassifier",
    "HoMLRNRegressor",
]

_SUMMARIES = {
    "HeMLGOP": "Heterogeneous multilayer GOP network: every block searches its operators and is tuned.",
    "HoMLGOP": "Homogeneous layers of tuned GOP blocks: a layer's first block chooses the operators.",
    "HeMLRN": "Heterogeneous randomised network: operators searched for every block, weights left random.",
    "HoMLRN": "Homogeneous randomised network: operators searched once a layer, weights left random.",
}
_TEXTS = {
    "n_min, n_step": """int or "auto"
        Neurons of a layer's first block and of every further block; "auto" is the preset's.""",
    "max_neurons, max_layers": """int or "auto"
        Bounds on the width of a layer and on the depth. "auto" is a width of 200, and a depth of 2, or 1
        where networks are averaged.""",
    "dropout": """float or sequence of float
        Share of a block's features that are left out at random in tuning. Of several values, networks that
        are averaged take one each, in turn; a single network tries all of them on its first block.""",
}


def _text(name: str, base: type[BlockEstimator]) -> str:
    kind = "Classifier" if issubclass(base, GrowingClassifier) else "Regressor"
    return documentation(_SUMMARIES[name], name + kind, base.__init__, "n_min=10, n_step=5", _TEXTS)


@listed
class HeMLGOPClassifier(BlockClassifier):
    __doc__ = _text("HeMLGOP", BlockClassifier)
    _method = methods.HEMLGOP


@listed
class HoMLGOPClassifier(BlockClassifier):
    __doc__ = _text("HoMLGOP", BlockClassifier)
    _method = methods.HOMLGOP


@listed
class HeMLRNClassifier(BlockClassifier):
    __doc__ = _text("HeMLRN", BlockClassifier)
    _method = methods.HEMLRN


@listed
class HoMLRNClassifier(BlockClassifier):
    __doc__ = _text("HoMLRN", BlockClassifier)
    _method = methods.HOMLRN


@listed
class HeMLGOPRegressor(BlockRegressor):
    __doc__ = _text("HeMLGOP", BlockRegressor)
    _method = methods.HEMLGOP


@listed
class HoMLGOPRegressor(BlockRegressor):
    __doc__ = _text("HoMLGOP", BlockRegressor)
    _method = methods.HOMLGOP


@listed
class HeMLRNRegressor(BlockRegressor):
    __doc__ = _text("HeMLRN", BlockRegressor)
    _method = methods.HEMLRN


@listed
class HoMLRNRegressor(BlockRegressor):
    __doc__ = _text("HoMLRN", BlockRegressor)
    _method = methods.HOMLRN
