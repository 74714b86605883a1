"""The commands on folders of Parquet, NPZ or NPY files, which are read in chunks and never as a whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opgrow.cli import common
from opgrow.cli.checkpoint_folder import saved_on_signals
from opgrow.cli.training_table import split_names

if TYPE_CHECKING:
    import numpy as np

    from opgrow.cli.fit_request import FitRequest
    from opgrow.estimators.files import ModelFile
    from opgrow.rows.chunks import Source

__all__ = ["fit_folder", "model_inputs", "of_rows", "prediction_lines", "targets"]

#: Rows by which a fit says how well it predicts its own training rows.
_SCORED_ROWS = 100_000


def fit_folder(request: FitRequest) -> None:
    """Fit an estimator on a folder and write the model."""
    from opgrow.cli.decisions import PrintDecisions, target_decisions
    from opgrow.cli.outcome import HeldOut, Outcome
    from opgrow.distributed.launch import fit_shares, is_first
    from opgrow.estimators.files import save
    from opgrow.estimators.listeners.progress import Progress
    from opgrow.growth.checkpoints import clear
    from opgrow.rows.tables.table import as_column

    source, name = _opened(request.data, request.target, request.drop)
    first = source.read(0).y
    if first is None:
        raise ValueError(f"{str(request.data)!r} holds no targets: expected an array 'y' beside 'X'.")
    task, reason = _task(request.task, first)
    request.check_parameters(task)
    size = f"{source.n_rows:,} rows, {source.n_features:,} columns of numbers (otherwise: --drop)"
    decisions = [("table", size), *target_decisions(name, as_column(first, name), task, reason)]
    estimator = request.estimator(task)
    started = time.perf_counter()
    held_out = HeldOut()
    with Progress() as progress, saved_on_signals(request.folder):
        shown = [PrintDecisions(decisions)] * request.prints_decisions + [progress] * request.shows_progress
        estimator.set_params(callbacks=[held_out, *shown])
        fit_shares(estimator, source)
    seconds = time.perf_counter() - started
    estimator.set_params(callbacks=None)
    if not is_first():
        return
    save(estimator, request.output, target=name)  # first of all: what follows may fail
    outcome = Outcome(estimator, task, name, source.n_rows, seconds, decisions)
    outcome.scores["training"] = _scores(estimator, source, name)
    outcome.add_held_out(held_out)
    if request.folder is not None:
        clear(request.folder)
    request.announce(outcome)


def _task(task: str, first: np.ndarray) -> tuple[str, str | None]:
    """What to predict and why, from the targets of the first chunk where it is not said."""
    from opgrow.rows.tables import guess_task

    if task != "auto":
        return task, None
    guess = guess_task(first)
    return guess.task, f"in the first {len(first):,} rows {guess.reason}"


def _opened(folder: Path, target: str | None, drop: Sequence[str]) -> tuple[Source, str]:
    from opgrow.rows.chunks import open_source

    if not any(folder.rglob("*.parquet")):
        if drop:
            raise ValueError("--drop needs columns with names, and arrays have none.")
        return open_source(folder), "y" if target is None else target
    name = "target" if target is None else target
    columns = None
    if drop:
        names = [name for item in drop for name in split_names(item)]
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
    """The rows of a folder as the network of a model takes them, for `of_rows`."""
    from opgrow.rows.chunks import from_chunks, open_source
    from opgrow.rows.tables import Table

    names = getattr(model.estimator, "feature_names_in_", None)
    parquet = any(folder.rglob("*.parquet"))
    as_it_is = model.encoder is None and model.pipeline is None
    columns = names.tolist() if names is not None and as_it_is and parquet else None
    source = open_source(folder, None, columns)

    def chunk(number: int) -> tuple[np.ndarray]:
        x = source.read(number).x
        if x.shape[1] == model.estimator.n_features_in_ and as_it_is:
            return (x,)
        table = Table.from_matrix(x, source.feature_names)
        return (model.estimator.network_rows(common.inputs(model, table)),)

    return from_chunks(chunk, n_chunks=source.n_chunks, sizes=source.sizes.tolist())


def of_rows(model: ModelFile) -> ModelFile:
    """The model without its encoder, for rows that are encoded chunk by chunk."""
    return replace(model, estimator=model.estimator.of_rows())


def targets(folder: Path, target: str | None) -> tuple[str, np.ndarray]:
    """Name and values of the targets in a folder."""
    from opgrow.estimators.fit.sources import targets_of
    from opgrow.rows.chunks import open_source

    name = target or ("target" if any(folder.rglob("*.parquet")) else "y")
    return name, targets_of(open_source(folder, name))[0]


def prediction_lines(model: ModelFile, folder: Path, rows: Callable[..., str]) -> Iterator[bytes]:
    """CSV of the predictions, chunk by chunk; ``rows`` makes header and rows from inputs."""
    from opgrow.estimators.fit.sources import chunks_for

    source, plain = model_inputs(model, folder), of_rows(model)
    for number, chunk in enumerate(chunks_for(plain.estimator, source)):
        yield rows(plain, chunk.x, header=number == 0).encode()
