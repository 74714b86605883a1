"""The scikit-learn faces of the methods, a file for each family; `base` is what all of them share."""

from .bls import BLSClassifier, BLSRegressor
from .hemlgop import (
    HeMLGOPClassifier,
    HeMLGOPRegressor,
    HeMLRNClassifier,
    HeMLRNRegressor,
    HoMLGOPClassifier,
    HoMLGOPRegressor,
    HoMLRNClassifier,
    HoMLRNRegressor,
)
from .pln import PLNClassifier, PLNRegressor

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
]
