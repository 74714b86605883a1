"""PMLP as scikit-learn estimators: the POP family's growth of perceptrons, with nothing to search."""

from __future__ import annotations

from ...common.checks import check_choice
from ...growth import methods
from ...growth.methods.pop import POPSettings
from ...operators import OperatorSet, registered
from ..classifier import GrowingClassifier
from ..documentation import documented
from ..parameter_groups import RunParameters, declares_parameters
from ..registry import listed
from .layers import TEXTS, LayerEstimator, LayerParameters, LayerRegressor

__all__ = ["PMLPClassifier", "PMLPRegressor"]


@declares_parameters
class PerceptronParameters(LayerParameters):
    """The parameters that only PMLP has."""

    activation: str = "sigmoid"

    def _operator_sets(self) -> tuple[OperatorSet, ...]:
        check_choice("activation", self.activation, registered("activation"))
        return (OperatorSet("multiplication", "sum", self.activation),)


_SUMMARY = "Progressive multilayer perceptron: layer after layer of perceptrons, trained one at a time."


@listed
@documented(_SUMMARY, "widths=[10]", TEXTS)
@declares_parameters
class PMLPClassifier(RunParameters, GrowingClassifier[POPSettings], LayerEstimator, PerceptronParameters):
    _method = methods.PMLP


@listed
@documented(_SUMMARY, "widths=[10]", TEXTS)
@declares_parameters
class PMLPRegressor(RunParameters, LayerRegressor, LayerEstimator, PerceptronParameters):
    _method = methods.PMLP
