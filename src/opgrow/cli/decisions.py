"""What ``opgrow fit`` decided about a table, each decision with the option that changes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opgrow.cli import common
from opgrow.estimators.listeners.base import Callback
from opgrow.growth.events import FitStarted

if TYPE_CHECKING:
    import numpy as np

    from opgrow.rows.tables import Table, TableEncoder

__all__ = [
    "Decision",
    "PrintDecisions",
    "column_decisions",
    "file_decision",
    "print_decisions",
    "target_decisions",
]

#: A label and a line.
Decision = tuple[str, str]


class PrintDecisions(Callback):
    """Prints decisions when growth begins: a fit that fails before that prints its error alone."""

    def __init__(self, decisions: Sequence[Decision]) -> None:
        self.decisions = decisions

    def on_fit_start(self, event: FitStarted) -> None:
        """Print them."""
        print_decisions(self.decisions)


def print_decisions(decisions: Sequence[Decision]) -> None:
    """Print a line for each decision, and an empty one."""
    console = common.console()
    for label, line in decisions:
        console.print(f"{label:<10} {line}", soft_wrap=True)
    console.print()


def file_decision(table: Table) -> Decision:
    """How a file was read."""
    if table.read_as is None:
        return "table", f"{table.n_rows:,} rows"
    other = "--no-header" if table.read_as.header else "--header"
    return "table", f"{table.n_rows:,} rows; {table.read_as} (otherwise: {other}, --decimal)"


def target_decisions(name: str, values: np.ndarray, task: str, reason: str | None) -> list[Decision]:
    """What is to be predicted, and why it is taken for that; without a ``reason``, because it was said."""
    import numpy as np

    from opgrow.rows.tables.csv_files import as_numbers

    what, notes = task, []
    if task == "classification":
        _, counts = np.unique(values.astype(str) if values.dtype == object else values, return_counts=True)
        what += f" with {len(counts):,} classes"
        if (single := int((counts == 1).sum())) > 0:
            of = "1 class has" if single == 1 else f"{single:,} classes have"
            notes.append(f"{of} a single row, which no other row can confirm")
        strays = np.isnan(as_numbers(values)) if values.dtype == object else np.zeros(1, bool)
        if 0 < strays.sum() <= len(values) / 2:
            some = f"{strays.sum():,} of {len(values):,} values are no numbers, such as {values[strays][0]!r}"
            notes.append(f"{name!r} is text, because {some}: leave these rows out for a regression")
    why = "as --task says" if reason is None else f"because {reason}"
    other = "regression" if task == "classification" else "classification"
    otherwise = "" if values.dtype == object else f" (otherwise: --task {other})"
    return [("target", f"{name!r}: {what}, {why}{otherwise}"), *(("note", note) for note in notes)]


def column_decisions(encoder: TableEncoder, dropped: Sequence[str]) -> list[Decision]:
    """What was done to the columns."""
    from opgrow.rows.tables.facts import COMMAND, column_lines
    from opgrow.rows.tables.table import listed

    lines: list[Any] = column_lines(encoder.facts_, COMMAND)
    if dropped:
        lines.insert(sum(label != "note" for label, _ in lines), ("dropped", listed(dropped)))
    return lines
