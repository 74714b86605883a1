"""What growth leaves behind: a fitted model, as exports and reports read it."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from ..common.checks import check_choice, is_auto
from ..network import Network
from ..rows.tables import TableEncoder
from ..training.scores import CRITERIA
from .events import GrowthStep
from .stream_record import StreamRecord

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
    sample_ : array of shape (n, network_.n_inputs), a few rows of the training data as the network takes
        them, by which exports measure themselves; None where they are not known
    stream_ : StreamRecord of rows that came later, where they were watched; else None
    table_ : TableEncoder that turns the user's table into the network's inputs; None where X was a matrix
    """

    network_: Network
    history_: list[GrowthStep]
    loss_: str
    n_features_in_: int
    sample_: np.ndarray | None = None
    table_: TableEncoder | None = None

    @property
    def stream_(self) -> StreamRecord | None:
        return None

    def network_rows(self, x: Any) -> np.ndarray:
        """Rows (n, network_.n_inputs) as the network takes them, of X as users have it."""
        raise TypeError(f"{type(self).__name__} has no inputs of its own")

    def of_rows(self) -> Self:
        """The same model without its encoder: it takes the rows that the network takes."""
        model = copy(self)
        if self.table_ is not None:
            model.table_, model.n_features_in_ = None, self.network_.n_inputs
            model.__dict__.pop("feature_names_in_", None)
        return model

    @property
    def input_names(self) -> list[str] | None:
        """Names of the inputs of the network, where they are known."""
        if self.table_ is not None:
            return [str(name) for name in self.table_.get_feature_names_out()]
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]


def criterion_of(parameters: Any, classification: bool) -> str:
    """The criterion that decides growth, from an estimator or its parameters."""
    criterion = (
        ("brier" if classification else "loss") if is_auto(parameters.criterion) else parameters.criterion
    )
    check_choice("criterion", criterion, tuple(CRITERIA) if classification else ("loss",), auto=True)
    return criterion
