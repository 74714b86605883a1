"""One row's way through the network: what columns and neurons added, and what would change the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .attribution import Attribution
from .changes import Change, nearest_changes
from .columns import number_text
from .context import Context
from .html_tables import contributions_html
from .sentences import change_sentence, headline, sentences
from .shape import curve, exactly, plain

__all__ = ["Way"]

#: Rows that a network predicts for the contributions to one row, about.
BUDGET = 1 << 16


@dataclass(frozen=True, eq=False)
class Additions:
    """What all neurons add for one row: ``base + sum(values) + limit`` are the outputs.

    Attributes
    ----------
    base : array (outputs,)
    values : array (neurons, outputs)
    limit : array (outputs,), what the limits of a regression cut off, and rounding
    """

    base: np.ndarray
    values: np.ndarray
    limit: np.ndarray


class Way:
    """Why the network said what it said of one row.

    Attributes
    ----------
    number : of the row in X
    inputs : array (inputs,), the row as the network takes it
    texts : the values of the columns, as the user has them
    raw, outputs : arrays, what the network says, and what is explained of that
    """

    def __init__(self, context: Context, number: int, inputs: np.ndarray, texts: Sequence[str]) -> None:
        self._context, self.number = context, number
        self.inputs, self.texts = inputs, list(texts)
        self.raw = context.subject.raw(inputs[None])[0]
        self.outputs = self.raw @ context.subject.mix

    @cached_property
    def columns(self) -> Attribution:
        """What each column contributes: ``base + values.sum(axis=0)`` are the outputs."""
        return self._context.attribute(self.inputs, BUDGET)

    @cached_property
    def neurons(self) -> Additions:
        """What each neuron adds: ``base + values.sum(axis=0) + limit`` are the outputs."""
        context = self._context
        if not context.neurons:
            return Additions(self.outputs, np.zeros((0, len(self.outputs))), 0 * self.outputs)
        features = context.subject.network.read_by_head(self.inputs[None])[0].astype(np.float64)
        added = context.head.contributions(features, context.features, BUDGET, context.random(1))
        rest = self.outputs - added.base - added.values.sum(axis=0)
        return Additions(added.base, added.values, rest)

    @cached_property
    def changes(self) -> list[Change]:
        """The nearest changes that change the predicted class; none for a regressor."""
        context = self._context
        if context.subject.classes is None:
            return []
        order = np.argsort(-np.abs(self.columns.values).sum(axis=1), kind="stable").tolist()
        return nearest_changes(context.subject, context.axes, self.inputs, context.rows, order)

    @property
    def prediction(self) -> str:
        subject = self._context.subject
        if subject.classes is None:
            return ", ".join(number_text(float(value)) for value in self.outputs)
        return subject.classes[int(subject.codes(self.inputs[None])[0])]

    @property
    def sentences(self) -> list[str]:
        """What is predicted and why, in words; the nearest changes last."""
        context = self._context
        name = f"row {self.number}"
        told = [headline(context.subject, self.raw, self.outputs, name.capitalize())]
        told += sentences(context.subject, context.axes, self.texts, self.columns.values.T, self.raw)
        told += [
            change_sentence(context.subject, context.axes, self.texts, change, name)
            for change in self.changes[:1]
        ]
        return told

    def curves(self, column: int) -> np.ndarray:
        """The outputs as one column alone moves over its grid: (G, outputs). Other rows have other curves."""
        moved = self._context.axes[column].put(self.inputs[None])[0]
        return self._context.subject.outputs(moved)

    def data(self, responses: Sequence[int] = ()) -> dict[str, Any]:
        """The row as plain data, with local curves of the columns ``responses``."""
        context, subject = self._context, self._context.subject
        shares = subject.probabilities(self.raw[None])
        columns, neurons = self.columns, self.neurons
        return plain(
            {
                "row": self.number,
                "values": self.texts,
                "encoded": exactly(self.inputs),
                "raw": self.raw,
                "outputs": self.outputs,
                "prediction": self.prediction,
                "probabilities": None if shares is None else shares[0],
                "base": columns.base,
                "columns": columns.values.T,
                "method": columns.method,
                "errors": None if columns.errors is None else columns.errors.T,
                "neurons": {
                    "base": neurons.base,
                    "values": neurons.values.T,
                    "limit": neurons.limit,
                    "view": "exact" if context.head.view == "neurons" else "paths",
                },
                "curves": [curve(self.curves(column).T) for column in responses],
                "sentences": self.sentences,
                "changes": [self._change(change) for change in self.changes],
            }
        )

    def _change(self, change: Change) -> dict[str, Any]:
        context = self._context
        assert context.subject.classes is not None
        return {
            "columns": change.columns,
            "labels": change.labels,
            "encoded": exactly(change.encoded),
            "prediction": context.subject.classes[change.code],
            "distance": change.distance,
            "sentence": change_sentence(
                context.subject, context.axes, self.texts, change, f"row {self.number}"
            ),
        }

    def table(self) -> list[tuple[str, str, np.ndarray]]:
        """Name, value and contributions (outputs,) of each column, the largest first."""
        values = self.columns.values
        order = np.argsort(-np.abs(values).sum(axis=1), kind="stable").tolist()
        return [(self._context.axes[j].name, self.texts[j], values[j]) for j in order]

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        names = [axis.name for axis in self._context.axes]
        return contributions_html(self.sentences, names, self.texts, self.columns.values)
