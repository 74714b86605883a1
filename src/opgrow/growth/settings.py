"""What every method needs to know before it grows a network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from ..training.settings import TuningSettings

__all__ = ["GrowthSettings"]


@dataclass(frozen=True, kw_only=True)
class GrowthSettings:
    """What every method needs to know; a family adds its own.

    Attributes
    ----------
    fine_tuning : of the whole network at the end; its loss is the one that the network is grown for
    criterion : what decides growth, one of `opgrow.training.scores.CRITERIA`
    max_layers, layer_threshold : bound on the depth, and the least relative improvement by a layer
    target : score with which the growth ends, or None
    max_parameters : of the network, or None
    logits : whether outputs are logits of classes, so that a closed-form head needs a temperature
    """

    fine_tuning: TuningSettings
    criterion: str = "loss"
    max_layers: int = 2
    layer_threshold: float = 1e-4
    target: float | None = None
    max_parameters: int | None = None
    logits: bool = False
    n_threads: int = 1

    def with_threads(self, n_threads: int) -> Self:
        """The same on another number of threads."""
        fine_tuning = replace(self.fine_tuning, n_threads=n_threads)
        return replace(self, n_threads=n_threads, fine_tuning=fine_tuning)
