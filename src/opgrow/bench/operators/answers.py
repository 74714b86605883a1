"""What the lines of the study of operators say: paired tests over tables, and which operators were chosen.

The score of a line is its accuracy, or 1 - nrmse for regression. Splits of a table share rows, so their mean
is one observation: tables are what the tests count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...operators import OperatorSet
from ..comparison import holm, wilcoxon_holm
from ..peers.results import Key, Line
from ..peers.summary import score
from ..runs import DONE
from .variants import Question

__all__ = ["Answer", "answers", "shares"]


@dataclass(frozen=True)
class Answer:
    """A question, and how its first variant does against the second.

    Attributes
    ----------
    question : which variants
    differences : the first's mean score less the second's, by table
    ahead, level, behind : tables on which the first's mean score is higher, equal, lower
    p, p_holm : Wilcoxon's signed-rank test over tables, and with Holm's correction for all questions
    size, time : geometric means over tables of the first's parameters and CPU seconds by the second's
    """

    question: Question
    differences: Mapping[str, float]
    ahead: int
    level: int
    behind: int
    p: float
    p_holm: float
    size: float
    time: float

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.differences.values())))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        values = list(self.differences.values())
        return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def answers(lines: Iterable[Line], questions: Sequence[Question]) -> list[Answer]:
    """Answers to those questions of which at least two tables have both variants."""
    known = {(line["table"], line["split"], line["model"]): line for line in lines if line["status"] == DONE}
    given = [_answer(known, one) for one in questions]
    found = [one for one in given if one is not None]
    if not found:
        return []
    corrected = holm([one.p for one in found])
    return [replace(one, p_holm=float(p)) for one, p in zip(found, corrected, strict=True)]


def _answer(known: Mapping[Key, Line], question: Question) -> Answer | None:
    pairs: dict[str, list[tuple[Line, Line]]] = {}
    for (table, split, model), line in known.items():
        other = known.get((table, split, question.second))
        if model == question.first and other is not None:
            pairs.setdefault(table, []).append((line, other))
    if len(pairs) < 2:
        return None
    first, second = (
        [float(np.mean([score(pair[side]) for pair in of_table])) for of_table in pairs.values()]
        for side in (0, 1)
    )
    (test,) = wilcoxon_holm({question.second: second, question.first: first}, reference=question.second)
    differences = dict(zip(pairs, np.subtract(first, second).tolist(), strict=True))
    ratios = (_ratio(pairs, what) for what in ("parameters", "fit_cpu_seconds"))
    return Answer(question, differences, test.wins, test.ties, test.losses, test.p, test.p, *ratios)


def _ratio(pairs: Mapping[str, Sequence[tuple[Line, Line]]], what: str) -> float:
    """The geometric mean over tables of what the first of each pair costs by what the second does."""
    logs = [
        np.mean([np.log(max(one[what], 1e-2) / max(other[what], 1e-2)) for one, other in of_table])
        for of_table in pairs.values()
    ]
    return float(np.exp(np.mean(logs)))


def shares(lines: Iterable[Line], model: str) -> dict[str, dict[str, float]]:
    """The share of blocks with each operator, by kind, as the mean over the runs of a variant."""
    kinds: dict[str, Counter[str]] = {"nodal": Counter(), "pool": Counter(), "activation": Counter()}
    runs = [line["chosen"] for line in lines if line["model"] == model and line["status"] == DONE]
    for chosen in runs:
        for name, count in chosen.items():
            one = OperatorSet(*name.split("/"))
            for kind, counter in kinds.items():
                counter[getattr(one, kind)] += count / sum(chosen.values()) / len(runs)
    return {kind: dict(counter.most_common()) for kind, counter in kinds.items()}
