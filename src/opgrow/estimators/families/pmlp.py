"""PMLP as scikit-learn estimators: the POP family's growth of perceptrons, with nothing to search."""

from __future__ import annotations

from collections.abc import Callable

from ...common.checks import check_choice
from ...growth import methods
from ...growth.methods.pop import POPSettings
from ...operators import OperatorSet, registered
from ..classifier import GrowingClassifier
from ..documentation import documentation
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


def _text(name: str, init: Callable[..., None]) -> str:
    return documentation(_SUMMARY, name, init, "widths=[10]", TEXTS)


@declares_parameters
class _Classifier(RunParameters, GrowingClassifier[POPSettings], LayerEstimator, PerceptronParameters):
    pass


@declares_parameters
class _Regressor(RunParameters, LayerRegressor, LayerEstimator, PerceptronParameters):
    pass


@listed
class PMLPClassifier(_Classifier):
    __doc__ = _text("PMLPClassifier", _Classifier.__init__)
    _method = methods.PMLP


@listed
class PMLPRegressor(_Regressor):
    __doc__ = _text("PMLPRegressor", _Regressor.__init__)
    _method = methods.PMLP
