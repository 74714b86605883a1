"""What rows of one rank know of those of all ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..common.team import Alone

__all__ = ["RankRows"]


class RankRows(ABC):
    """The rows of one rank: their weight is summed over all ranks once, when it is first asked for."""

    team: Alone
    _total_weight: float | None

    @property
    def total_weight(self) -> float:
        if self._total_weight is None:
            self._total_weight = float(self.team.sum(self._weight_here(), "moments"))
        return self._total_weight

    @abstractmethod
    def _weight_here(self) -> float:
        """The weight of the rows of this rank."""
