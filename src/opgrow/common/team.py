"""With whom a fit is computed: sums and decisions that several processes share, or one process alone.

A fit asks `current` for its team. Usually that is `Alone`, for which every sum is the one that it already
has; inside `opgrow.distributed.fit` each process holds a shard of the rows, and the rows of all are meant, in
the order of the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .fingerprints import fingerprint

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ALONE", "Alone", "Divide", "Division", "Values", "current", "sharing"]

Result = TypeVar("Result")
Values = TypeVar("Values", np.ndarray, "Tensor")
#: Rows for training (None: all) and for validation (None: no rows, or others).
Division = tuple[np.ndarray | None, np.ndarray | None]
#: From the number of rows and the classes of these, or None, to the divisions of all networks.
Divide = Callable[[int, np.ndarray | None], list[Division]]


class Alone:
    """One process that holds all rows."""

    rank, size = 0, 1
    #: Processes of this fit that share the machine's memory.
    neighbours = 1
    #: Whether all rows are here, whatever is asked about them.
    alone = True
    #: Batches that are worth dividing: the least and the largest that "auto" chooses, or None.
    batch_sizes: tuple[int, int] | None = None
    #: What a checkpoint adds to the name of the engine: which fits can resume each other's work.
    mark = ""

    def together(self, task: Callable[[], Result]) -> Result:
        """The result of a task; bad input on any rank is an error on all of them."""
        return task()

    def begin(self, estimator: Any, n_columns: int, n_targets: int | None) -> None:
        """Refuse what the ranks cannot do together; ``n_targets`` may not be known yet."""

    def largest(self, values: Any) -> Any:
        """The largest over ranks of each value."""
        return values

    def total(self, number: int) -> int:
        """The sum over ranks of a count."""
        return number

    def before(self, number: int) -> int:
        """The sum of a count over the ranks before this one."""
        return 0

    def joined(self, values: np.ndarray) -> np.ndarray:
        """The arrays of all ranks, one after the other."""
        return values

    def cells(self, n_rows: int, rows: np.ndarray | None) -> list[slice]:
        """Runs of the chosen rows (None: all) among so many here that are summed by themselves."""
        return [slice(0, n_rows if rows is None else len(rows))]

    def weight(self, weight: np.ndarray, n_rows: int, rows: np.ndarray | None) -> float:
        """The sum of the weights of the chosen rows, of all ranks."""
        return float(weight.sum(dtype=np.float64))

    def mean_weight(self, weight: np.ndarray, n_rows: int, rows: np.ndarray | None = None) -> float:
        """Their mean."""
        return self.weight(weight, n_rows, rows) / self.total(len(weight))

    def same(self, text: str | None) -> str | None:
        """What rank 0 says."""
        return text

    def same_number(self, number: int) -> int:
        """What rank 0 says."""
        return number

    def classes(self, labels: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The labels of all ranks, sorted, and codes that refer to them."""
        return labels, codes

    def divisions(self, n_rows: int, codes: np.ndarray | None, divide: Divide) -> list[Division]:
        """Divide all rows, and return what is here of each part."""
        return divide(n_rows, codes)

    def fingerprint(self, array: np.ndarray) -> str:
        """What tells the rows of all ranks from others."""
        return fingerprint(array)

    # --- while a network grows; what is shared is counted by its purpose ---

    def sum(self, values: Any, purpose: str) -> Any:
        """The sum over ranks of an array, or of a number, as a new one in float64."""
        return values

    def add_(self, values: Values, purpose: str) -> Values:
        """Add up an array or a tensor over ranks, in place."""
        return values

    def first_(self, values: Values, purpose: str) -> Values:
        """Replace an array or a tensor by that of rank 0, in place."""
        return values

    def numbers(self, number: int, purpose: str) -> list[int]:
        """The number of each rank."""
        return [number]

    def texts(self, text: str, purpose: str) -> list[str]:
        """The text of each rank."""
        return [text]

    def content(self, content: bytes | None, purpose: str) -> bytes | None:
        """The bytes that rank 0 has, if it has some."""
        return content

    def agree(self, decision: str) -> None:
        """Refuse to go on where ranks have decided differently."""


ALONE = Alone()
_team: ContextVar[Alone] = ContextVar("opgrow_team", default=ALONE)


def current() -> Alone:
    """The team of the fit that is to begin."""
    return _team.get()


@contextmanager
def sharing(team: Alone) -> Iterator[None]:
    """Let fits share their work with other processes."""
    token = _team.set(team)
    try:
        yield
    finally:
        _team.reset(token)
