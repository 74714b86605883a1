"""The footprint of POP, its variants and PMLP, which grow layers of given widths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...operators import OperatorSet
from .base import DOUBLE, SINGLE, Footprint, Sizes, problem_bytes, scoring_bytes, sum_bytes

__all__ = ["LayerFootprint"]


class _Method(Protocol):
    @property
    def memory(self) -> str | None: ...


class _Settings(Protocol):
    widths: Sequence[int]
    sets: Sequence[OperatorSet]
    memory: str


class LayerFootprint(Footprint[_Method, _Settings]):
    """Each layer is trained on the outputs of the one before, of which nothing else stays in memory."""

    def n_parameters(self, n_inputs: int, n_outputs: int) -> int:
        where, widths = self.method.memory, self.settings.widths
        below, total = n_inputs, 0
        for number, width in enumerate(widths, 1):
            memory = 0 if where is None else below if self.settings.memory == "pca" else n_outputs - 1
            if where == "hidden" and number == len(widths):
                memory = 0  # which the next layer would see
            total += (width + memory) * (below + 3)
            below = width + memory
        return total + (below + 1) * n_outputs

    def n_bytes(self, sizes: Sizes) -> int:
        where = self.method.memory
        most, before, below = 0, 0, sizes.n_inputs
        for number, width in enumerate(self.settings.widths, 1):
            # Inputs of the layer, of which the first one's are those of the problem.
            inputs = SINGLE * sizes.n_all * (below if number > 1 else 0)
            seen = 0
            if where == "output":
                seen = self._n_directions(below, sizes)
                most = max(most, inputs + _projecting(below, seen, sizes))
            elif where == "hidden" and number > 1:
                memory = self._n_directions(before, sizes)
                most = max(most, inputs + _projecting(before, memory, sizes))
                below += memory
                inputs = SINGLE * sizes.n_all * (below + (before if number > 2 else 0))
            # Features, and a memory that the head sees, are there twice while they are joined.
            features = 2 * SINGLE * sizes.n_all * (width + seen)
            work = max(self._training(sizes, below, width, seen), scoring_bytes(sizes, width + seen, width))
            most = max(most, inputs + features + work)
            before, below = below, width + seen
        return problem_bytes(sizes) + most

    def _training(self, sizes: Sizes, n_inputs: int, width: int, seen: int) -> int:
        """In each thread the order of the rows and the outputs; and the parameters of all candidates."""
        threads = sizes.n_threads * (DOUBLE * sizes.n_rows + SINGLE * sizes.n_scored * sizes.n_outputs)
        n_parameters = (n_inputs + 3) * width + (width + seen + 1) * sizes.n_outputs
        return threads + SINGLE * n_parameters * (len(self.settings.sets) + 6 * sizes.n_threads)

    def _n_directions(self, n_inputs: int, sizes: Sizes) -> int:
        """Directions of a memory: PCA keeps the fewest with nearly all of the energy, at worst all."""
        return n_inputs if self.settings.memory == "pca" else min(n_inputs, sizes.n_outputs)


def _projecting(n_inputs: int, n_directions: int, sizes: Sizes) -> int:
    """A projection takes a standardised copy of its inputs; then its products, in double precision thrice."""
    scatter = SINGLE * sizes.n_rows * n_inputs + sum_bytes(sizes, n_inputs)
    return max(scatter, sizes.n_rows * n_directions * (SINGLE + 3 * DOUBLE))
