"""Figures of docs/results/operators.md: every run is a line of results/operators/runs.jsonl."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from opgrow.bench.operators.answers import Answer, answers, shares
from opgrow.bench.operators.page import answer_table, share_table
from opgrow.bench.operators.variants import (
    EQUAL,
    FULL,
    PERCEPTRONS,
    QUESTIONS,
    VARIANTS,
    Question,
    questions_of,
)
from opgrow.bench.peers.results import Results
from opgrow.bench.tables import Table

from .marks import RESULTS, Figures, markdown_table

__all__ = ["figures"]

#: Methods that are compared with a single network of HeMLGOP.
_METHODS = ("PMLP", "PLN", "BLS")
#: Answers that sentences repeat, by a short name.
_NAMED = {
    "perceptrons": (FULL, PERCEPTRONS),
    "equal": EQUAL,
    "homogeneous": (FULL, "HoMLGOP preset=null"),
    "small-blocks": ("HeMLGOP preset=null n_min=2 n_step=1", "HoMLGOP preset=null n_min=2 n_step=1"),
    "random": (FULL, "HeMLRN preset=null"),
    "blocks": ("HeMLGOP preset=null n_min=40 n_step=20", "HeMLGOP preset=null n_min=2 n_step=1"),
}
#: Parts that sentences mention: what is set instead of the default.
_PARTS = {
    "part-one": "weight_range=1",
    "part-two-pi": "weight_range=6.28",
    "part-accuracy": "search_score=accuracy",
    "part-draws": "share_draws=false",
    "part-validation": "validation_fraction=0",
    "part-thresholds": "block_threshold=1e-4 layer_threshold=1e-4",
}


def figures() -> Figures:
    """Answers, parts, methods, and which operators were chosen."""
    lines = list(Results(RESULTS / "operators" / "runs.jsonl").lines().values())
    found = answers(lines, QUESTIONS)
    others = [name for name in dict.fromkeys(line["model"] for line in lines) if name not in VARIANTS]
    parts = answers(lines, questions_of([FULL, *(name for name in others if name not in _METHODS)]))
    methods = answers(lines, [Question(name, name, FULL) for name in _METHODS])
    tables = {
        "operators-answers": _table(answer_table(found)),
        "operators-parts": _table(answer_table(parts)),
        "operators-methods": _table(answer_table(methods)),
        "operators-chosen": _table(share_table(shares(lines, FULL))),
    }
    named = {(one.question.first, one.question.second): one for one in found}
    values = _values((name, named[pair]) for name, pair in _NAMED.items())
    values |= _values((one.question.first.lower(), one) for one in methods)
    (first,) = answers([line for line in lines if line["split"] == 0], QUESTIONS[:1])
    values |= _values([("first-split", first)])
    changed = {one.question.second: one for one in parts}
    values |= _values((name, changed[f"{FULL} {settings}"]) for name, settings in _PARTS.items())
    values["operators-second"] = str(len({line["table"] for line in lines if line["split"] > 0}))
    values["operators-tables"] = str(len({line["table"] for line in lines}))
    values["operators-questions"] = str(len(found))
    values["operators-significant"] = str(sum(one.p_holm < 0.05 for one in found))
    sizes = [line["parameters"] for line in lines if line["model"] == FULL]
    values["operators-parameters"] = f"{np.median(sizes):,.0f}"
    return Figures(tables, values)


def _table(table: Table) -> str:
    """The table without its heading and note."""
    return markdown_table(table.head, table.rows)


def _values(found: Iterable[tuple[str, Answer]]) -> dict[str, str]:
    """What sentences say of answers."""
    values = {}
    for name, one in found:
        values |= {
            f"operators-{name}-tables": str(len(one.differences)),
            f"operators-{name}-ahead": str(one.ahead),
            f"operators-{name}-behind": str(one.behind),
            f"operators-{name}-points": f"{100 * one.mean:+.1f} ± {100 * one.error:.1f}",
            f"operators-{name}-least": f"{100 * (one.mean - 2 * one.error):+.1f}",
            f"operators-{name}-most": f"{100 * (one.mean + 2 * one.error):+.1f}",
            f"operators-{name}-p": f"{one.p:.2g}",
            f"operators-{name}-p-holm": f"{one.p_holm:.2g}",
            f"operators-{name}-size": f"{one.size:.2g}",
            f"operators-{name}-time": f"{one.time:.2g}",
            f"operators-{name}-growth": f"{1 / one.size:.2g}",
        }
    return values
