"""How ranks that torchrun has started find each other.

torchrun keeps one store for all its restarts, and addresses of ranks that are gone stay in it: a rank that
has just been started may read these and try to connect to them (PyTorch issue 135712). So before anything
else the ranks agree on a word that none of their predecessors knew, and put it before the names of all else.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["meet", "process_group"]

#: Seconds that ranks wait for each other in the beginning.
PATIENCE = 300.0
_PAUSE = 0.02


@contextmanager
def process_group(device: str = "auto") -> Iterator[None]:
    """Join the other ranks that torchrun has started, as often as it restarts them.

    Inside, ``torch.distributed`` is initialised: over NCCL if every rank of this machine has a GPU of its
    own, else over gloo.

    Parameters
    ----------
    device : str, default="auto"
        As in the estimators; "cpu" does without GPUs.

    Examples
    --------
    >>> with distributed.process_group():  # doctest: +SKIP
    ...     clf = distributed.fit(HeMLGOPClassifier(), X, y)
    """
    import torch
    import torch.distributed as dist

    local, here = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    gpus = torch.cuda.device_count() if device != "cpu" and dist.is_nccl_available() else 0
    if gpus:
        torch.cuda.set_device(local % gpus)
    store, rank, size = next(dist.rendezvous("env://"))
    store = dist.PrefixStore(meet(store, rank, size), store)
    backend = "nccl" if here <= gpus else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    try:
        yield
    finally:
        dist.destroy_process_group()


def meet(store: Any, rank: int, size: int, patience: float = PATIENCE) -> str:
    """A word of rank 0 that all ranks of this start know, and no others.

    A rank says hello with a word of its own, and takes a welcome that repeats this word. Rank 0 answers every
    hello, also one that a predecessor has left, until all ranks have thanked it for the word of today.
    """
    own, deadline = secrets.token_hex(8), time.monotonic() + patience
    if rank > 0:
        store.set(f"opgrow/hello/{rank}", own)
        while True:
            answered, _, word = _read(store, f"opgrow/welcome/{rank}").partition(" ")
            if answered == own:
                store.set(f"opgrow/thanks/{rank}", word)
                return word
            _pause(deadline, rank, "rank 0", patience)
    answers: dict[int, str] = {}
    missing = list(range(1, size))
    while missing:
        for other in missing:
            hello = _read(store, f"opgrow/hello/{other}")
            if hello != answers.get(other, ""):
                store.set(f"opgrow/welcome/{other}", f"{hello} {own}")
                answers[other] = hello
        missing = [other for other in missing if _read(store, f"opgrow/thanks/{other}") != own]
        if missing:
            _pause(deadline, 0, f"rank {missing[0]}", patience)
    return own


def _read(store: Any, key: str) -> str:
    return store.get(key).decode() if store.check([key]) else ""


def _pause(deadline: float, rank: int, whom: str, patience: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError(f"rank {rank} has waited {patience:.0f} s for {whom}, which does not answer")
    time.sleep(_PAUSE)
