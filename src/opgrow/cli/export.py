"""``opgrow export``: a model file becomes a file for other programs.

A format is a line in `_FORMATS`: the ending of its files, the options that it takes, the function that
writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import common

if TYPE_CHECKING:
    from opgrow.persistence import ModelFile

__all__ = ["export"]


class Format(StrEnum):
    """What can be written."""

    onnx = "onnx"


class InputType(StrEnum):
    """Types of an ONNX model's input."""

    float32 = "float32"
    float64 = "float64"


def export(
    model: Annotated[Path, typer.Argument(help="Model file, as 'opgrow fit' writes it.")],
    to: Annotated[Format, typer.Option("--format", help="What to write.")] = Format.onnx,
    output: Annotated[
        Path | None,
        typer.Option("--output", "--out", "-o", help="File to write. Default: beside the model file."),
    ] = None,
    float16: Annotated[
        bool, typer.Option("--float16", help="Store weights in half precision: half the file. (onnx)")
    ] = False,
    input_type: Annotated[
        InputType | None,
        typer.Option(
            help="float64 where features have large means and small deviations. Default: float32. (onnx)"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object about the result.")] = False,
) -> None:
    """Write a model for other programs.

    The exported model takes the matrix that the network sees. Where a table has text or gaps, these are the
    inputs that 'opgrow inspect' lists, encoded as it says there.
    """
    from opgrow.persistence import check_writable, read

    written = _FORMATS[to]
    options: dict[str, Any] = {}
    if float16:
        options["float16"] = True
    if input_type is not None:
        options["input_type"] = input_type.value
    strange = next((name for name in options if name not in written.options), None)
    if strange is not None:
        raise ValueError(f"--{strange.replace('_', '-')} has no meaning for the format {to.value}.")
    target = model.with_suffix(written.suffix) if output is None else output
    check_writable(target)
    if target.exists() and target.samefile(model):
        raise ValueError(f"{str(target)!r} is the model file itself: name another with --output.")
    loaded = read(model)
    written.write(loaded, target, options)
    _report(model, loaded, to, target, as_json)


def _write_onnx(model: ModelFile, output: Path, options: dict[str, Any]) -> None:
    from opgrow.export import export_onnx

    export_onnx(model.estimator, output, feature_names=_feature_names(model), **options)


@dataclass(frozen=True)
class _Written:
    suffix: str
    options: tuple[str, ...]
    write: Callable[[ModelFile, Path, dict[str, Any]], None]


_FORMATS = {Format.onnx: _Written(".onnx", ("float16", "input_type"), _write_onnx)}


def _feature_names(model: ModelFile) -> list[str] | None:
    """Names of the columns that the network sees, as far as the model file knows them."""
    if model.encoder is not None:
        return [str(name) for name in model.encoder.get_feature_names_out()]
    names = getattr(model.estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _report(source: Path, model: ModelFile, to: Format, output: Path, as_json: bool) -> None:
    size, network = output.stat().st_size, model.estimator.network_
    if as_json:
        common.print_json(
            {
                "model": str(source),
                "format": to.value,
                "output": str(output),
                "bytes": size,
                "estimator": type(model.estimator).__name__,
                "topology": network.topology(),
                "feature_names": _feature_names(model),
            }
        )
    else:
        text = f"{type(model.estimator).__name__} {network.topology()} written to {output} ({size:,} bytes)"
        common.console().print(text, soft_wrap=True)
