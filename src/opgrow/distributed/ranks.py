"""What the ranks of a fit share before growth begins: classes, sizes, seeds, the division of rows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch

from ..common.cells import cell_cuts
from ..common.hashing import checksum
from ..common.team import Alone, Divide, Division, Values
from ..engine.shards import pairwise_sum
from ..growth.capabilities import methods_with
from .group import Group, LostRank

__all__ = ["Ranks"]

Result = TypeVar("Result")
#: Parameters that may be others on each rank.
_OF_A_RANK = ("callbacks", "device", "n_jobs", "verbose")
#: Where functions lie in memory, which differs between processes and says nothing.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
#: Rows that are digested at once.
_DIGEST_ROWS = 1 << 13
#: Errors that a rank tells the others of, by their names; an error counts as the first that it is one of.
_TOLD = {e.__name__: e for e in (BlockingIOError, NotADirectoryError, OSError, TypeError, ValueError)}


class Ranks(Alone):
    """Processes that hold a shard of the rows each."""

    alone = False
    batch_sizes = (256, 4096)
    mark = " of ranks"

    def __init__(self, group: Group) -> None:
        self.group = group
        self.rank, self.size = group.rank, group.size
        self.neighbours = int(os.environ.get("LOCAL_WORLD_SIZE", 1))

    def together(self, task: Callable[[], Result]) -> Result:
        try:
            result, failure = task(), ""
        except LostRank:
            raise
        except tuple(_TOLD.values()) as error:
            kind = next(name for name, error_type in _TOLD.items() if isinstance(error, error_type))
            result, failure = error, f"{kind}: {error}"  # type: ignore[assignment]
        for rank, text in enumerate(self.group.texts(failure, "errors")):
            if text:
                kind, _, message = text.partition(": ")
                raise _TOLD[kind](f"rank {rank}: {message}")
        return result

    def begin(self, estimator: Any, n_columns: int, n_targets: int | None) -> None:
        name = type(estimator).__name__
        if not estimator._method.ranks:
            raise ValueError(f"{name} cannot grow on several ranks: {methods_with('ranks')} can")
        if estimator._student_follows(estimator.max_parameters):
            raise ValueError(
                f"{name} cannot distill on several ranks: use another preset than 'compact', distill=None "
                "and no max_parameters for an average"
            )
        settings = estimator.get_params(deep=False)
        parameters = {k: _ADDRESS.sub("", repr(v)) for k, v in settings.items() if k not in _OF_A_RANK}
        names = getattr(estimator, "feature_names_in_", None)
        facts = {
            "columns": n_columns,
            "targets": n_targets,
            "names of columns": None if names is None else names.tolist(),
            "parameters of the estimator": {"": name, **parameters},
        }
        self._compare(facts)

    def _compare(self, facts: dict[str, Any]) -> None:
        """Refuse ranks that disagree; the message says what the first two differ in."""
        of_ranks = [json.loads(text) for text in self.group.texts(json.dumps(facts), "facts")]
        for rank, other in enumerate(of_ranks):
            for what, value in of_ranks[0].items():
                if other[what] != value:
                    ours, theirs = _difference(value, other[what])
                    raise ValueError(
                        f"the ranks differ in {what}: rank 0 has {ours}, and rank {rank} {theirs}"
                    )

    def largest(self, values: Any) -> Any:
        return self.group.largest(values, "moments")

    def total(self, number: int) -> int:
        return sum(self.group.numbers(number, "sizes"))

    def before(self, number: int) -> int:
        return sum(self.group.numbers(number, "sizes")[: self.rank])

    def joined(self, values: np.ndarray) -> np.ndarray:
        return np.concatenate(self.group.arrays(values, "sizes"))

    def cells(self, n_rows: int, rows: np.ndarray | None) -> list[slice]:
        numbers = self.before(n_rows) + (np.arange(n_rows) if rows is None else np.asarray(rows, np.int64))
        borders = [0, *cell_cuts(numbers, self.total(n_rows)), len(numbers)]
        return [slice(start, stop) for start, stop in pairwise(borders)]

    def weight(self, weight: np.ndarray, n_rows: int, rows: np.ndarray | None) -> float:
        sums = [weight[cell].sum(dtype=np.float64) for cell in self.cells(n_rows, rows)]
        return float(self.group.sum(pairwise_sum(np.array(sums)), "moments"))

    def same(self, text: str | None) -> str | None:
        answer = self.group.texts(text or "" if self.rank == 0 else "", "decisions")[0]
        return answer or None

    def same_number(self, number: int) -> int:
        return self.group.numbers(number, "decisions")[0]

    def classes(self, labels: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        of_ranks = [json.loads(text) for text in self.group.texts(json.dumps(labels.tolist()), "classes")]
        kinds = [type(values[0]).__name__ for values in of_ranks]
        if len(set(kinds)) > 1:
            raise ValueError(f"the classes of all ranks must be of one type, got {', '.join(kinds)}")
        everything = np.unique(np.array([label for values in of_ranks for label in values]))
        everything = everything.astype(object if labels.dtype == object else everything.dtype)
        return everything, np.searchsorted(everything, labels)[codes]

    def divisions(self, n_rows: int, codes: np.ndarray | None, divide: Divide) -> list[Division]:
        """As one process would that held all rows in the order of the ranks."""
        sizes = self.group.numbers(n_rows, "sizes")
        first = sum(sizes[: self.rank])
        if codes is not None:
            small = codes.astype(np.min_scalar_type(self._largest(codes)))
            codes = np.concatenate(self.group.arrays(small, "classes of rows"))

        def here(rows: np.ndarray | None) -> np.ndarray | None:
            if rows is None:
                return None
            start, stop = np.searchsorted(rows, [first, first + n_rows])
            return rows[start:stop] - first

        return [(here(most), here(rest)) for most, rest in divide(sum(sizes), codes)]

    def _largest(self, codes: np.ndarray) -> int:
        return max(self.group.numbers(int(codes.max(initial=0)), "sizes"))

    def fingerprint(self, array: np.ndarray) -> str:
        """However the rows are divided."""
        own = torch.from_numpy(_row_digest(array, self.before(len(array))))
        value = int(self.group.sum_(own, "fingerprints")) % 2**64
        return f"{' x '.join(map(str, (self.total(len(array)), *array.shape[1:])))} {value:016x}"

    def sum(self, values: Any, purpose: str) -> Any:
        return self.group.sum(values, purpose)

    def add_(self, values: Values, purpose: str) -> Values:
        self.group.sum_(torch.as_tensor(values), purpose)
        return values

    def first_(self, values: Values, purpose: str) -> Values:
        self.group.broadcast_(torch.as_tensor(values), purpose)
        return values

    def numbers(self, number: int, purpose: str) -> list[int]:
        return self.group.numbers(number, purpose)

    def texts(self, text: str, purpose: str) -> list[str]:
        return self.group.texts(text, purpose)

    def content(self, content: bytes | None, purpose: str) -> bytes | None:
        return self.group.content(content, purpose)

    def agree(self, decision: str) -> None:
        decisions = self.group.texts(decision, "decisions")
        if set(decisions) != {decision}:
            raise RuntimeError(
                f"the ranks have grown apart: they chose {', '.join(decisions)}; all must run on machines of "
                "one kind, with the same versions"
            )


def _row_digest(array: np.ndarray, first: int) -> np.ndarray:
    """One number (1,) for rows whose numbers begin with ``first``; that of all rows is the wrapping sum."""
    total = np.zeros(1, np.int64)
    matrix = array.reshape(len(array), -1)
    for start in range(0, len(matrix), _DIGEST_ROWS):
        words = np.ascontiguousarray(matrix[start : start + _DIGEST_ROWS], np.float64).view(np.uint64)
        total += checksum(words, first + start)
    return total


def _difference(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Two values, or of two dictionaries the first entries that differ."""
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return ours, theirs
    name = next(key for key in [*ours, *theirs] if ours.get(key) != theirs.get(key))
    mark = f"{name}=" if name else ""
    return f"{mark}{ours.get(name)}", f"{mark}{theirs.get(name)}"
