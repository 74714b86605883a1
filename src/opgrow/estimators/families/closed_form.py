"""What PLN and BLS share: their weights are random or solved for, and nothing is tuned."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from ...common.checks import check_number
from ...growth.model import criterion_of
from ...training.settings import TuningSettings
from ..base import GrowingEstimator, Settings
from ..parameters import n_threads
from .paper_scales import held_out

__all__ = ["ClosedFormEstimator"]


class ClosedFormEstimator(GrowingEstimator[Settings]):
    """What both families have, with the parameters that each of them declares."""

    #: Settings of the paper's experiments that only this family has.
    _of_the_paper: ClassVar[dict[str, Any]] = {}
    n_min: int
    n_step: int
    max_neurons: int
    block_threshold: float
    mu: float
    admm_iterations: int
    criterion: str
    target: float | None

    @classmethod
    def paper(cls, scale: str = "small", **changes: Any) -> Self:
        """The settings of the paper's experiments.

        Parameters
        ----------
        scale : {"small", "large"}
            The paper's small problems (below 2,000 samples: a fifth of the training data validates, which
            is our reading) or its larger ones (a quarter validates).
        **changes
            Parameters to set differently; the paper selected ``ridge``, ``mu`` and, for PLN, ``alpha`` from
            0.001, 0.01, 0.1, 1, 10, 100, 1000.
        """
        settings: dict[str, Any] = {
            "max_neurons": 300,
            "block_threshold": 1e-4,
            "ridge": 1.0,
            "admm_iterations": 500,
            "criterion": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "validation_fraction": held_out(scale),
        }
        return cls(**(settings | cls._of_the_paper | changes))

    def _check_target(self) -> None:
        if self.target is not None:
            check_number("target", self.target, -np.inf, np.inf, "None or ")

    def _shared_settings(self, classification: bool) -> dict[str, Any]:
        """The settings that both families have, from parameters that have been checked."""
        return {
            # The outputs are least-squares outputs, and nothing is tuned.
            "fine_tuning": TuningSettings(loss="mse", learning_rates=(), epochs=()),
            "criterion": criterion_of(self, classification),
            "n_min": int(self.n_min),
            "n_step": int(self.n_step),
            "max_neurons": int(self.max_neurons),
            "block_threshold": float(self.block_threshold),
            "mu": float(self.mu),
            "admm_iterations": int(self.admm_iterations),
            "target": None if self.target is None else float(self.target),
            "n_threads": n_threads(self.n_jobs),
        }
