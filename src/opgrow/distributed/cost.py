"""What the ranks send each other, as formulas: bytes that every rank hands over, whatever the number of rows.

An all-reduce in a ring moves about twice these bytes in and out of each machine.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["epoch_bytes", "search_bytes", "step_bytes"]


def search_bytes(candidates: int, neurons: int, accepted: int, outputs: int) -> int:
    """The sums of one search, in double precision, and the constants before them, in single precision.

    Examples
    --------
    >>> search_bytes(candidates=144, neurons=40, accepted=0, outputs=2)
    2027552
    """
    k, m, p, c = candidates, neurons, accepted, outputs
    sums = k * m + k * m * m + p * k * m + k * m * c + p + p * p + p * c + c + 2
    return 8 * sums + 4 * 2 * k * m


def step_bytes(widths: Sequence[int], n_parameters: int) -> int:
    """One step of tuning: two sums for each feature forward and back, and the gradient with the loss.

    Parameters
    ----------
    widths : neurons of each layer that is tuned
    n_parameters : of these layers and the head
    """
    return 2 * 2 * 8 * sum(widths) + 8 * (n_parameters + 1)


def epoch_bytes(widths: Sequence[int], n_parameters: int, n_batches: int) -> int:
    """An epoch: its steps, the sizes of its batches, the statistics for its score, and its four sums."""
    return n_batches * (step_bytes(widths, n_parameters) + 8) + 2 * 8 * sum(widths) + 4 * 8
