"""Cells: the rows that are always computed together, however many ranks there are.

Kernels compute tiles of rows, and the sums of a tile or a chunk depend in their last bits on the rows in it.
All rows, in the order of the ranks, are therefore cut into a fixed number of cells of equal size; no tile and
no chunk crosses their borders. Sums over cells are in double precision, and are added in pairs, pairs of
pairs and so on, within a rank and between ranks that share memory. Where shards end at borders of cells, as
those of 1, 2, 4 and 8 ranks with equal shares do, no bit of these sums shows the number of ranks.
"""

from __future__ import annotations

import numpy as np

__all__ = ["CELLS", "cell_cuts"]

CELLS = 8


def cell_cuts(numbers: np.ndarray, total_rows: int) -> tuple[int, ...]:
    """Where in ``numbers``, sorted numbers among ``total_rows`` rows, each cell begins, but for the first."""
    borders = [total_rows * cell // CELLS for cell in range(1, CELLS)]
    return tuple(np.searchsorted(numbers, borders).tolist())
