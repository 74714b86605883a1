"""What an encoder decided about the columns of a table, in words, each with the option that changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from opgrow.rows.tables.categories import TextColumn
from opgrow.rows.tables.columns import Column, DroppedColumn, NumberColumn
from opgrow.rows.tables.csv_files import as_numbers
from opgrow.rows.tables.date_columns import DateColumn
from opgrow.rows.tables.target_means import TargetColumn

__all__ = ["COMMAND", "PYTHON", "ColumnFacts", "column_lines"]

#: How each wish is told to the command line, and to `TableEncoder`.
COMMAND = {
    "text": "--text {}",
    "numeric": "--numeric {}",
    "drop": "--drop {}",
    "categories": "--max-categories {}",
}
PYTHON = {
    "text": "text=[{!r}]",
    "numeric": "numeric=[{!r}]",
    "drop": "dropping {!r}",
    "categories": "max_categories={}",
}
#: A text column of this many values at least, of which this share is different, is called an identifier.
_IDENTIFIER_VALUES, _IDENTIFIER_SHARE = 20, 0.9
_SHOWN = 8


@dataclass(frozen=True)
class ColumnFacts:
    """A column of the training table: what was learned of it, and what it looked like.

    Attributes
    ----------
    column : what was learned
    n_rows, n_gaps : rows, and how many of them have no value
    n_distinct : different texts; 0 for numbers
    example : one of the texts, rather one that is no number
    n_strays : rows whose text is no number
    largest : the largest absolute value of a column of numbers, or 0
    """

    column: Column
    n_rows: int
    n_gaps: int
    n_distinct: int = 0
    example: str = ""
    n_strays: int = 0
    largest: float = 0.0

    @classmethod
    def of(cls, column: Column, values: np.ndarray) -> ColumnFacts:
        """Look at the values from which a column was learned."""
        if values.dtype != object:
            present = values[~np.isnan(values)]
            is_number = isinstance(column, NumberColumn)
            n_distinct = 0 if is_number else np.unique(present).size
            largest = float(np.abs(present).max(initial=0.0)) if is_number else 0.0
            return cls(column, len(values), len(values) - len(present), n_distinct, largest=largest)
        counts = Counter(values.tolist())
        n_gaps = counts.pop(None, 0)
        texts = np.array(list(counts), dtype=object)
        strays = texts[np.isnan(as_numbers(texts))]
        example = min(strays if strays.size else texts, default="")
        return cls(column, len(values), n_gaps, len(counts), example, sum(counts[text] for text in strays))

    @property
    def label(self) -> str:
        """What the column is called among others of its kind."""
        kinds = {NumberColumn: "numbers", DateColumn: "dates", DroppedColumn: "dropped"}
        return kinds.get(type(self.column), "text")

    def __str__(self) -> str:
        name, column = repr(self.column.name), self.column
        gaps = f"{self.n_gaps:,} {'gap' if self.n_gaps == 1 else 'gaps'}"
        if isinstance(column, DroppedColumn):
            return f"{name} ({column.reason})"
        if isinstance(column, NumberColumn):
            marked = " and marked" * column.missing
            return f"{name} ({gaps} filled with {column.median:.4g}{marked})" if self.n_gaps else name
        such = f", such as {self.example!r}" if self.example else ""
        if isinstance(column, DateColumn):
            parts = " and the place in the " + " and the ".join(column.parts) if column.parts else ""
            words = f"{column.outputs[0].removeprefix(column.name + ': ')}{parts}{such}"
            return f"{name} ({words}{', ' + gaps if self.n_gaps else ''})"
        what = "1 category" if self.n_distinct == 1 else f"{self.n_distinct:,} categories"
        means = ", each as a mean of the target" if isinstance(column, TargetColumn) else ""
        return f"{name} ({what}{means}{such}{', ' + gaps if self.n_gaps else ''})"

    def notes(self, words: dict[str, str]) -> list[str]:
        """Sentences on what deserves a second look."""
        name, n_values = self.column.name, self.n_rows - self.n_gaps
        strays = f"{self.n_strays:,} of {n_values:,} values"
        if isinstance(self.column, NumberColumn):
            fact = f"{strays} of {name!r} are text, such as {self.example!r}, and count as missing"
            return [fact] if self.n_strays else []
        if isinstance(self.column, DateColumn | DroppedColumn):
            return []
        drop, numeric = words["drop"].format(name), words["numeric"].format(name)
        different = f"{self.n_distinct:,} different texts in {n_values:,} rows"
        notes = []
        if n_values >= _IDENTIFIER_VALUES and self.n_distinct >= _IDENTIFIER_SHARE * n_values:
            notes.append(f"{name!r} looks like an identifier, {different}: {drop} leaves it out")
        elif 0 < self.n_strays <= n_values / 2:
            fact = f"{name!r} is text, because {strays} are no numbers, such as {self.example!r}"
            notes.append(f"{fact}: {numeric} takes these as missing")
        if isinstance(self.column, TargetColumn):
            fact = f"{name!r} has {self.n_distinct:,} categories, which are means of the target"
            keep = words["categories"].format(self.n_distinct)
            notes.append(f"{fact}: {keep} gives each an input of its own, {drop} leaves the column out")
        if isinstance(self.column, TextColumn) and self.column.pooled:
            rare = self.n_distinct - len(self.column.categories)
            fact = f"{name!r} has {self.n_distinct:,} categories, and the rare ones ({rare:,}) are pooled"
            keep = words["categories"].format(self.n_distinct)
            notes.append(f"{fact}: {keep} keeps them apart, {drop} leaves the column out")
        return notes


def column_lines(facts: Iterable[ColumnFacts], words: dict[str, str]) -> list[tuple[str, str]]:
    """What was decided, as pairs of a label and a line.

    Parameters
    ----------
    facts : iterable of ColumnFacts
    words : {COMMAND, PYTHON}
        How wishes are told.
    """
    facts = list(facts)
    decisions = []
    for label, other in (("numbers", "text"), ("text", "numeric"), ("dates", "text"), ("dropped", None)):
        part = [fact for fact in facts if fact.label == label]
        if part:
            # Columns with something to tell come first, in case that there are many.
            shown = sorted(part, key=lambda fact: str(fact) == repr(fact.column.name))[:_SHOWN]
            more = f" and {len(part) - _SHOWN:,} more" if len(part) > _SHOWN else ""
            listed = ", ".join(map(str, shown)) + more
            otherwise = "" if other is None else f" (otherwise: {words[other].format('NAME')})"
            decisions.append((label, f"{len(part):,}: {listed}{otherwise}"))
    decisions += [("note", note) for fact in facts for note in fact.notes(words)]
    return decisions
