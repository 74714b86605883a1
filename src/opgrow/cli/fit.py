"""``opgrow fit``: from a table file to a model file."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.assignments import parse_parameters
from opgrow.cli import common
from opgrow.cli.folders import fit_folder

if TYPE_CHECKING:
    from opgrow.data import Table

__all__ = ["fit"]

#: Parameters that the command sets itself.
OWN_PARAMETERS = ("callbacks", "checkpoint_dir", "verbose")


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
        Task, typer.Option(help="auto: text, or at most 20 different whole numbers, are classes.")
    ] = Task.auto,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")] = Path(
        "model.safetensors"
    ),
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns to leave out, separated by commas.", metavar="NAMES")
    ] = None,
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
        int | None, typer.Option(help="Threads; -1 for all cores. Default: as many as torch uses.")
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
    'opgrow predict' takes tables like this one. Under torchrun, the ranks share the rows and rank 0 writes.
    """
    from opgrow import estimators
    from opgrow.checkpoints import clear
    from opgrow.cli.plan import MemoryWatch, Planned, show_plan
    from opgrow.data import TableEncoder, infer_task, read_table
    from opgrow.devices import check_device
    from opgrow.distributed.launch import fit_shares, is_first, launched
    from opgrow.persistence import check_writable, save
    from opgrow.progress import Progress

    check_writable(output)
    for table_file in (data, validation):
        if table_file is not None:
            common.refuse_to_replace(table_file, output, "the table")
    if report is not None:
        _check_report(report, output, data, validation)
    check_device(device)
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

        def class_of(chosen: str) -> Any:
            face = "Classifier" if chosen == "classification" else "Regressor"
            classes = {m: getattr(estimators, m + face) for m in Method}
            _check_parameters(given, classes[method], classes)
            return classes[method]

        settings = {"random_state": seed, "n_jobs": jobs, "device": device, "checkpoint_dir": folder} | given
        scale = None if paper is None else paper.value
        with _saved_on_signals(folder):
            estimator, chosen, name, n_rows, scores, seconds = fit_folder(
                data, target, class_of, task.value, drop or [], settings, scale, quiet
            )
        if not is_first():
            return
        save(estimator, output, target=name)
        if folder is not None:
            clear(folder)
        if as_json:
            common.print_json(_summary(estimator, output, chosen, name, n_rows, scores, seconds))
        elif not quiet:
            _print(estimator, output, scores, None)
        return
    table = read_table(data)
    name, values = common.target_column(table, target, repr(str(data)))
    values = values.copy()  # a column of a matrix would keep the whole matrix
    chosen = infer_task(values) if task is Task.auto else task.value
    face = "Classifier" if chosen == "classification" else "Regressor"
    classes = {m: getattr(estimators, m + face) for m in Method}
    cls = classes[method]
    _check_parameters(given, cls, classes)
    features = _features(table, name, drop or [])
    encoder = TableEncoder()
    x, y = encoder.fit_transform(features), _target(values, chosen, name)
    del table, features
    held = None
    if validation is not None:
        rows = read_table(validation)
        held_values = common.target_column(rows, name, repr(str(validation)))[1]
        held = encoder.transform(rows), held_values.copy()
        del rows, held_values
    if isinstance(given.get("class_weight"), dict):
        given["class_weight"] = _class_weight(given["class_weight"], y)
    settings = {"random_state": seed, "n_jobs": jobs, "device": device, "checkpoint_dir": folder} | given
    estimator = cls(**settings) if paper is None else cls.paper(paper.value, **settings)

    started = time.perf_counter()
    eval_set = None if held is None else (held[0], _same_labels(held[1], y, chosen, name))
    watch = MemoryWatch(estimator, x, y, eval_set, dry_run, quiet)
    listeners: list[Any] = [] if launched() else [watch]  # it reckons with all rows in this process
    with Progress() as progress:
        estimator.set_params(callbacks=listeners + ([] if quiet or dry_run else [progress]))
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
    scores = {"training": common.scores(estimator, x, values, name)}
    if held is not None:
        scores["validation"] = common.scores(estimator, *held, name)
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
        common.print_json(_summary(estimator, output, chosen, name, len(x), scores, seconds))
    elif not quiet:
        _print(estimator, output, scores, report)


