"""Fitting an estimator on the ranks of a process group."""

from __future__ import annotations

from typing import Any, TypeVar

import torch.distributed as dist

from ..common.team import sharing
from .group import Group
from .ranks import Ranks

__all__ = ["TIMEOUT", "fit"]

Estimator = TypeVar("Estimator")
#: Seconds after which a rank that neither answers nor has ended counts as lost.
TIMEOUT = 600.0


def fit(
    estimator: Estimator,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    eval_set: Any = None,
    *,
    timeout: float = TIMEOUT,
) -> Estimator:
    """Fit an estimator together with the other ranks of the initialised process group.

    Every rank calls this with an estimator of the same parameters and with its own rows. All of them end up
    with the same network: that of the rows of all ranks, in the order of the ranks, however they are divided.
    Callbacks and ``verbose`` count on rank 0 alone.

    Parameters
    ----------
    estimator : an estimator of HeMLGOP, HoMLGOP, HeMLRN or HoMLRN
    X, y, sample_weight : the rows of this rank, as ``estimator.fit`` takes them: arrays, or a source
    eval_set : pair (X, y), optional
        Validation rows of this rank. All ranks have some, or none.
    timeout : float
        Seconds that a rank waits for one that neither answers nor has ended.

    Returns
    -------
    estimator : fitted, with ``traffic_``, a dictionary from what was shared to the number of calls and of
        bytes that this rank handed over

    Examples
    --------
    >>> import torch.distributed as dist
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import HeMLRNClassifier, distributed
    >>> store = dist.HashStore()  # torchrun does this for you, with as many ranks as you like
    >>> dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = distributed.fit(HeMLRNClassifier(n_min=10, random_state=0), X, y)
    >>> bool(clf.score(X, y) > 0.9)
    True
    >>> dist.destroy_process_group()
    """
    if not (dist.is_available() and dist.is_initialized()):
        raise RuntimeError(
            "opgrow.distributed.fit needs a process group: start the program with torchrun and fit inside "
            "'with opgrow.distributed.process_group():'"
        )
    group = Group(timeout)
    ranks = Ranks(group)
    try:
        if len(set(group.numbers(eval_set is not None, "facts"))) > 1:
            raise ValueError(
                "eval_set was given on some ranks and not on others: all ranks need one, or none"
            )
        with sharing(ranks):
            estimator.fit(X, y, sample_weight=sample_weight, eval_set=eval_set)  # type: ignore[attr-defined]
        estimator.traffic_ = {what: tuple(sent) for what, sent in group.traffic.items()}  # type: ignore[attr-defined]
    finally:
        group.close()
    return estimator
