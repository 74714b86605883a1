"""The parameters of POP and POPFast, which search operators."""

from __future__ import annotations

from ...growth.methods.pop import POPSettings
from ...operators import OperatorSet, library
from ..classifier import GrowingClassifier
from ..parameter_groups import RunParameters, declares_parameters
from ..parameters import Operators
from .layers import LayerEstimator, LayerParameters, LayerRegressor

__all__ = ["SearchParameters", "SearchingClassifier", "SearchingRegressor"]


@declares_parameters
class SearchParameters(LayerParameters):
    """What methods have that search operators."""

    operators: Operators = "default"

    def _operator_sets(self) -> tuple[OperatorSet, ...]:
        return tuple(library(self.operators))


@declares_parameters
class SearchingClassifier(RunParameters, GrowingClassifier[POPSettings], LayerEstimator, SearchParameters):
    """Classifiers that search operators."""


@declares_parameters
class SearchingRegressor(RunParameters, LayerRegressor, LayerEstimator, SearchParameters):
    """Regressors that search operators."""
