"""Fits that torchrun has started: it says in environment variables which rank a process is."""

from __future__ import annotations

import os
from typing import Any

from ..estimators.fit.tables import adopt, learned_matrix
from ..rows.chunks.sources import Source
from ..rows.tables import Table

__all__ = ["fit_shares", "is_first", "launched", "restarted", "share_of"]


def launched() -> bool:
    """Whether torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_first() -> bool:
    """Whether this process prints and writes: rank 0, or one that torchrun has not started."""
    return not launched() or os.environ["RANK"] == "0"


def restarted() -> bool:
    """Whether torchrun has started this process in place of one that was lost."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"


def share_of(n_rows: int, rank: int, size: int) -> slice:
    """The rows of a rank: consecutive ones, as many for each rank as can be."""
    return slice(n_rows * rank // size, n_rows * (rank + 1) // size)


def fit_shares(estimator: Any, x: Any, y: Any = None, eval_set: tuple[Any, Any] | None = None) -> None:
    """Fit an estimator; under torchrun together with the other ranks, each with its share of the rows.

    ``x`` and ``y`` are arrays, or ``x`` is a table or a source.
    """
    if not launched():
        estimator.fit(x, y, eval_set=eval_set)
        return
    encoder = None
    if isinstance(x, Table):  # which all ranks have as a whole, so that all learn the same
        encoder, x = learned_matrix(estimator, x, y)
        if eval_set is not None:
            eval_set = encoder.encode(eval_set[0]), eval_set[1]
    _fit_share(estimator, x, y, eval_set)
    if encoder is not None:
        adopt(estimator, encoder)


def _fit_share(estimator: Any, x: Any, y: Any, eval_set: tuple[Any, Any] | None) -> None:
    import torch.distributed as dist

    from .fitting import fit
    from .rendezvous import process_group

    with process_group(estimator.device):
        rank, size = dist.get_rank(), dist.get_world_size()
        if isinstance(x, Source):
            fit(estimator, x.shard(rank, size))
            return
        rows = share_of(len(x), rank, size)
        if eval_set is not None:
            held = share_of(len(eval_set[0]), rank, size)
            eval_set = eval_set[0][held], eval_set[1][held]
        fit(estimator, x[rows], y[rows], eval_set=eval_set)
