"""Sums and decisions that several processes share; with one process, nothing to share.

A fit asks `current` for its ranks. Usually they are `Alone`; inside `opgrow.distributed.fit` each process
holds a shard of the rows, and the rows of all are meant in the order of the ranks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from ..growth.checkpoints import Folder, Identity, opened
from .fingerprints import fingerprint

__all__ = ["Alone", "current", "sharing"]

Result = TypeVar("Result")
#: Rows for training (None: all) and for validation (None: no rows, or others).
Division = tuple[np.ndarray | None, np.ndarray | None]


class Alone:
    """One process that holds all rows."""

    rank, size = 0, 1
    #: Processes of this fit that share the machine's memory.
    neighbours = 1
    #: Whether all rows are here, whatever is asked about them.
    has_all_rows = True
    #: Batches that are worth dividing: the least and the largest that "auto" chooses, or None.
    batch_sizes: tuple[int, int] | None = None
    #: What a checkpoint adds to the name of the backend: which fits can go on with each other's work.
    mark = ""

    def together(self, task: Callable[[], Result]) -> Result:
        """The result of a task; bad input on any rank is an error on all of them."""
        return task()

    def begin(self, estimator: Any, n_columns: int, n_targets: int | None) -> None:
        """Refuse what the ranks cannot do together; ``n_targets`` may not be known yet."""

    def add(self, values: Any) -> Any:
        """The sum over ranks of a float64 array, or of a number."""
        return values

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

    def divisions(
        self,
        n_rows: int,
        codes: np.ndarray | None,
        divide: Callable[[int, np.ndarray | None], list[Division]],
    ) -> list[Division]:
        """Divide all rows, and return what is here of each part."""
        return divide(n_rows, codes)

    def backend(self, backend: Any) -> Any:
        """The backend that does what the ranks do together."""
        return backend

    def survey(self, own: Any) -> Any:
        """What the first pass has found in the sources of all ranks, with the rows that are held here."""
        return own

    def shared(self, problem: Any) -> Any:
        """A problem whose rows are read in chunks, as part of that of all ranks."""
        return problem

    def fingerprint(self, array: np.ndarray) -> str:
        """What tells the rows of all ranks from others."""
        return fingerprint(array)

    def checkpoint(
        self, path: str | os.PathLike[str], seconds: float, identity: Identity
    ) -> AbstractContextManager[Folder]:
        """The folder of a fit that can be resumed."""
        return opened(path, seconds, identity)


_ranks: ContextVar[Any] = ContextVar("opgrow_ranks", default=Alone())  # noqa: B039 (it holds no state)


def current() -> Any:
    """The ranks of the fit that is to begin."""
    return _ranks.get()


@contextmanager
def sharing(ranks: Any) -> Iterator[None]:
    """Let fits share their work with other processes."""
    token = _ranks.set(ranks)
    try:
        yield
    finally:
        _ranks.reset(token)
