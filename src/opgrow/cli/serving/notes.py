"""What predictions warn of, by the request that they belong to.

`warnings.catch_warnings` changes what all threads do, so it is entered once for the whole server; each thread
then collects what is said about the rows of its own request.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opgrow.common.errors import RangeWarning, TableWarning

__all__ = ["heard", "listening"]

_HERE = threading.local()


@contextmanager
def listening() -> Iterator[None]:
    """While the server runs: warnings about rows go to the thread that gave them, and all others nowhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for category in (RangeWarning, TableWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = _note
        yield


@contextmanager
def heard() -> Iterator[list[str]]:
    """The warnings that this thread gives, as sentences, each of them once."""
    _HERE.notes = []
    try:
        yield _HERE.notes
    finally:
        _HERE.notes = None


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    notes = getattr(_HERE, "notes", None)
    if notes is not None and str(message) not in notes:
        notes.append(str(message))
