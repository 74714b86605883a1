"""Fits from sources, whose rows are read in chunks, and predictions for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from ..common.checks import is_auto
from ..common.team import current
from ..growth.checkpoints import NoFolder, kept_seed
from ..network.scaling import kept_sample
from ..rows.chunks.ahead import ahead
from ..rows.chunks.limits import check_memory_limit, total_memory
from ..rows.chunks.sources import Chunk, Source, from_arrays, memory_map, rows_at_once
from .chunk_problem import Opened, open_problem
from .listeners.base import check_callbacks
from .listeners.budget import budgets
from .parameters import check_common
from .presets import deepest

if TYPE_CHECKING:
    from .base import GrowingEstimator

__all__ = ["as_source", "chunks_for", "fit_source", "targets_of"]


def as_source(estimator: Any, x: Any, y: Any, sample_weight: Any) -> Source | None:
    """The source that a fit is to read, if it is to read one; None: the rows go into memory.

    Arrays that would take more than ``memory_limit`` are read in chunks, and so are memory maps that would
    take more than a quarter of the machine's memory. Not of what is free: a fit should not depend on that.
    What one rank reads in chunks, all of them do.
    """
    ranks = current()
    source = ranks.together(lambda: _wanted(estimator, x, y, sample_weight))
    if not ranks.largest(float(source is not None)):
        return None
    return ranks.together(lambda: from_arrays(x, y, sample_weight) if source is None else source)


def _wanted(estimator: Any, x: Any, y: Any, sample_weight: Any) -> Source | None:
    if isinstance(x, Source):
        if y is not None or sample_weight is not None:
            raise ValueError("a source has its own targets and weights: give neither y nor sample_weight")
        if not estimator._takes_sources:
            raise ValueError(
                f"{type(estimator).__name__} needs all rows in memory and takes no source: HeMLGOP, HoMLGOP, "
                "HeMLRN and HoMLRN do"
            )
        return x
    limit = check_memory_limit(getattr(estimator, "memory_limit", None))
    if not estimator._takes_sources or not isinstance(x, np.ndarray) or x.ndim != 2 or y is None:
        return None
    if x.dtype.kind not in "biuf" or (limit is None and memory_map(x) is None):
        return None
    most = _limit(estimator)
    if 4 * x.size <= most:  # the rows as float32
        return None
    rows = rows_at_once(x.shape[1], x.dtype, min(1 << 24, max(1, most // 32)))
    return from_arrays(x, y, sample_weight, chunk_rows=rows)


def _limit(estimator: Any) -> int:
    """Bytes for rows, in this process."""
    given = check_memory_limit(estimator.memory_limit)
    return total_memory() // 4 // current().neighbours if given is None else given


def fit_source(estimator: GrowingEstimator, source: Source, eval_set: Any, classification: bool) -> Opened:
    """Grow one network from a source; what was learned of the data is returned."""
    from .base import _name, _set_constants

    p: Any = estimator
    ranks = current()
    ranks.together(lambda: _check(p))
    p.n_features_in_ = source.n_features
    with suppress(AttributeError):
        del p.feature_names_in_
    if source.feature_names is not None:
        p.feature_names_in_ = np.array(source.feature_names, dtype=object)
    options = {} if classification else {"multi_output": True, "y_numeric": True}
    held = ranks.together(lambda: p._eval_rows(eval_set, **options))
    callbacks = [*check_callbacks(p.callbacks), *budgets(p.max_parameters, p.max_seconds)]
    bounds = [callback.max_parameters for callback in callbacks if callback.max_parameters is not None]
    one = copy(p)
    one.n_estimators, one.distill, one.max_layers = 1, None, deepest(p, 1)
    settings = replace(one._settings(classification), max_parameters=min(bounds, default=None))
    if settings.search.score == "loo":
        # With so many rows no single one matters, and one pass is enough.
        settings = replace(settings, search=replace(settings.search, score="gcv"))
    ranks.begin(one, source.n_features, None)
    seed = int(check_random_state(p.random_state).randint(2**31 - 1))
    if p.checkpoint_dir is not None and p.random_state is None:
        seed = kept_seed(p.checkpoint_dir) or seed
    seed = ranks.same_number(seed)
    opened = open_problem(
        source,
        classification=classification,
        class_weight=p.class_weight if classification else None,
        limit=_limit(p),
        validation_fraction=p.validation_fraction,
        eval_set=held,
        standardize=p.standardize,
        seed=seed,
        n_threads=settings.n_threads,
        owner=type(p).__name__,
        ranks=ranks,
    )
    ready = opened.preparation

    def finish(network: Any) -> None:
        _set_constants(network, ready.scaling, ready.ranges, ready.shift, ready.spread, not classification)

    def no_student(network: Any) -> Any:
        raise AssertionError("a network that is grown from a source has no student")

    problems = [lambda: ranks.shared(opened.problem)]
    backend = ranks.backend(opened.backend)
    grow = partial(one._grow, problems, no_student, finish, settings, seed, backend, callbacks)
    if p.checkpoint_dir is None:
        p.network_ = grow(NoFolder())
    else:
        identity = p._identity(f"StreamBackend{ranks.mark}", seed, opened.known(ranks))
        with ranks.checkpoint(p.checkpoint_dir, p.checkpoint_seconds, identity) as folder:
            p.network_ = grow(folder)
    p.sample_ = kept_sample(opened.sample)
    p.history_, p.loss_ = one.history_, _name(settings.fine_tuning.loss)
    return opened


def _check(p: Any) -> None:
    """Refuse what a source cannot do, before it is read."""
    check_common(p)
    if not is_auto(p.n_estimators) and p.n_estimators != 1:
        raise ValueError(
            f"one network is grown from a source: n_estimators must be 1 or 'auto', got {p.n_estimators!r}"
        )
    if p.distill is not None and not is_auto(p.distill):
        raise ValueError(
            f"a network that is grown from a source has no student: distill must be None or 'auto', "
            f"got {p.distill!r}"
        )
    if p.device not in ("auto", "cpu"):
        raise ValueError(f"a source is read on the CPU: device must be 'auto' or 'cpu', got {p.device!r}")


def chunks_for(estimator: Any, source: Source) -> Iterator[Chunk]:
    """The chunks of a source, in order, for an estimator that predicts them."""
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"the source has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and source.feature_names is not None and known.tolist() != source.feature_names:
        raise ValueError(
            f"the columns of the source are not those that {type(estimator).__name__} was fitted on, in "
            "their order: name them where the source is made (columns=clf.feature_names_in_)"
        )
    return ahead(source.read, range(source.n_chunks), 1)


def targets_of(source: Source) -> tuple[np.ndarray, np.ndarray | None]:
    """All targets and weights of a source."""
    chunks = [(chunk.y, chunk.weight) for chunk in source]
    found = [y for y, _ in chunks if y is not None]
    if len(found) < len(chunks):
        raise ValueError("the source has no targets to compare predictions with")
    weights = [weight for _, weight in chunks if weight is not None]
    return np.concatenate(found), np.concatenate(weights) if weights else None
