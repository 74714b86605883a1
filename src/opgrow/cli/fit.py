"""``opgrow fit``: from a table file to a model file."""

from __future__ import annotations

import difflib
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.assignments import parse_parameters
from opgrow.cli import common

if TYPE_CHECKING:
    from opgrow.data import Table

__all__ = ["fit"]

#: Parameters that the command sets itself.
OWN_PARAMETERS = ("callbacks", "verbose")


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
    data: Annotated[Path, typer.Argument(help="Table to learn from: .csv, .csv.gz, .parquet, .npz.")],
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
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Threads; -1 for all cores. Default: as many as torch uses.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda or cuda:N. auto: a GPU for a million values or more.")
    ] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object about the result.")] = False,
) -> None:
    """Grow a network from a table and save it.

    Text columns are one-hot encoded and missing values filled in; both travel in the model file, so that
    'opgrow predict' takes tables like this one.
    """
    from opgrow import estimators
    from opgrow.data import TableEncoder, infer_task, read_table
    from opgrow.devices import check_device
    from opgrow.persistence import check_writable, save
    from opgrow.progress import Progress

    check_writable(output)
    for table_file in (data, validation):
        if table_file is not None:
            common.refuse_to_replace(table_file, output, "the table")
    if report is not None:
        _check_report(report, output, data, validation)
    check_device(device)
    given = parse_parameters(param or [])
    table = read_table(data)
    name, values = common.target_column(table, target, repr(str(data)))
    chosen = infer_task(values) if task is Task.auto else task.value
    face = "Classifier" if chosen == "classification" else "Regressor"
    classes = {m: getattr(estimators, m + face) for m in Method}
    cls = classes[method]
    _check_parameters(given, cls, classes)
    features = _features(table, name, drop or [])
    encoder = TableEncoder()
    x, y = encoder.fit_transform(features), _target(values, chosen, name)
    held = None
    if validation is not None:
        rows = read_table(validation)
        held_values = common.target_column(rows, name, repr(str(validation)))[1]
        held = encoder.transform(rows), held_values
    if isinstance(given.get("class_weight"), dict):
        given["class_weight"] = _class_weight(given["class_weight"], y)
    settings = {"random_state": seed, "n_jobs": jobs, "device": device} | given
    estimator = cls(**settings) if paper is None else cls.paper(paper.value, **settings)

    started = time.perf_counter()
    with Progress() as progress:
        estimator.set_params(callbacks=None if quiet else [progress])
        eval_set = None if held is None else (held[0], _same_labels(held[1], y, chosen, name))
        estimator.fit(x, y, eval_set=eval_set)
    seconds = time.perf_counter() - started
    estimator.set_params(callbacks=None)
    scores = {"training": common.scores(estimator, x, values, name)}
    if held is not None:
        scores["validation"] = common.scores(estimator, *held, name)
    save(estimator, output, encoder, target=name)
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
