"""What moves in a report: the network as data, scripts that compute with it, and their places in the page."""

from .data import Rows, as_json, step_data
from .moving import Moving
from .sections import (
    block_parts,
    computed_parts,
    moving_sections,
    navigation,
    replay_parts,
    watching_page,
)

__all__ = [
    "Moving",
    "Rows",
    "as_json",
    "block_parts",
    "computed_parts",
    "moving_sections",
    "navigation",
    "replay_parts",
    "step_data",
    "watching_page",
]
