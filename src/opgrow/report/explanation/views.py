"""The views of a fitted network: columns, neurons and single rows, computed when they are asked for."""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from ...common.checks import is_integer
from ...network.scaling import spread_rows
from .columns import Axis
from .context import Context
from .pairs import Pair, pair
from .portraits import Curve, Portrait, portrait
from .responses import Response, response
from .subject import Quantity
from .way import Way

__all__ = ["Views"]

#: Rows whose contributions make the importance, and those that are predicted for one of them, about.
_IMPORTANCE, _BUDGET = 50, 1 << 12
#: Rows that show what neurons of a head with operators add.
_ADDED = 12
#: Columns of which all pairs are looked at.
_PAIRED = 6
#: Columns that averaged curves of neurons are about, and rows that they are averaged over.
_FOLLOWED, _FOLLOWING = 8, 64


class Views:
    """What can be asked of an explanation; `Explanation` shows it."""

    def __init__(
        self,
        estimator: Any,
        context: Context,
        rows: np.ndarray,
        values: list[np.ndarray] | None,
        source: str,
    ) -> None:
        self._estimator, self._context = estimator, context
        self._rows, self._values, self._source = rows, values, source
        self._ways = lru_cache(maxsize=256)(self._way)
        self._responses = lru_cache(maxsize=None)(self._response)

    @property
    def estimator(self) -> Any:
        """The estimator that is explained."""
        return self._estimator

    @property
    def columns(self) -> list[str]:
        """Names of the columns; those that the model leaves out are not among them."""
        return [axis.name for axis in self._context.axes]

    @property
    def outputs(self) -> list[str]:
        """Names of what is explained: log-odds, logits of classes, or targets."""
        return [quantity.name for quantity in self.quantities]

    @property
    def quantities(self) -> list[Quantity]:
        """What is explained, with its units."""
        return self._context.subject.quantities

    def __len__(self) -> int:
        return len(self._rows)

    # --- columns ---

    @cached_property
    def importance_rows(self) -> np.ndarray:
        """Numbers of the rows whose contributions make the importance: rows of X, or of the sample."""
        n = len(self._context.rows)
        return spread_rows(n, 0, n, _IMPORTANCE)

    @cached_property
    def importance(self) -> np.ndarray:
        """Mean size of the contributions of each column to each output: (columns, outputs)."""
        sizes = [self._context.sizes(int(i), _BUDGET) for i in self.importance_rows]
        return np.mean(sizes, axis=0)

    @property
    def order(self) -> list[int]:
        """Numbers of the columns, the most important first."""
        return np.argsort(-self.importance.sum(axis=1), kind="stable").tolist()

    def response(self, column: str | int) -> Response:
        """How the outputs follow a column, averaged over rows: a name or a number."""
        return self._responses(self.column_number(column))

    def _response(self, number: int) -> Response:
        context = self._context
        return response(context.subject, context.axes[number], number, context.background)

    def pair(self, first: str | int, second: str | int) -> Pair:
        """What two columns do together, averaged over rows."""
        columns = sorted({self.column_number(first), self.column_number(second)})
        if len(columns) < 2:
            raise ValueError(f"A pair needs two columns, got {self.columns[columns[0]]!r} twice.")
        context = self._context
        return pair(context.subject, context.axes, (columns[0], columns[1]), context.background)

    def pairs(self, most: int = 3) -> list[Pair]:
        """The pairs of important columns that do most together which they do not do apart."""
        every = [self.pair(*columns) for columns in combinations(self.order[:_PAIRED], 2)]
        return sorted(every, key=lambda one: -one.size)[:most]

    def axis(self, column: str | int) -> Axis:
        """The values of a column that are shown."""
        return self._context.axes[self.column_number(column)]

    def column_number(self, column: str | int) -> int:
        """The place of a column among `columns`."""
        names = self.columns
        if isinstance(column, str) and column in names:
            return names.index(column)
        if is_integer(column) and 0 <= int(column) < len(names):
            return int(column)
        known = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
        raise ValueError(f"There is no column {column!r}: the model has {known}.")

    def output_number(self, output: str | int) -> int:
        """The place of an output among `outputs`; classes go by their names, too."""
        names, classes = self.outputs, self._context.subject.classes
        if isinstance(output, str) and output in names:
            return names.index(output)
        if isinstance(output, str) and classes is not None and len(names) == 1 and output == classes[1]:
            return 0
        if is_integer(output) and 0 <= int(output) < len(names):
            return int(output)
        raise ValueError(f"There is no output {output!r}: the explanation has {', '.join(names[:20])}.")

    # --- neurons ---

    @cached_property
    def _added(self) -> np.ndarray:
        """What neurons add in rows of the background: (rows, neurons, outputs)."""
        context = self._context
        features = context.features
        if context.head.weights is None:
            some = features[spread_rows(len(features), 0, len(features), _ADDED)]
            return context.head.added(some, features, context.random(2))
        return (features - features.mean(axis=0))[..., None] * context.head.weights

    @cached_property
    def neuron_order(self) -> list[int]:
        """Numbers of the neurons that the head reads, those that change the outputs most first."""
        if not self._context.neurons:
            return []
        return np.argsort(-self._added.std(axis=0).sum(axis=1), kind="stable").tolist()

    def neurons(self, most: int = 12) -> list[Portrait]:
        """The neurons that matter most, with their curves and what they add."""
        return [self.neuron(number) for number in self.neuron_order[:most]]

    def neuron(self, number: int) -> Portrait:
        """One neuron that the head reads, by its number."""
        context = self._context
        n = len(context.neurons)
        if not is_integer(number) or not 0 <= number < n:
            raise ValueError(f"There is no neuron {number!r}: the head reads {n} neurons, from 0 on.")
        one = context.neurons[number]
        averaged = self._averaged(int(number)) if one.view == "averaged" else []
        added, weights = self._added[:, number], context.head.weights
        own = None if weights is None else weights[number]
        network, axes = context.subject.network, context.axes
        return portrait(network, axes, one, added, own, context.background, averaged)

    def _averaged(self, number: int) -> list[Curve]:
        """How a neuron follows the most important columns on average, the largest first."""
        curves = [Curve(j, values[:, number], float(values[:, number].std())) for j, values in self._followed]
        return sorted(curves, key=lambda curve: -curve.size)

    @cached_property
    def _followed(self) -> list[tuple[int, np.ndarray]]:
        """For the most important columns, what all neurons hand on at their values, on average."""
        context, means = self._context, []
        some = context.background[:_FOLLOWING]
        for j in self.order[:_FOLLOWED]:
            moved = context.axes[j].put(some)
            features = context.subject.network.features(moved.reshape(-1, moved.shape[2]))
            means.append((j, features.astype(np.float64).reshape(*moved.shape[:2], -1).mean(axis=0)))
        return means

    # --- rows ---

    def row(self, number: int) -> Way:
        """Why the network says what it says of one row of X, by its position from 0."""
        n = len(self._rows)
        if not is_integer(number) or not 0 <= number < n:
            raise ValueError(f"There is no row {number!r}: X has {n} rows, from 0 on.")
        return self._ways(int(number))

    def _way(self, number: int) -> Way:
        row, values = self._rows[number], self._values
        texts = [
            axis.text(row, None if values is None else values[j][number])
            for j, axis in enumerate(self._context.axes)
        ]
        return Way(self._context, number, row, texts)
