"""``opgrow inspect``: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import common, options

if TYPE_CHECKING:
    from opgrow.estimators.files import ModelFile

__all__ = ["inspect"]


def inspect(
    model: options.Model,
    as_json: options.Json = False,
    digest: Annotated[
        bool,
        typer.Option(
            "--digest", help="Print the digest of the network alone: equal networks have equal ones."
        ),
    ] = False,
) -> None:
    """Show what a model file holds: the network, its inputs and how it was grown."""
    from opgrow.estimators.files import read

    if as_json and digest:
        raise ValueError("--json has the digest in it: give --json or --digest.")
    loaded = read(model, pipelines=True)
    if digest:
        print(loaded.estimator.network_.digest())
    elif as_json:
        common.print_json(_summary(model, loaded))
    else:
        _print(model, loaded)


def _summary(path: Path, model: ModelFile) -> dict[str, Any]:
    estimator, network = model.estimator, model.estimator.network_
    history = [step.to_dict() for step in estimator.history_]
    for step in history:
        del step["curve"]  # which model files do not keep
    return {
        "model": str(path),
        "library": model.library,
        "estimator": type(estimator).__name__,
        "steps": None
        if model.pipeline is None
        else [[name, _kind(step)] for name, step in model.pipeline.steps[:-1]],
        "target": model.target,
        "topology": network.topology(),
        "network": network.describe(),
        "digest": network.digest(),
        "columns": None if model.encoder is None else model.encoder.to_dict()["columns"],
        "feature_names": estimator.feature_names_in_.tolist()
        if hasattr(estimator, "feature_names_in_")
        else None,
        "classes": estimator.classes_.tolist() if hasattr(estimator, "classes_") else None,
        "parameters": {name: _plain(value) for name, value in estimator.get_params().items()},
        "history": history,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _print(path: Path, model: ModelFile) -> None:
    from opgrow.estimators.listeners.progress import growth_table

    estimator, console = model.estimator, common.console()
    console.print(f"{path}: {type(estimator).__name__}, written by opgrow {model.library}", soft_wrap=True)
    if model.pipeline is not None and len(model.pipeline.steps) > 1:
        steps = ", ".join(f"{name} ({_kind(step)})" for name, step in model.pipeline.steps[:-1])
        console.print(f"Behind the steps {steps}.", soft_wrap=True)
    console.print()
    console.print(repr(estimator.network_), soft_wrap=True)
    console.print()
    if model.target is not None:
        console.print(f"Predicts {model.target}.", soft_wrap=True)
    if hasattr(estimator, "classes_"):
        texts = [common.label_text(label) for label in estimator.classes_.tolist()]
        console.print(f"Classes: {', '.join(texts)}", soft_wrap=True)
    if model.encoder is not None:
        console.print(_columns(model.encoder))
        console.print()
    elif hasattr(estimator, "feature_names_in_"):
        console.print(f"Inputs: {', '.join(estimator.feature_names_in_)}", soft_wrap=True)
    console.print(growth_table(estimator.history_))


def _kind(step: Any) -> str:
    return step if isinstance(step, str) else type(step).__name__


def _columns(encoder: Any) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Inputs", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in ("column", "encoding"):
        table.add_column(name, overflow="fold")
    for column in encoder.columns_:
        table.add_row(Text(column.name), Text(column.describe()))
    return table
