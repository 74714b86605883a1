"""The footprint of BLS."""

from __future__ import annotations

from typing import Protocol

from .base import SINGLE, Footprint, Sizes, problem_bytes, sum_bytes

__all__ = ["BroadFootprint"]


class _Settings(Protocol):
    n_min: int
    n_step: int
    max_neurons: int
    window_size: int


class BroadFootprint(Footprint[object, _Settings]):
    """Either the sparse autoencoders of the first step take most, or the last step with all nodes."""

    def n_parameters(self, n_inputs: int, n_outputs: int) -> int:
        most = self.settings.max_neurons
        width, enhancing = min(self.settings.n_min, most), 0
        size = width
        while size > 0:
            enhancing += size * (width + 1)
            size = min(self.settings.n_step, most - width)
            width += size
        return width * (n_inputs + 1) + enhancing + (2 * width + 1) * n_outputs

    def n_bytes(self, sizes: Sizes) -> int:
        width, inputs = self.settings.max_neurons, sizes.n_inputs
        # All nodes of before and with the new ones, and the feature nodes alone, joined.
        last = SINGLE * sizes.n_all * 5 * width + sum_bytes(sizes, 2 * width)
        # The sparse autoencoders reproduce the inputs beside a column of ones.
        first = SINGLE * sizes.n_rows * (inputs + 1) + sum_bytes(sizes, inputs + self.settings.window_size)
        return problem_bytes(sizes) + max(first, last)
