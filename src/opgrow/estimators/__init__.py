"""The methods as scikit-learn estimators, a file for each family; `base` is what all of them share."""

from .families.bls import BLSClassifier, BLSRegressor
from .families.hemlgop import (
    HeMLGOPClassifier,
    HeMLGOPRegressor,
    HeMLRNClassifier,
    HeMLRNRegressor,
    HoMLGOPClassifier,
    HoMLGOPRegressor,
    HoMLRNClassifier,
    HoMLRNRegressor,
)
from .families.pln import PLNClassifier, PLNRegressor
from .families.pmlp import PMLPClassifier, PMLPRegressor
from .families.pop import (
    POPClassifier,
    POPFastClassifier,
    POPFastRegressor,
    POPMemHClassifier,
    POPMemHRegressor,
    POPMemOClassifier,
    POPMemORegressor,
    POPRegressor,
)

__all__ = [
    "BLSClassifier",
    "BLSRegressor",
    "HeMLGOPClassifier",
    "HeMLGOPRegressor",
    "HeMLRNClassifier",
    "HeMLRNRegressor",
    "HoMLGOPClassifier",
    "HoMLGOPRegressor",
    "HoMLRNClassifier",
    "HoMLRNRegressor",
    "PLNClassifier",
    "PLNRegressor",
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
