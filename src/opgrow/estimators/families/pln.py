"""PLN as scikit-learn estimators."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...common.checks import check_integer, check_number
from ...growth import methods
from ...growth.methods.pln import PLNSettings
from ..classifier import GrowingClassifier
from ..documentation import documented
from ..parameter_groups import RunParameters, declares_parameters
from ..registry import listed
from ..regressor import GrowingRegressor
from .closed_form import ClosedFormEstimator

__all__ = ["PLNClassifier", "PLNRegressor"]


@declares_parameters
class PLNEstimator(ClosedFormEstimator[PLNSettings]):
    """The parameters of PLN and what they mean."""

    _of_the_paper: ClassVar[dict[str, Any]] = {"max_layers": 8, "layer_threshold": 1e-4, "alpha": 1.0}
    n_min: int = 40
    n_step: int = 20
    max_neurons: int = 300
    max_layers: int = 8
    block_threshold: float = 1e-4
    layer_threshold: float = 1e-4
    ridge: float = 1.0
    alpha: float = 1.0
    mu: float = 1.0
    admm_iterations: int = 500
    criterion: str = "auto"
    target: float | None = None

    def _settings(self, classification: bool) -> PLNSettings:
        for name in ("n_min", "n_step", "max_neurons", "max_layers", "admm_iterations"):
            check_integer(name, getattr(self, name), 1)
        for name in ("block_threshold", "layer_threshold"):
            check_number(name, getattr(self, name), -np.inf, np.inf)
        for name in ("ridge", "alpha", "mu"):
            check_number(name, getattr(self, name), 1e-12, 1e12)
        self._check_target()
        return PLNSettings(
            **self._shared_settings(classification),
            max_layers=int(self.max_layers),
            layer_threshold=float(self.layer_threshold),
            ridge=float(self.ridge),
            alpha=float(self.alpha),
        )


_SUMMARY = """Progressive learning network: layers of random neurons on top of the prediction before.

    Targets are centred by their weighted mean, which becomes the bias of the output; inputs are
    standardised. All weights are random or found in closed form."""
_TEXTS = {
    "n_min, n_step": """int
        Neurons that a layer starts with, and random neurons that each step adds. Two neurons for every
        output carry the prediction before on and count; beside them, a layer starts with ``n_step``
        random ones at least.""",
    "max_neurons, max_layers": """int
        Bounds on the width of a layer and on the depth. Where the two neurons for every output alone fill
        ``max_neurons``, a layer has ``n_step`` random ones beside them all the same.""",
    "ridge": """float
        Regularisation of the linear least squares that the first layer starts from.""",
    "alpha": """float
        Bound on the norm of the output weights, as a multiple of the norm that it takes to carry the
        prediction before on. From 1 on, the training error never rises from layer to layer.""",
    "mu, admm_iterations": """float and int
        Parameter that the solver of the output weights (ADMM) starts with, and its iterations at most. As
        the solver adapts the parameter, it decides how soon the solution is found and not which.""",
}


@listed
@documented(_SUMMARY, "n_min=20, n_step=10", _TEXTS)
@declares_parameters
class PLNClassifier(RunParameters, GrowingClassifier[PLNSettings], PLNEstimator):
    _method = methods.PLN


@listed
@documented(_SUMMARY, "n_min=20, n_step=10", _TEXTS)
@declares_parameters
class PLNRegressor(RunParameters, GrowingRegressor[PLNSettings], PLNEstimator):
    _method = methods.PLN
