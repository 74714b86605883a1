"""What growth leaves behind: a fitted model, as exports and reports read it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.checks import check_choice, is_auto
from ..network import Network
from ..training.scores import CRITERIA
from .events import GrowthStep

__all__ = ["GrownModel", "criterion_of"]


class GrownModel:
    """What all estimators of this package have once they are fitted.

    Exports and reports stand below the estimators and know them by this class alone.

    Attributes
    ----------
    network_ : Network
    history_ : list of GrowthStep, everything that was tried
    loss_ : name of the loss that the network was tuned by
    n_features_in_ : int
    sample_ : array of shape (n, n_features_in_), a few rows of the training data, by which exports measure
        themselves; None where they are not known
    """

    network_: Network
    history_: list[GrowthStep]
    loss_: str
    n_features_in_: int
    sample_: np.ndarray | None = None


def criterion_of(parameters: Any, classification: bool) -> str:
    """The criterion that decides growth, from an estimator or its parameters."""
    criterion = (
        ("brier" if classification else "loss") if is_auto(parameters.criterion) else parameters.criterion
    )
    check_choice("criterion", criterion, tuple(CRITERIA) if classification else ("loss",), auto=True)
    return criterion
