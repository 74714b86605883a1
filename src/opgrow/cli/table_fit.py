"""``opgrow fit`` on a table file: the rows are read, encoded and fitted, and the model is written."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opgrow.cli import common, decisions
from opgrow.cli.checkpoint_folder import saved_on_signals
from opgrow.cli.fit_request import FitRequest
from opgrow.cli.outcome import HeldOut, Outcome
from opgrow.cli.training_table import column_names, features, same_labels, split_names, target_values

if TYPE_CHECKING:
    import numpy as np

    from opgrow.rows.tables import Table, TableEncoder

__all__ = ["fit_table"]


@dataclass(frozen=True)
class TrainingRows:
    """A table as an estimator takes it.

    Attributes
    ----------
    name : of the target
    task : "classification" or "regression"
    x, y : inputs and targets
    column : the target as the file has it
    encoder : what the estimator will learn about the inputs, learned before to tell of it
    decisions : what was found out about the table
    """

    name: str
    task: str
    x: Table
    y: np.ndarray
    column: np.ndarray
    encoder: TableEncoder
    decisions: list[decisions.Decision]


@dataclass(frozen=True)
class ValidationRows:
    """The rows of ``--validation``; ``column`` is the target as the file has it."""

    x: Table
    y: np.ndarray
    column: np.ndarray


def fit_table(request: FitRequest) -> None:
    """Fit an estimator on a table file and write the model, or tell what would be done."""
    from sklearn.base import clone

    from opgrow.cli.forecast import Encoded, forecast_of, show_plan, warn_of_memory
    from opgrow.distributed.launch import is_first, launched

    rows = read_training_rows(request)
    validation = None if request.validation is None else _read_validation_rows(request, rows)
    eval_set = held = None
    if validation is not None:
        eval_set = validation.x, validation.y
        held = Encoded.of(validation.x, rows.encoder), validation.y
    estimator = request.estimator(rows.task, rows.y if rows.task == "classification" else None)
    estimator.set_params(table=clone(rows.encoder))
    if not launched():  # a forecast counts all rows in this process
        forecast = forecast_of(estimator, Encoded.of(rows.x, rows.encoder), rows.y, held)
        if request.dry_run:
            if request.prints_decisions:
                decisions.print_decisions(rows.decisions)
            show_plan(forecast, estimator, request.output, rows.task, rows.name, request.as_json)
            return
        if not request.quiet:
            warn_of_memory(forecast)
    outcome, held_out = _grown(request, estimator, rows, eval_set)
    if not is_first():  # one of the others prints and writes
        return
    _finish(request, outcome, held_out, rows, validation)


def read_training_rows(request: FitRequest) -> TrainingRows:
    """Read and encode the table, and decide what is not said by options."""
    from opgrow.rows.tables import guess_task, read_table
    from opgrow.rows.tables.target_means import Target

    text = [name for item in request.text for name in (item, *split_names(item))]
    table = read_table(request.data, header=request.header, decimal=request.decimal, text=text)
    name, column = common.target_column(table, request.target, repr(str(request.data)))
    column = column.copy()  # a column of a matrix would keep the whole matrix
    guess = guess_task(column) if request.task == "auto" else None
    task = request.task if guess is None else guess.task
    request.check_parameters(task)
    if table.n_rows < 2:
        raise ValueError(f"{str(request.data)!r} has 1 row, and a fit needs at least 2.")
    inputs = features(table, name, list(request.drop))
    as_text = column_names(table, list(request.text))
    y = target_values(column, task, name, name in as_text)
    encoder = _encoder(request, table, name, as_text)
    with common.notes(quiet=True):  # the decisions have it
        encoder.learn(inputs, Target.of(y, task == "classification"))
    dropped = [other for other in table.names if other not in (*inputs.names, name)]
    lines = [
        decisions.file_decision(table),
        *decisions.target_decisions(name, column, task, None if guess is None else guess.reason),
        *decisions.column_decisions(encoder, dropped),
    ]
    lines.sort(key=lambda decision: decision[0] == "note")  # these last
    return TrainingRows(name, task, inputs, y, column, encoder, lines)


def _encoder(request: FitRequest, table: Table, target: str, as_text: list[str]) -> TableEncoder:
    from opgrow.rows.tables import TableEncoder

    as_numbers = column_names(table, list(request.numeric))
    if target in as_numbers:
        raise ValueError(
            f"--numeric concerns inputs: leave out the rows where the target {target!r} is text."
        )
    most = TableEncoder().max_categories if request.max_categories is None else request.max_categories
    return TableEncoder(most, tuple(name for name in as_text if name != target), tuple(as_numbers))


def _read_validation_rows(request: FitRequest, rows: TrainingRows) -> ValidationRows:
    """Read the table of ``--validation``; what is to be said of it is added to the decisions."""
    from opgrow.rows.tables import read_table

    assert request.validation is not None
    text = [name for item in request.text for name in (item, *split_names(item))]
    with common.notes(quiet=True) as notes:
        table = read_table(
            request.validation,
            header=request.header,
            decimal=request.decimal,
            text=[*text, *rows.encoder.text_columns],
        )
        column = common.target_column(table, rows.name, repr(str(request.validation)))[1].copy()
        rows.encoder.encode(table)
    rows.decisions.extend(("note", f"validation: {line}") for line in notes)
    return ValidationRows(table.drop(rows.name), same_labels(column, rows.y, rows.task, rows.name), column)


def _grown(request: FitRequest, estimator: Any, rows: TrainingRows, eval_set: Any) -> tuple[Outcome, HeldOut]:
    """Fit the estimator, with progress and decisions printed as they were asked for."""
    from opgrow.distributed.launch import fit_shares
    from opgrow.estimators.listeners.progress import Progress

    started = time.perf_counter()
    held_out = HeldOut()
    listeners: list[Any] = [decisions.PrintDecisions(rows.decisions)] if request.prints_decisions else []
    with Progress() as progress, saved_on_signals(request.folder):
        estimator.set_params(callbacks=[*listeners, held_out, *[progress] * request.shows_progress])
        with common.notes(quiet=True):
            fit_shares(estimator, rows.x, rows.y, eval_set)
    seconds = time.perf_counter() - started
    estimator.set_params(callbacks=None)
    return Outcome(estimator, rows.task, rows.name, len(rows.x), seconds, rows.decisions), held_out


def _finish(
    request: FitRequest,
    outcome: Outcome,
    held_out: HeldOut,
    rows: TrainingRows,
    validation: ValidationRows | None,
) -> None:
    """Write the model and the report, and print the scores."""
    from opgrow.estimators.files import save
    from opgrow.growth.checkpoints import clear

    estimator = outcome.estimator
    save(estimator, request.output, target=rows.name)  # first of all: what follows may fail
    with common.notes(quiet=True):
        outcome.scores["training"] = common.scores(estimator, rows.x, rows.column, rows.name)
        if validation is None:
            outcome.add_held_out(held_out)
        else:
            name = rows.name
            outcome.scores["validation"] = common.scores(estimator, validation.x, validation.column, name)
    if request.folder is not None:
        clear(request.folder)
    if request.report is not None:
        from opgrow.report import write_report

        write_report(
            estimator,
            request.report,
            *((None, None) if validation is None else (validation.x, validation.y)),
            target=rows.name,
            rows="validation rows, which also decided what was kept",
            file_bytes=request.output.stat().st_size,
        )
    request.announce(outcome)
