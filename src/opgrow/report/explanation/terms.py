"""What a neuron's activation is applied to, as terms of single columns, of pairs and of triples of columns.

A sum pool adds one term for each input. Correlations add products of two or three neighbouring inputs, which
are terms of as many columns, or of fewer where one column became several inputs. Together with the bias the
terms are the whole number, and not an approximation of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from ...common.extras import require_torch
from ...network import Network
from ...network.scaling import squash
from ...operators.kinds import Nodal
from .columns import Axis

__all__ = ["Terms", "nodal_values", "standardized"]

#: The columns of a term, by their numbers.
Columns = tuple[int, ...]


def standardized(network: Network, rows: np.ndarray, inputs: slice = slice(None)) -> np.ndarray:
    """Some inputs of rows as the first layer sees them, in single precision as the network does it."""
    z = (np.asarray(rows, np.float64) - network.input_mean[inputs]) / network.input_scale[inputs]
    return squash(z, network.input_bound).astype(np.float32).astype(np.float64)


def nodal_values(operator: Nodal, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """psi(y, w) in double precision, of arrays that broadcast."""
    if operator.formula is not None:
        with np.errstate(all="ignore"):
            return np.asarray(operator.formula(y, w), np.float64)
    torch = require_torch(f"The nodal operator {operator.name!r}")
    with torch.no_grad():
        return operator.function(torch.from_numpy(y), torch.from_numpy(w)).numpy()


class Terms:
    """The terms of one neuron that reads the inputs.

    Parameters
    ----------
    network : Network
    axes : the columns
    operator : nodal operator of the neuron
    window : neighbouring inputs whose psi are multiplied, 1 for sums; 0 for maxima
    weight : array (inputs,)
    """

    def __init__(
        self, network: Network, axes: Sequence[Axis], operator: Nodal, window: int, weight: np.ndarray
    ) -> None:
        self._network, self._axes = network, axes
        self._operator, self.window = operator, window
        self._weight = np.asarray(weight, np.float64)
        self._column_of = np.empty(len(weight), int)
        for number, axis in enumerate(axes):
            self._column_of[axis.inputs] = number
        self.columns: list[Columns] = list(self._products)

    @property
    def _products(self) -> dict[Columns, list[int]]:
        """The columns of terms, and the first inputs of their products."""
        width = max(1, self.window)
        products: dict[Columns, list[int]] = {}
        for first in range(len(self._weight) - width + 1):
            columns = tuple(name for name, _ in groupby(self._column_of[first : first + width].tolist()))
            products.setdefault(columns, []).append(first)
        return products

    def at(self, rows: np.ndarray) -> dict[Columns, np.ndarray]:
        """The terms for rows of inputs as users have them: (n,) each."""
        psi = nodal_values(self._operator, standardized(self._network, rows), self._weight)
        return {columns: self._pooled(psi, firsts, 0) for columns, firsts in self._products.items()}

    def _pooled(self, psi: np.ndarray, firsts: list[int], offset: int) -> np.ndarray:
        places = np.array(firsts) - offset
        if self.window == 0:
            return psi[..., places].max(axis=-1)
        products = np.ones((*psi.shape[:-1], len(places)))
        for step in range(self.window):
            products *= psi[..., places + step]
        return products.sum(axis=-1)

    def curve(self, column: int) -> np.ndarray:
        """The term of one column at the values of its grid: (G,)."""
        axis = self._axes[column]
        return self._pooled(self._grid_psi(axis), self._products[(column,)], axis.start)

    def map(self, columns: Columns, fixed: dict[int, int]) -> np.ndarray:
        """The term of two columns at the values of their grids, (G1, G2); a third one is ``fixed`` on its."""
        free = [column for column in columns if column not in fixed]
        shape = [len(self._axes[column].encoded) for column in free]
        parts = []
        for column in columns:
            psi = self._grid_psi(self._axes[column])
            if column in fixed:
                psi = psi[fixed[column]][None, None]
            else:
                psi = psi[:, None] if column == free[0] else psi[None]
            parts.append(np.broadcast_to(psi, (*shape, psi.shape[-1])))
        whole = np.concatenate(parts, axis=-1)
        return self._pooled(whole, self._products[columns], self._axes[columns[0]].start)

    def _grid_psi(self, axis: Axis) -> np.ndarray:
        z = standardized(self._network, axis.encoded, axis.inputs)
        return nodal_values(self._operator, z, self._weight[axis.inputs])
