"""Growth of one layer whose work is known beforehand: what is measured on many rows and on ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..growth.events import GrowthStep

__all__ = ["block_steps", "one_layer", "phase_seconds"]


def one_layer(first: int, step: int, n_blocks: int) -> dict[str, Any]:
    """Parameters of an estimator: one layer of so many blocks, all of which are kept."""
    return {
        "n_min": first,
        "n_step": step,
        "max_neurons": first + step * (n_blocks - 1),
        "max_layers": 1,
        "block_threshold": -1e9,
        "learning_rates": (0.01,),
        "dropout": 0.0,
        "random_state": 0,
    }


def block_steps(history: Iterable[GrowthStep]) -> list[GrowthStep]:
    """The steps that have tried a block, without the tuning of the whole network."""
    return [step for step in history if step.kind == "block"]


def phase_seconds(steps: Sequence[GrowthStep]) -> tuple[float, float]:
    """Seconds of all searches and of all tuning."""
    return sum(step.search_seconds for step in steps), sum(step.tuning_seconds for step in steps)
