"""Independent work on the processes of a joblib backend, such as Dask or Ray, that the user has chosen.

with joblib.parallel_backend("dask"):
POPClassifier().fit(X, y)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["n_workers", "spread"]

#: Tasks for each worker that are handed out at a time: what comes of them is known when all are done.
_TASKS = 4


def n_workers() -> int:
    """Workers of the joblib backend around this call; 0 where there is none, or it has threads alone."""
    from joblib.parallel import get_active_backend

    backend, n_jobs = get_active_backend()
    if backend.nesting_level or getattr(backend, "supports_sharedmem", False):
        return 0
    count = backend.effective_n_jobs(n_jobs)
    return count if count > 1 else 0


def spread(
    function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], ended: Callable[[], bool]
) -> Iterator[Any]:
    """What a function says of each tuple of arguments, in their order; None for those after an end."""
    from joblib import Parallel, delayed

    size = _TASKS * max(1, n_workers())
    for start in range(0, len(arguments), size):
        some = arguments[start : start + size]
        if ended():
            yield from [None] * len(some)
        else:
            yield from Parallel()(delayed(function)(*arguments) for arguments in some)
