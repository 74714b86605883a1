"""What moves in a report: the network as data, scripts that compute with it, and their places in the page."""

from .data import as_json, growth_data, live_data, reason_against, step_data
from .sections import block_parts, moving_sections, navigation, page_script, replay_parts, watching_page

__all__ = [
    "as_json",
    "block_parts",
    "growth_data",
    "live_data",
    "moving_sections",
    "navigation",
    "page_script",
    "reason_against",
    "replay_parts",
    "step_data",
    "watching_page",
]
