"""A method against the paper's other methods, run by run on the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opgrow.bench.published import METHODS
from opgrow.bench.runs import DONE

__all__ = ["Pairs", "paired"]


@dataclass(frozen=True)
class Pairs:
    """How many runs there are of both, and the advantage of the first as words.

    ``points`` of accuracy, with a standard error if there are several, and how many times larger the other
    network is (geometric mean).
    """

    count: int
    points: str
    size: str


def paired(
    rows: Sequence[Mapping[str, str]], suffix: str, first: str = METHODS[0]
) -> Iterator[tuple[str, Pairs]]:
    """Each method after ``first`` in the paper's order of which there are runs on the same splits.

    ``suffix`` follows the names of methods with the paper's settings.
    """
    by_run = {(row["dataset"], row["split"], row["model"]): row for row in rows if row["status"] == DONE}
    for method in METHODS[METHODS.index(first) + 1 :]:
        pairs = [
            (row, by_run[dataset, split, method + suffix])
            for (dataset, split, model), row in by_run.items()
            if model == first + suffix and (dataset, split, method + suffix) in by_run
        ]
        if not pairs:
            continue
        points = [100 * (float(a["accuracy"]) - float(b["accuracy"])) for a, b in pairs]
        error = f" ± {np.std(points, ddof=1) / np.sqrt(len(points)):.1f}" if len(points) > 1 else ""
        logs = [np.log(float(b["parameters"]) / float(a["parameters"])) for a, b in pairs]
        yield (
            method,
            Pairs(len(pairs), f"{np.mean(points):+.1f}{error}", f"{np.exp(np.mean(logs)):.2g}"),
        )
