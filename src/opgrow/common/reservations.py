"""How much the fits of a process may keep in memory only to save time.

A search is quicker if the features of its first pass are still there in the second. Many searches at the same
time, in threads of one fit or of several, together keep no more than a fixed number of bytes; what does not
fit is computed again, with the same results.
"""

from __future__ import annotations

import threading
import weakref

__all__ = ["TOTAL_BYTES", "Reservation", "reserve"]

#: Bytes that all searches of the process may keep.
TOTAL_BYTES = 1 << 30

_lock = threading.Lock()
_taken: weakref.WeakSet[Reservation] = weakref.WeakSet()


class Reservation:
    """Bytes that are taken for as long as this object, held beside what is kept, is there."""

    def __init__(self, size: int) -> None:
        self.size = size


def reserve(size: int) -> Reservation | None:
    """Take so many bytes, or None if they are too many beside those that others have taken."""
    with _lock:
        if size + sum(other.size for other in _taken) > TOTAL_BYTES:
            return None
        reservation = Reservation(size)
        _taken.add(reservation)
        return reservation
