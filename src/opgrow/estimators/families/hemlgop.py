"""HeMLGOP, HoMLGOP, HeMLRN and HoMLRN as scikit-learn estimators."""

from __future__ import annotations

from ...growth import methods
from ..documentation import documented
from ..registry import listed
from .blocks import BlockClassifier, BlockRegressor

#: What the examples set so that they are quick.
_QUICK = "n_min=10, n_step=5"
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
        Bounds on the width of a layer and on the depth. "auto" is a width of 400 and a depth of 3.""",
    "fine_tune_epochs, fine_tune_learning_rate": """int or "auto", and float
        Final tuning of the whole network, kept only if the score improves. "auto" is 60 epochs for classes
        and 120 for numbers; fewer where these would see more than 960,000 rows, and at least 20.""",
    "dropout": """float or sequence of float
        Share of a block's features that are left out at random in tuning. Of several values, networks that
        are averaged take one each, in turn; a single network tries all of them on its first block.""",
}


@listed
@documented(_SUMMARIES["HeMLGOP"], _QUICK, _TEXTS)
class HeMLGOPClassifier(BlockClassifier):
    _method = methods.HEMLGOP


@listed
@documented(_SUMMARIES["HoMLGOP"], _QUICK, _TEXTS)
class HoMLGOPClassifier(BlockClassifier):
    _method = methods.HOMLGOP


@listed
@documented(_SUMMARIES["HeMLRN"], _QUICK, _TEXTS)
class HeMLRNClassifier(BlockClassifier):
    _method = methods.HEMLRN


@listed
@documented(_SUMMARIES["HoMLRN"], _QUICK, _TEXTS)
class HoMLRNClassifier(BlockClassifier):
    _method = methods.HOMLRN


@listed
@documented(_SUMMARIES["HeMLGOP"], _QUICK, _TEXTS)
class HeMLGOPRegressor(BlockRegressor):
    _method = methods.HEMLGOP


@listed
@documented(_SUMMARIES["HoMLGOP"], _QUICK, _TEXTS)
class HoMLGOPRegressor(BlockRegressor):
    _method = methods.HOMLGOP


@listed
@documented(_SUMMARIES["HeMLRN"], _QUICK, _TEXTS)
class HeMLRNRegressor(BlockRegressor):
    _method = methods.HEMLRN


@listed
@documented(_SUMMARIES["HoMLRN"], _QUICK, _TEXTS)
class HoMLRNRegressor(BlockRegressor):
    _method = methods.HOMLRN
