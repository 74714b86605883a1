"""The answers of the study of operators as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..peers.results import Line
from ..tables import Table
from .answers import Answer, answers, shares
from .variants import FULL, questions_of

__all__ = ["answer_table", "page", "share_table"]

_HEAD = ("", "ahead / level / behind", "points", "p", "p (Holm)", "parameters", "CPU time")


def page(lines: Sequence[Line]) -> str:
    """The summary of a study in Markdown."""
    found = answers(lines, questions_of(list(dict.fromkeys(line["model"] for line in lines))))
    n_tables = len({line["table"] for line in lines})
    note = (
        f"{n_tables} tables. Points are hundredths of accuracy or of 1 - RMSE / deviation, mean ± standard "
        "error over tables; p is of Wilcoxon's test over tables, with Holm's correction for all rows beside "
        "it; parameters and CPU time are geometric means of ratios."
    )
    tables = [answer_table(found, note), share_table(shares(lines, FULL))]
    return "# Operators\n\n" + "\n".join(table.markdown() for table in tables)


def answer_table(found: Sequence[Answer], note: str = "") -> Table:
    """A row for each question."""
    rows = tuple(
        (
            one.question.text,
            f"{one.ahead} / {one.level} / {one.behind}",
            f"{100 * one.mean:+.2f} ± {100 * one.error:.2f}",
            f"{one.p:.2g}",
            f"{one.p_holm:.2g}",
            f"{one.size:.2f}",
            f"{one.time:.2f}",
        )
        for one in found
    )
    return Table("answers", "Answers", _HEAD, rows, note)


def share_table(found: Mapping[str, Mapping[str, float]]) -> Table:
    """A row for each kind of operator."""
    rows = tuple(
        (kind, ", ".join(f"{name} {100 * share:.0f} %" for name, share in by_name.items()))
        for kind, by_name in found.items()
    )
    note = "Share of the blocks with each operator, mean over runs."
    return Table("shares", "What was chosen", ("", "share of blocks"), rows, note)
