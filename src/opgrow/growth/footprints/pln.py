"""The footprint of PLN."""

from __future__ import annotations

from typing import Protocol

from .base import SINGLE, Footprint, Sizes, problem_bytes, sum_bytes

__all__ = ["PLNFootprint"]


class _Settings(Protocol):
    n_step: int
    max_neurons: int
    max_layers: int


class PLNFootprint(Footprint[object, _Settings]):
    """A layer is there twice: as it is, and with the random neurons that are tried."""

    def n_parameters(self, n_inputs: int, n_outputs: int) -> int:
        width = self._width(n_outputs)
        hidden = n_inputs * width + (self.settings.max_layers - 1) * width**2
        return hidden + (width + 1) * n_outputs

    def n_bytes(self, sizes: Sizes) -> int:
        width, structured = self._width(sizes.n_outputs), 2 * sizes.n_outputs
        below = width if self.settings.max_layers > 1 else 0
        # Inputs of the layer, what is carried on, and twice the random neurons and the features: those that
        # stay and those that are tried.
        columns = below + structured + 2 * (width - structured) + 2 * width
        first = sum_bytes(sizes, min(sizes.n_inputs, sizes.n_rows))
        return problem_bytes(sizes) + max(first, SINGLE * sizes.n_all * columns + sum_bytes(sizes, width))

    def _width(self, n_outputs: int) -> int:
        structured, most = 2 * n_outputs, self.settings.max_neurons
        return most if most > structured else structured + self.settings.n_step
