"""The footprint of networks that grow block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...operators import OperatorSet
from ...rows.search_sums import CACHE_BYTES, chunks
from ..search import SHORTLIST, SearchSettings, stages
from .base import DOUBLE, SINGLE, Footprint, Sizes, problem_bytes, scoring_bytes

__all__ = ["BlockFootprint"]


class _Settings(Protocol):
    n_min: int
    n_step: int
    step_share: float
    max_neurons: int
    max_layers: int
    sets: Sequence[OperatorSet]
    search: SearchSettings


class BlockFootprint(Footprint[object, _Settings]):
    """The largest features are those of a full layer; the largest work is the search of a block."""

    def n_parameters(self, n_inputs: int, n_outputs: int) -> int:
        """Layers of neurons with a bias and a batch norm below a head."""
        below, total, width = n_inputs, 0, self.settings.max_neurons
        for _ in range(self.settings.max_layers):
            total += width * (below + 3)
            below = width
        return total + (below + 1) * n_outputs

    def n_bytes(self, sizes: Sizes) -> int:
        width, first, later = self._widths()
        # Features are joined with those of a new block, so that they are there twice; of a layer below, once.
        features = SINGLE * sizes.n_all * width * (2 + (self.settings.max_layers > 1))
        places = ((0, first), (width - later, later))
        searches = (self._search(sizes, n, *stage) for n, m in places for stage in self._stages(m))
        return problem_bytes(sizes) + features + max(*searches, scoring_bytes(sizes, width, first))

    def cached_bytes(self, sizes: Sizes) -> int:
        """Features of candidates that the search of a block keeps; none where they are too many."""
        stages = (stage for m in self._widths()[1:] for stage in self._stages(m))
        of_stages = (SINGLE * k * m * sizes.n_rows for k, m in stages)
        return max((size for size in of_stages if size <= CACHE_BYTES), default=0)

    def _widths(self) -> tuple[int, int, int]:
        """Neurons of a layer, of its first block and of a later one."""
        width = max(self.settings.max_neurons, 1)
        first, share = min(self.settings.n_min, width), self.settings.step_share
        later = max(self.settings.n_step, int(width * share / (1 + share)))  # of a layer that it fills
        return width, first, min(later, max(width - first, 1))

    def _stages(self, m: int) -> list[tuple[int, int]]:
        """Candidates and neurons of each stage of a search for ``m`` neurons."""
        search, n_sets = self.settings.search, len(self.settings.sets)
        draws = search.n_draws * len(search.weight_ranges)
        return [(n * draws, size) for n, size in stages(m, n_sets, search)]

    def _search(self, sizes: Sizes, accepted: int, k: int, m: int) -> int:
        """A search of k candidates of m neurons: its cache, its chunks, solved candidates."""
        outputs, ridges = sizes.n_outputs, len(self.settings.search.ridges)
        rows = chunks(sizes.n_rows, k * m)[0].stop
        cached = SINGLE * k * m * sizes.n_rows
        # In each thread: raw features, their scaled copy, and the four pools that they are made from.
        gathering = SINGLE * m * rows * (2 * k + 4)
        # In each thread: features of the shortlist, standardised, without what the accepted ones explain,
        # and uncorrelated.
        scoring = SINGLE * 5 * min(k, SHORTLIST + SHORTLIST // 8) * m * rows
        # Sums and their standardised copies, and for each ridge the projection, the factor and the two heads.
        products = accepted * m + m * m + m * outputs
        solved = DOUBLE * k * ((3 + 2 * ridges) * products + (ridges + 1) * accepted * outputs)
        work = sizes.n_threads * max(gathering, scoring)
        return (cached if cached <= CACHE_BYTES else 0) + work + solved
