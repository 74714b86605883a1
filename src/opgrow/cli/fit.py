"""``opgrow fit``: from a table file to a model file."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from opgrow.cli import common
from opgrow.cli.folders import fit_folder
from opgrow.cli.parameters import check_parameters, class_weight
from opgrow.cli.training_table import (
    column_names,
    features,
    same_labels,
    split_names,
    target_values,
    text_columns,
)
from opgrow.common.assignments import parse_parameters

__all__ = ["fit"]


class Method(StrEnum):
    """The methods, by the names of their estimators."""

    HeMLGOP = "HeMLGOP"
    HoMLGOP = "HoMLGOP"
    HeMLRN = "HeMLRN"
    HoMLRN = "HoMLRN"
    POP = "POP"
    POPFast = "POPFast"
    POPMemO = "POPMemO"
    POPMemH = "POPMemH"
    PMLP = "PMLP"
    PLN = "PLN"
    BLS = "BLS"


class Task(StrEnum):
    """What to predict."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class Scale(StrEnum):
    """The two kinds of problems in the paper."""

    small = "small"
    large = "large"


def fit(
    data: Annotated[
        Path,
        typer.Argument(
            help="Table to learn from: .csv, .csv.gz, .parquet, .npz; or a folder of .parquet, .npz or .npy "
            "files, which is read in chunks and may be larger than memory."
        ),
    ],
    target: Annotated[
        str | None, typer.Option(help="Column to predict. Default: the column named 'target'.")
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            case_sensitive=False,
            help="HeMLGOP: blocks with operators of their own, tuned; HoMLGOP: one operator set a layer; "
            "HeMLRN, HoMLRN: the same with random weights. POP, POPFast, POPMemO, POPMemH: whole layers, all "
            "operator sets trained, which takes long; PMLP: layers of perceptrons. PLN, BLS: random weights "
            "below a closed-form head. Capitals do not matter.",
        ),
    ] = Method.HeMLGOP,
    task: Annotated[
        Task,
        typer.Option(
            help="auto: text, at most 20 different whole numbers, and more of them that look like codes "
            "(from 0 or 1 without gaps, about equally frequent) are classes; what was chosen is printed."
        ),
    ] = Task.auto,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")] = Path(
        "model.safetensors"
    ),
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns to leave out, separated by commas.", metavar="NAMES")
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Columns to take as categories, although they hold numbers.", metavar="NAMES"),
    ] = None,
    numeric: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to take as numbers, although they hold text; whatever is no number is missing.",
            metavar="NAMES",
        ),
    ] = None,
    max_categories: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Categories of a text column that are kept apart; rare ones beyond these are pooled as one. "
            "Default: 100.",
        ),
    ] = None,
    header: common.Header = None,
    decimal: common.Decimal = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            help="A parameter of the estimator, such as n_min=20 or widths=[40,40]; may be repeated.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(help="Table whose rows decide what is kept, instead of a fifth of the training rows."),
    ] = None,
    paper: Annotated[
        Scale | None, typer.Option(help="Start from the paper's settings for small or large problems.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="HTML page to write on what was grown and how; with --validation, also on how good it is."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder to save the growth in, after every step and every minute "
            "(-p checkpoint_seconds=60), until the model is written."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the fit that the folder of --checkpoint holds, or begin it; default: the model "
            "file's name and '.checkpoint'.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(help="Threads; -1 for all cores. Default: all cores, or as many as torch uses."),
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda or cuda:N. auto: a GPU for a million values or more.")
    ] = "auto",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check data and parameters, print what would be done and its memory, and stop."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object about the result.")] = False,
) -> None:
    """Grow a network from a table and save it.

    Text columns are one-hot encoded and missing values filled in; both travel in the model file, so that
    'opgrow predict' takes tables like this one. What was found out about the table is printed, with the
    option that says otherwise. Under torchrun, the ranks share the rows and rank 0 writes.
    """
    from opgrow import estimators
    from opgrow.cli import decisions
    from opgrow.cli.outcome import HeldOut, Outcome
    from opgrow.cli.plan import MemoryWatch, Planned, show_plan
    from opgrow.common.atomic import check_writable
    from opgrow.distributed.launch import fit_shares, is_first, launched
    from opgrow.estimators.files import save
    from opgrow.estimators.listeners.progress import Progress
    from opgrow.growth.checkpoints import clear
    from opgrow.growth.devices import check_device
    from opgrow.rows.tables import TableEncoder, guess_task, read_table

    check_writable(output)
    for table_file in (data, validation):
        if table_file is not None:
            common.refuse_to_replace(table_file, output, "the table")
    common.require_suffix(output, ".safetensors", "A model")
    if report is not None:
        _check_report(report, output, data, validation)
    check_device(device)
    # Whoever reads JSON in a pipe reads no lines beside it.
    shown = not (quiet or (as_json and not sys.stderr.isatty()))
    told = not (quiet or as_json)
    if launched() and dry_run:
        raise ValueError("--dry-run tells of one process: run it without torchrun.")
    folder = None if dry_run else _checkpoint_folder(checkpoint, resume, output)
    given = parse_parameters(param or [])
    if data.is_dir():
        if validation is not None or report is not None:
            raise ValueError("A folder is read in chunks: --validation and --report need a table file.")
        if dry_run:
            raise ValueError(
                "A folder is read in chunks, by -p memory_limit=...: --dry-run needs a table file."
            )
        if text or numeric or not all(option is None for option in (max_categories, header, decimal)):
            raise ValueError(
                "A folder has columns of numbers: --text, --numeric, --max-categories, --header and "
                "--decimal need a table file."
            )

        def class_of(chosen: str) -> Any:
            face = "Classifier" if chosen == "classification" else "Regressor"
            classes = {m: getattr(estimators, m + face) for m in Method}
            check_parameters(given, classes[method], classes)
            return classes[method]

        settings = {"random_state": seed, "n_jobs": jobs, "device": device, "checkpoint_dir": folder} | given
        scale = None if paper is None else paper.value
        with _saved_on_signals(folder):
            outcome = fit_folder(
                data, target, class_of, task.value, drop or [], settings, scale, (shown, told)
            )
        if not is_first():
            return
        save(outcome.estimator, output, target=outcome.target)
        if folder is not None:
            clear(folder)
        if as_json:
            common.print_json(outcome.to_dict(output))
        elif not quiet:
            outcome.show(output, None)
        return
    kept = [name for item in text or [] for name in (item, *split_names(item))]
    table = read_table(data, header=header, decimal=decimal, text=kept)
    name, values = common.target_column(table, target, repr(str(data)))
    values = values.copy()  # a column of a matrix would keep the whole matrix
    guess = guess_task(values) if task is Task.auto else None
    chosen = task.value if guess is None else guess.task
    face = "Classifier" if chosen == "classification" else "Regressor"
    classes = {m: getattr(estimators, m + face) for m in Method}
    cls = classes[method]
    check_parameters(given, cls, classes)
    columns = features(table, name, drop or [])
    as_text, as_numbers = column_names(table, text or []), column_names(table, numeric or [])
    if name in as_numbers:
        raise ValueError(f"--numeric concerns inputs: leave out the rows where the target {name!r} is text.")
    y = target_values(values, chosen, name, name in as_text)
    encoder = TableEncoder(
        TableEncoder().max_categories if max_categories is None else max_categories,
        tuple(column for column in as_text if column != name),
        tuple(as_numbers),
    )
    x = encoder.fit_transform(columns)
    found = [
        decisions.file_decision(table),
        *decisions.target_decisions(name, values, chosen, None if guess is None else guess.reason),
        *decisions.column_decisions(encoder, [n for n in table.names if n not in (*columns.names, name)]),
    ]
    found.sort(key=lambda decision: decision[0] == "note")  # these last
    del table, columns
    held = None
    if validation is not None:
        with common.notes(quiet=True) as said:
            rows = read_table(
                validation, header=header, decimal=decimal, text=[*kept, *text_columns(encoder)]
            )
            held_values = common.target_column(rows, name, repr(str(validation)))[1]
            held = encoder.transform(rows), held_values.copy()
            del rows, held_values
        found += [("note", f"validation: {line}") for line in said]
    if isinstance(given.get("class_weight"), dict):
        given["class_weight"] = class_weight(given["class_weight"], y)
    settings = {"random_state": seed, "n_jobs": jobs, "device": device, "checkpoint_dir": folder} | given
    estimator = cls(**settings) if paper is None else cls.paper(paper.value, **settings)

    started = time.perf_counter()
    eval_set = None if held is None else (held[0], same_labels(held[1], y, chosen, name))
    watch = MemoryWatch(estimator, x, y, eval_set, dry_run, quiet)
    rest = HeldOut()
    listeners: list[Any] = [decisions.SayDecisions(found)] if told else []
    listeners += [rest] if launched() else [rest, watch]  # which reckons with all rows in this process
    with Progress() as progress:
        estimator.set_params(callbacks=listeners + ([progress] if shown and not dry_run else []))
        try:
            with _saved_on_signals(folder):
                fit_shares(estimator, x, y, eval_set)
        except Planned:
            show_plan(watch.forecast, estimator, output, chosen, name, as_json)
            return
    if not is_first():  # one of the others prints and writes
        return
    seconds = time.perf_counter() - started
    estimator.set_params(callbacks=None)
    save(estimator, output, encoder, target=name)  # first of all: what follows may fail
    outcome = Outcome(estimator, chosen, name, len(x), seconds, found)
    outcome.scores["training"] = common.scores(estimator, x, values, name)
    if held is None:
        outcome.add_held_out(rest)
    else:
        outcome.scores["validation"] = common.scores(estimator, *held, name)
    if folder is not None:
        clear(folder)
    if report is not None:
        from opgrow.report import write_report

        write_report(
            estimator,
            report,
            *(eval_set or (None, None)),
            feature_names=list(encoder.get_feature_names_out()),
            target=name,
            rows="validation rows, which also decided what was kept",
            file_bytes=output.stat().st_size,
        )
    if as_json:
        common.print_json(outcome.to_dict(output))
    elif not quiet:
        outcome.show(output, report)


