"""PLN as scikit-learn estimators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from ...common.checks import check_integer, check_number
from ...growth import methods
from ...growth.methods.pln import PLNSettings
from ...growth.model import criterion_of
from ...training.settings import TuningSettings
from ..base import GrowingEstimator
from ..classifier import GrowingClassifier
from ..documentation import documented
from ..parameter_groups import RunParameters, declares_parameters
from ..parameters import n_threads
from ..registry import listed
from ..regressor import GrowingRegressor
from .paper_scales import is_large

__all__ = ["PLNClassifier", "PLNRegressor"]


@declares_parameters
class PLNEstimator(GrowingEstimator[PLNSettings]):
    """The parameters of PLN and what they mean."""

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

    @classmethod
    def paper(cls, scale: str = "small", **changes: Any) -> Self:
        """The settings of the paper's experiments.

        Parameters
        ----------
        scale : {"small", "large"}
            The paper's small problems (below 2,000 samples: no validation data) or its larger ones (a
            quarter of the training data validates).
        **changes
            Parameters to set differently; the paper selected ``ridge``, ``alpha`` and ``mu`` from 0.001,
            0.01, 0.1, 1, 10, 100, 1000.
        """
        settings: dict[str, Any] = {
            "max_neurons": 300,
            "max_layers": 8,
            "block_threshold": 1e-4,
            "layer_threshold": 1e-4,
            "ridge": 1.0,
            "alpha": 1.0,
            "admm_iterations": 500,
            "criterion": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "validation_fraction": 0.25 if is_large(scale) else 0.0,
        }
        return cls(**(settings | changes))

    def _settings(self, classification: bool) -> PLNSettings:
        return translate(self, classification)


def translate(p: PLNEstimator, classification: bool) -> PLNSettings:
    """Check an estimator's parameters and translate them."""
    for name in ("n_min", "n_step", "max_neurons", "max_layers", "admm_iterations"):
        check_integer(name, getattr(p, name), 1)
    for name in ("block_threshold", "layer_threshold"):
        check_number(name, getattr(p, name), -np.inf, np.inf)
    for name in ("ridge", "alpha", "mu"):
        check_number(name, getattr(p, name), 1e-12, 1e12)
    if p.target is not None:
        check_number("target", p.target, -np.inf, np.inf, "None or ")
    return PLNSettings(
        # The outputs are least-squares outputs, and nothing is tuned.
        fine_tuning=TuningSettings(loss="mse", learning_rates=(), epochs=()),
        criterion=criterion_of(p, classification),
        n_min=int(p.n_min),
        n_step=int(p.n_step),
        max_neurons=int(p.max_neurons),
        max_layers=int(p.max_layers),
        block_threshold=float(p.block_threshold),
        layer_threshold=float(p.layer_threshold),
        ridge=float(p.ridge),
        alpha=float(p.alpha),
        mu=float(p.mu),
        admm_iterations=int(p.admm_iterations),
        target=None if p.target is None else float(p.target),
        n_threads=n_threads(p.n_jobs),
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
