"""A fitted network that computes in a page: its description as data, and the scripts that read it."""

from .data import live_data
from .scripts import scripts_for

__all__ = ["live_data", "scripts_for"]
