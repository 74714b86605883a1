"""The size of networks whose layers are tuned together before anything is decided.

What one block adds to a network says little about what blocks in all layers are worth once they are tuned
together. So some networks of an average have layers of one block each, and the rows that the first of them
does not learn from decide how large these are: it is grown anew with twice the neurons for as long as that
makes it better. The others have the size that it has found. A family may begin with a network that grows
block by block, and all of them do if nothing is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...growth.settings import GrowthSettings
from .trials import Trial

__all__ = ["size_that_pays"]

#: By which part a larger network has to be better.
_WORTH = 0.02


def size_that_pays(
    sizes: Sequence[GrowthSettings], grow: Callable[[GrowthSettings], Trial]
) -> tuple[int, Trial]:
    """Grow networks, the smallest first, while the next one is better; the place of the best, and it."""
    place, best = 0, grow(sizes[0])
    for larger in sizes[1:]:
        if best.growth.stopped is not None or best.growth.enough(best.score):
            break
        trial = grow(larger)
        if not trial.score.improvement_over(best.score) >= _WORTH:
            break
        place, best = place + 1, trial
    return place, best