def _checkpoint_folder(checkpoint: Path | None, resume: bool, output: Path) -> Path | None:
    """Where the growth is saved; a fit that is there must be meant, or be this one before a restart."""
    from opgrow.checkpoints import holds_a_fit
    from opgrow.distributed.launch import is_first, restarted

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
    from opgrow.persistence import check_writable

    check_writable(report)
    if report.resolve() == output.resolve():
        raise ValueError(f"The report and the model cannot both be written to {str(report)!r}.")
    for table in tables:
        if table is not None:
            common.refuse_to_replace(table, report, "the table", "--report")


def _check_parameters(given: dict[str, Any], cls: Any, classes: dict[Method, Any]) -> None:
    """Refuse a parameter that an estimator does not have, and say where it is to be found."""
    known = _parameters(cls)
    unknown = next((name for name in given if name not in known), None)
    if unknown is None:
        return
    owners = [method for method, other in classes.items() if unknown in _parameters(other)]
    near = difflib.get_close_matches(unknown, known, 1)
    if owners:
        hint = f"it belongs to {', '.join(owners)}."
    else:
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."
    raise ValueError(f"{cls.__name__} has no parameter {unknown!r}: {hint}")


def _parameters(cls: Any) -> list[str]:
    return [name for name in cls._get_param_names() if name not in OWN_PARAMETERS]


def _features(table: Table, target: str, drop: list[str]) -> Table:
    """The table without its target and the columns to drop."""
    names: list[str] = []
    for item in drop:
        # A name may hold a comma itself.
        names += (
            [item] if item in table.columns else [part.strip() for part in item.split(",") if part.strip()]
        )
    if target in names:
        raise ValueError(f"The target {target!r} cannot be dropped.")
    for name in dict.fromkeys([*names, target]):
        table = table.drop(name)
    if not table.columns:
        raise ValueError(f"There is no column left to predict {target!r} from.")
    return table


def _target(values: Any, task: str, name: str) -> Any:
    if task == "classification":
        return common.labels(values)
    if values.dtype == object:
        raise ValueError(f"The target {name!r} holds text, such as {values[0]!r}: regression needs numbers.")
    return values


def _same_labels(values: Any, y: Any, task: str, name: str) -> Any:
    """The validation target in the terms of the training target."""
    if task == "regression":
        return _target(values, task, name)
    import numpy as np

    classes = np.unique(y)
    return classes[common.class_codes(values, classes, name)]


def _class_weight(given: dict[str, Any], y: Any) -> dict[Any, Any]:
    """Weights by label; JSON has written the labels as text."""
    import numpy as np

    by_text = {common.label_text(label): label for label in np.unique(y).tolist()}
    unknown = next((text for text in given if text not in by_text), None)
    if unknown is not None:
        raise ValueError(f"class_weight names the class {unknown!r}; the classes are {', '.join(by_text)}.")
    return {by_text[text]: weight for text, weight in given.items()}


def _summary(
    estimator: Any, output: Path, task: str, target: str, n_rows: int, scores: dict[str, Any], seconds: float
) -> dict[str, Any]:
    network = estimator.network_
    return {
        "model": str(output),
        "estimator": type(estimator).__name__,
        "task": task,
        "target": target,
        "rows": n_rows,
        "topology": network.topology(),
        "network": network.describe(),
        "scores": scores,
        "steps": len(estimator.history_),
        "seconds": round(seconds, 3),
    }


def _print(estimator: Any, output: Path, scores: dict[str, dict[str, float]], report: Path | None) -> None:
    from opgrow.progress import growth_table

    console = common.console()
    console.print(growth_table(estimator.history_))
    console.print()
    console.print(repr(estimator.network_), soft_wrap=True)
    console.print()
    for part, found in scores.items():
        console.print(f"{part:<10} {common.scores_text(found)}", soft_wrap=True)
    console.print(f"saved to   {output}", soft_wrap=True)
    if report is not None:
        console.print(f"report     {report}", soft_wrap=True)
