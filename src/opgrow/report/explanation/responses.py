"""How the outputs follow one column: averaged over rows, with the spread between rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...network import Block, Network
from .columns import Axis
from .subject import Subject

__all__ = ["Response", "is_additive", "response"]

#: Between these quantiles lie the curves of four rows out of five.
_BAND = (0.1, 0.9)


@dataclass(frozen=True, eq=False)
class Response:
    """Outputs as one column moves over its grid of G values.

    Attributes
    ----------
    column : its number
    view : "exact" if the outputs are sums of curves of single columns, else "averaged"
    mean, low, high : arrays (G, outputs): means over the background, and the band between which the curves of
        four rows out of five are once they are shifted to the same level
    interplay : part of how the outputs follow the column that differs between rows, from 0 to 1
    probability : means (G, classes) of the probabilities, or None
    """

    column: int
    view: str
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    interplay: float
    probability: np.ndarray | None


def response(subject: Subject, axis: Axis, number: int, background: np.ndarray) -> Response:
    """The response to a column, over background rows (n, inputs)."""
    moved = axis.put(background)
    n, size = moved.shape[:2]
    raw = subject.raw(moved.reshape(n * size, -1))
    curves = (raw @ subject.mix).reshape(n, size, -1)
    shares = subject.probabilities(raw)
    mean = curves.mean(axis=0)
    shifted = curves - curves.mean(axis=1, keepdims=True) + mean.mean(axis=0)
    low, high = np.quantile(shifted, _BAND, axis=0)
    total = np.square(curves - curves.mean(axis=1, keepdims=True)).sum(axis=1).mean(axis=0).sum()
    common = np.square(mean - mean.mean(axis=0)).sum()
    interplay = float(np.clip(1 - common / total, 0, 1)) if total > 0 else 0.0
    return Response(
        number,
        "exact" if is_additive(subject.network) else "averaged",
        mean,
        low,
        high,
        interplay,
        None if shares is None else shares.reshape(n, size, -1).mean(axis=0),
    )


def is_additive(network: Network) -> bool:
    """Whether outputs are sums of curves of single columns, by what the network consists of."""
    limits = (network.output_low, network.output_high, network.head_low, network.head_high)
    if isinstance(network.head, Block) or any(limit is not None for limit in limits):
        return False
    for number, layer in enumerate(network.layers):
        for block in layer:
            operators = block.operator_set
            summed = (operators.pool, operators.activation) == ("sum", "identity")
            if (
                not summed
                or block.normalization == "unit"
                or (number and operators.nodal != "multiplication")
            ):
                return False
    return True
