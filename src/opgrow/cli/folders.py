"""The commands on folders of Parquet, NPZ or NPY files, which are read in chunks and never as a whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opgrow.cli import common

if TYPE_CHECKING:
    import numpy as np

    from opgrow.cli.outcome import Outcome
    from opgrow.estimators.files import ModelFile
    from opgrow.rows.chunks import Source

__all__ = ["fit_folder", "model_inputs", "prediction_lines", "targets"]

#: Rows by which a fit says how well it predicts its own training rows.
_SCORED_ROWS = 100_000


def fit_folder(
    folder: Path,
    target: str | None,
    cls_of: Any,
    task: str,
    drop: list[str],
    settings: dict[str, Any],
    paper: str | None,
    shown: tuple[bool, bool],
) -> Outcome:
    """Fit an estimator on a folder.

    ``cls_of`` gives its class for a task, and complains of ``settings`` that it does not have. ``shown`` are
    progress, and what was decided.
    """
    from opgrow.cli.decisions import SayDecisions, target_decisions
    from opgrow.cli.outcome import HeldOut, Outcome
    from opgrow.distributed.launch import fit_shares, is_first
    from opgrow.estimators.listeners.progress import Progress
    from opgrow.rows.tables import guess_task
    from opgrow.rows.tables.table import as_column

    source, name = _opened(folder, target, drop)
    first = source.read(0).y
    if first is None:
        raise ValueError(f"{str(folder)!r} holds no targets: expected an array 'y' beside 'X'.")
    guess = guess_task(first) if task == "auto" else None
    chosen = task if guess is None else guess.task
    reason = None if guess is None else f"in the first {len(first):,} rows {guess.reason}"
    found = [
        ("table", f"{source.n_rows:,} rows, {source.n_features:,} columns of numbers (otherwise: --drop)"),
        *target_decisions(name, as_column(first, name), chosen, reason),
    ]
    cls = cls_of(chosen)
    estimator = cls(**settings) if paper is None else cls.paper(paper, **settings)
    started = time.perf_counter()
    rest = HeldOut()
    with Progress() as progress:
        listeners = [rest, *[SayDecisions(found)] * shown[1], *[progress] * shown[0]]
        estimator.set_params(callbacks=listeners)
        fit_shares(estimator, source)
    seconds = time.perf_counter() - started
    estimator.set_params(callbacks=None)
    outcome = Outcome(estimator, chosen, name, source.n_rows, seconds, found)
    if is_first():
        outcome.scores["training"] = _scores(estimator, source, name)
        outcome.add_held_out(rest)
    return outcome


def _opened(folder: Path, target: str | None, drop: list[str]) -> tuple[Source, str]:
    from opgrow.rows.chunks import open_source

    if not any(folder.rglob("*.parquet")):
        if drop:
            raise ValueError("--drop needs columns with names, and arrays have none.")
        return open_source(folder), "y" if target is None else target
    name = "target" if target is None else target
    columns = None
    if drop:
        names = [part.strip() for item in drop for part in item.split(",") if part.strip()]
        everything = open_source(folder, name).feature_names or []
        unknown = next((n for n in names if n not in everything), None)
        if unknown is not None:
            raise ValueError(f"{str(folder)!r} has no column {unknown!r} to drop.")
        columns = [n for n in everything if n not in names]
    return open_source(folder, name, columns), name


def _scores(estimator: Any, source: Source, name: str) -> dict[str, float]:
    """How well the first rows are predicted."""
    import numpy as np

    xs: list[Any] = []
    ys: list[Any] = []
    for chunk in source:
        xs.append(chunk.x)
        ys.append(chunk.y)
        if sum(map(len, xs)) >= _SCORED_ROWS:
            break
    return common.scores(estimator, np.concatenate(xs), np.concatenate(ys), name)


def model_inputs(model: ModelFile, folder: Path) -> Source:
    """The rows of a folder as a model takes them."""
    from opgrow.rows.chunks import from_chunks, open_source
    from opgrow.rows.tables import Table

    known = getattr(model.estimator, "feature_names_in_", None)
    parquet = any(folder.rglob("*.parquet"))
    columns = known.tolist() if known is not None and model.encoder is None and parquet else None
    source = open_source(folder, None, columns)

    def chunk(number: int) -> tuple[np.ndarray]:
        x = source.read(number).x
        if x.shape[1] == model.estimator.n_features_in_ and model.encoder is None:
            return (x,)
        return (common.inputs(model, Table.from_matrix(x, source.feature_names)),)

    return from_chunks(chunk, n_chunks=source.n_chunks, sizes=source.sizes.tolist())


def targets(folder: Path, target: str | None) -> tuple[str, np.ndarray]:
    """Name and values of the targets in a folder."""
    from opgrow.estimators.streaming import targets_of
    from opgrow.rows.chunks import open_source

    name = target or ("target" if any(folder.rglob("*.parquet")) else "y")
    return name, targets_of(open_source(folder, name))[0]


def prediction_lines(model: ModelFile, folder: Path, rows: Any, proba: bool) -> Iterator[bytes]:
    """CSV of the predictions, chunk by chunk; ``rows`` makes header and rows from inputs."""
    from opgrow.estimators.streaming import chunks_for

    for number, chunk in enumerate(chunks_for(model.estimator, model_inputs(model, folder))):
        yield rows(model, chunk.x, proba, header=number == 0).encode()