def _checkpoint_folder(checkpoint: Path | None, resume: bool, output: Path) -> Path | None:
    """Where the growth is saved; a fit that is there must be meant, or be this one before a restart."""
    from opgrow.distributed.launch import is_first, restarted
    from opgrow.growth.checkpoints import holds_a_fit

    if checkpoint is None and resume:
        checkpoint = output.with_name(f"{output.name}.checkpoint")
    meant = resume or restarted() or not is_first()  # the first rank looks
    if checkpoint is not None and not meant and holds_a_fit(checkpoint):
        raise ValueError(
            f"{str(checkpoint)!r} holds a fit that was begun: add --resume to go on with it, or choose "
            "another folder."
        )
    return checkpoint


@contextmanager
def _saved_on_signals(folder: Path | None) -> Iterator[None]:
    """Say what a signal has left."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        from opgrow.distributed.launch import is_first

        if folder is not None and is_first():
            typer.echo(f"saved in {folder}: the same command with --resume goes on", err=True)
        raise


def _check_report(report: Path, output: Path, *tables: Path | None) -> None:
    """Refuse a page that cannot be written, or only over other files of this command."""
    from opgrow.common.atomic import check_writable

    check_writable(report)
    if report.resolve() == output.resolve():
        raise ValueError(f"The report and the model cannot both be written to {str(report)!r}.")
    for table in tables:
        if table is not None:
            common.refuse_to_replace(table, report, "the table", "--report")
    common.require_suffix(report, ".html", "A report", "--report")
