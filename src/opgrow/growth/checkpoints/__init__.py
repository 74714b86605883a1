"""Growth that outlives its process: what is done is kept in a folder, and a later fit goes on from there."""

from ...common.interruption import Interrupted
from .folder import Folder, NoFolder, clear, holds_a_fit, kept_seed, opened
from .identity import Identity
from .journal import Journal, journal_of

__all__ = [
    "Folder",
    "Identity",
    "Interrupted",
    "Journal",
    "NoFolder",
    "clear",
    "holds_a_fit",
    "journal_of",
    "kept_seed",
    "opened",
]
