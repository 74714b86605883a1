"""BLS as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...common.checks import check_choice, check_integer, check_number, check_numbers, is_auto
from ...growth import methods
from ...growth.methods.bls import BroadSettings
from ..classifier import GrowingClassifier
from ..documentation import documented
from ..parameter_groups import RunParameters, declares_parameters
from ..registry import listed
from ..regressor import GrowingRegressor
from .closed_form import ClosedFormEstimator

__all__ = ["BLSClassifier", "BLSRegressor"]

_RIDGES: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0)


@declares_parameters
class BLSEstimator(ClosedFormEstimator[BroadSettings]):
    """The parameters of BLS and what they mean."""

    n_min: int = 40
    n_step: int = 20
    max_neurons: int = 300
    window_size: int = 10
    block_threshold: float = 1e-4
    ridge: str | float | Sequence[float] = "auto"
    mu: float = 1e-3
    admm_iterations: int = 500
    feature_activation: str = "sigmoid"
    criterion: str = "auto"
    target: float | None = None

    def _settings(self, classification: bool) -> BroadSettings:
        for name in ("n_min", "n_step", "max_neurons", "window_size", "admm_iterations"):
            check_integer(name, getattr(self, name), 1)
        check_number("block_threshold", self.block_threshold, -np.inf, np.inf)
        check_number("mu", self.mu, 0.0, 1e12)
        check_choice("feature_activation", self.feature_activation, ("sigmoid", "identity"))
        self._check_target()
        ridges = (
            _RIDGES
            if is_auto(self.ridge)
            else check_numbers("ridge", self.ridge, lambda v: 0 < v < np.inf, "positive")
        )
        return BroadSettings(
            **self._shared_settings(classification),
            max_layers=1,
            window_size=int(self.window_size),
            ridges=ridges,
            feature_activation=self.feature_activation,
        )


_SUMMARY = """Broad learning system: random feature and enhancement nodes below a head in closed form.

    The network has two hidden layers, and the head sees both: feature nodes are maps of the standardised
    input, enhancement nodes random sigmoids of the feature nodes. A growth step adds as many of one kind as
    of the other. Weights are random, sparse codes or found in closed form; nothing is tuned."""
_TEXTS = {
    "n_min, n_step": """int
        Feature nodes, and enhancement nodes, of the first and of every further growth step.""",
    "max_neurons": """int
        Bound on the feature nodes, and on the enhancement nodes.""",
    "window_size": """int
        Feature nodes that are drawn together; those of the first step are fine-tuned together as a sparse
        autoencoder.""",
    "block_threshold": """float
        Least relative improvement of the score by which a growth step is kept.""",
    "ridge": """"auto", float or sequence of float
        Regularisation of the head on standardised nodes, relative to a sum over rows of mean weight 1.
        From several values the leave-one-out error of the first step chooses. "auto" is (0.01, 0.1, 1, 10,
        100).""",
    "mu, admm_iterations": """float and int
        Penalty of the sparse autoencoders, relative to the same sum, and the iterations of their solver
        (ADMM) at most.""",
    "feature_activation": """{"sigmoid", "identity"}
        Of the feature nodes: the paper's, or that of the original method.""",
}


@listed
@documented(_SUMMARY, "n_min=20, n_step=10", _TEXTS)
@declares_parameters
class BLSClassifier(RunParameters, GrowingClassifier[BroadSettings], BLSEstimator):
    _method = methods.BLS


@listed
@documented(_SUMMARY, "n_min=20, n_step=10", _TEXTS)
@declares_parameters
class BLSRegressor(RunParameters, GrowingRegressor[BroadSettings], BLSEstimator):
    _method = methods.BLS
