"""``opgrow export``: a model file becomes a file for other programs.

A format is a line in `_FORMATS`: the ending of its files, the options that it takes, the function that
writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import common, options

if TYPE_CHECKING:
    from opgrow.estimators.files import ModelFile
    from opgrow.rows.tables import Table

__all__ = ["export"]


#: What can be written.
Format = StrEnum("Format", ["onnx", "c", "wasm"])
_To = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="onnx; c: a C99 source file and its header; or wasm: WebAssembly, and JavaScript that loads it. "
        "Default: as --output ends, or onnx.",
    ),
]
#: How C stores weights.
Weights = StrEnum("Weights", ["float32", "int16", "int8", "int4"])
_Weights = Annotated[
    Weights | None,
    typer.Option(help="How weights are stored; int4 puts two in a byte. Default: float32. (c, wasm)"),
]
#: What C computes with.
Arithmetic = StrEnum("Arithmetic", ["float", "integer"])
_Arithmetic = Annotated[
    Arithmetic | None,
    typer.Option(help="integer is for processors without floating point. (c)"),
]
#: Tools that take a folder with C.
Package = StrEnum("Package", ["arduino", "platformio", "zephyr", "cmake", "micropython"])
_Package = Annotated[
    Package | None,
    typer.Option(help="Write a folder that this tool takes as it is, with a program to try it. (c)"),
]
#: Types of an ONNX model's input.
InputType = StrEnum("InputType", ["float32", "float64"])
_InputType = Annotated[
    InputType | None,
    typer.Option(
        help="float64 where features have large means and small deviations. Default: float32. (onnx)"
    ),
]

_FitInto = Annotated[
    str | None,
    typer.Option(
        help="Limits such as flash=16k,ram=1k,cycles=20k: the variant within them that agrees best is "
        "written. (c)"
    ),
]
_Calibration = Annotated[
    Path | None,
    typer.Option(
        help="Table of typical inputs, on which the export is compared with the model. Default: the "
        "training rows that the model file has kept."
    ),
]
_MinAgreement = Annotated[
    float | None,
    typer.Option(
        help="Share of equal labels below which nothing is written; in regression, R2 between both "
        "predictions may fall short of 1 by a quarter as much. 0 writes in any case. Default: 0.99."
    ),
]


def export(
    model: options.Model,
    to: _To = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "--out", "-o", help="File to write. Default: beside the model file."),
    ] = None,
    float16: Annotated[
        bool, typer.Option("--float16", help="Store weights in half precision: half the file. (onnx)")
    ] = False,
    input_type: _InputType = None,
    name: Annotated[
        str | None, typer.Option(help="Prefix of the functions' names. Default: the file's name. (c)")
    ] = None,
    weights: _Weights = None,
    arithmetic: _Arithmetic = None,
    package: _Package = None,
    fit_into: _FitInto = None,
    compiler: Annotated[
        str | None,
        typer.Option(
            help='Compiler by which --fit-into measures, such as "avr-gcc -mmcu=atmega328p", or that makes '
            "WebAssembly. (c, wasm)"
        ),
    ] = None,
    learn: Annotated[
        bool,
        typer.Option("--learn", help="Add functions that learn from further rows, as partial_fit does. (c)"),
    ] = False,
    state_bytes: Annotated[
        int | None, typer.Option(help="Bytes that the state of --learn may take. Default: 32768. (c)")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Table to fit a smaller network to where no variant fits: see --fit-into. (c)"),
    ] = None,
    target: options.Target = None,
    calibration: _Calibration = None,
    min_agreement: _MinAgreement = None,
    as_json: options.ResultJson = False,
) -> None:
    """Write a model for other programs.

    The exported model takes the matrix that the network sees. Where a table has text or gaps, these are the
    inputs that 'opgrow inspect' lists, encoded as it says there. The agreement of the export with the model
    is measured and printed; of C also the sizes, if there is a compiler. A pipeline that begins with
    WindowFeatures becomes C that takes windows, and --calibration then has a window in each row.
    """
    from opgrow.common.atomic import check_writable

    to = Format.c if package is not None and to in (None, Format.c) else _format_of(to, output)
    written = _FORMATS[to]
    all_options = {
        "float16": float16 or None,
        "input_type": input_type,
        "name": name,
        "weights": weights,
        "arithmetic": arithmetic,
        "package": package,
        "fit_into": fit_into,
        "compiler": compiler,
        "learn": _learning(learn, state_bytes),
        "data": data,
        "target": target,
        "calibration": calibration,
        "min_agreement": min_agreement,
    }
    options: dict[str, Any] = {option: value for option, value in all_options.items() if value is not None}
    strange = next((name for name in options if name not in written.options), None)
    if strange is not None:
        raise ValueError(f"--{strange.replace('_', '-')} has no meaning for the format {to.value}.")
    made = output or model.with_suffix(written.suffix if package is None else "")
    if package is None:
        check_writable(made)
    common.refuse_to_replace(model, made, "the model file")
    loaded = _loaded(model, to)
    with common.notes():
        if calibration is not None:
            table = common.read_for(loaded, calibration, header=None, decimal=None)
            options["calibration"] = _rows(loaded, table)
        more = written.write(loaded, made, options)
    _report(model, loaded, to, made, more, as_json)


def _learning(learn: bool, state_bytes: int | None) -> bool | int | None:
    """What an export takes for both options; None for neither."""
    if not learn and state_bytes is not None:
        raise ValueError("--state-bytes is for --learn, which is not given.")
    if state_bytes is not None and state_bytes < 1:
        raise ValueError(f"--state-bytes must be at least 1, got {state_bytes}.")
    return (state_bytes or True) if learn else None


def _format_of(wanted: Format | None, output: Path | None) -> Format:
    """The format that is asked for, or the one that the output's name ends like."""
    if output is None:
        return wanted or Format.onnx
    for form, written in _FORMATS.items():
        if output.suffix.lower() == written.suffix and wanted in (None, form):
            return form
    suffixes = " or ".join(
        repr(written.suffix) for form, written in _FORMATS.items() if wanted in (None, form)
    )
    raise ValueError(f"The output must end in {suffixes}, got {output.name!r}.")


def _loaded(path: Path, to: Format) -> ModelFile:
    """The model of a file; of those that hold pipelines, C takes such as begin with windows."""
    from opgrow.cli.pipelines import takes_windows
    from opgrow.estimators.files import read

    model = read(path, pipelines=to is Format.c)
    if model.pipeline is not None and not takes_windows(model.pipeline):
        return read(path)  # which refuses it
    return model


def _rows(model: ModelFile, table: Table) -> Any:
    """What an export is compared on: inputs of the estimator or, in front of it, windows."""
    from opgrow.cli.pipelines import pipeline_matrix

    if model.pipeline is None:
        return common.inputs(model, table)
    if model.target is not None and model.target in table.columns:
        table = table.drop(model.target)
    return pipeline_matrix(model.pipeline, table)


def _subject(model: ModelFile) -> Any:
    """What is written: the pipeline, where there is one."""
    return model.estimator if model.pipeline is None else model.pipeline


@dataclass(frozen=True)
class _More:
    """What a format has to say beside the size of the file: as data, and in words."""

    data: dict[str, Any] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    #: What was written where it is another than that of the model file.
    estimator: Any = None


def _write_onnx(model: ModelFile, output: Path, options: dict[str, Any]) -> _More:
    from opgrow.export import export_onnx

    check = export_onnx(model.estimator, output, feature_names=common.feature_names(model), **options)
    return _More({"check": asdict(check)}, (str(check),))


def _write_c(model: ModelFile, output: Path, options: dict[str, Any]) -> _More:
    from opgrow.export import export_c
    from opgrow.export.c_size import c_size

    if model.pipeline is None:
        options = {**options, "features": common.feature_names(model)}
    if options.keys() & {"fit_into", "compiler", "data", "target"}:
        return _write_fitting(model, output, options)
    check = export_c(_subject(model), output, **options)
    if "package" in options:
        return _More({"package": options["package"], "check": asdict(check)}, (str(check),))
    header = output.with_suffix(".h")
    data: dict[str, Any] = {"header": str(header), "check": asdict(check), "size": None}
    lines = (f"header: {header}", str(check))
    try:
        size = c_size(output)
    except RuntimeError as error:  # the compiler's trouble; the files are there
        return _More(data, (*lines, f"the sizes were not measured: {error}"))
    if size is None:
        return _More(data, (*lines, "no C compiler was found, so the sizes were not measured"))
    data["size"] = asdict(size)
    stack = "" if size.stack is None else f", {size.stack} bytes of stack (without those of <math.h>)"
    measured = f"{size.compiler} -Os: {size.code} bytes of code, {size.constants} bytes of constants{stack}"
    return _More(data, (*lines, measured))


def _write_wasm(model: ModelFile, output: Path, options: dict[str, Any]) -> _More:
    from opgrow.export import export_wasm

    check = export_wasm(model.estimator, output, **options)
    script = output.with_suffix(".js")
    data = {"script": str(script), "script_bytes": script.stat().st_size, "check": asdict(check)}
    return _More(data, (f"JavaScript: {script} ({script.stat().st_size:,} bytes)", str(check)))


def _write_fitting(model: ModelFile, output: Path, options: dict[str, Any]) -> _More:
    from opgrow.estimators.files import save
    from opgrow.export.c_fitting import export_c_into, parse_limits

    if "fit_into" not in options:
        raise ValueError("--compiler, --data and --target are for --fit-into, which is not given.")
    if "weights" in options or "arithmetic" in options:
        raise ValueError("--fit-into chooses --weights and --arithmetic itself.")
    limits = parse_limits(options.pop("fit_into"))
    data, target = options.pop("data", None), options.pop("target", None)
    if data is not None:
        options["X"], options["y"] = _rows_to_fit(model, data, target)
    elif target is not None:
        raise ValueError("--target names a column of --data, which is not given.")
    fitted = export_c_into(_subject(model), output, limits, **options)
    lines = [str(fitted.check), f"chosen: {fitted}"]
    more: dict[str, Any] = {"fitted": fitted.plain()}
    if fitted.shrunk is not None:
        smaller = output.with_name(f"{output.stem}-smaller.safetensors")
        save(fitted.estimator, smaller, target=model.target)
        more["smaller_model"] = str(smaller)
        lines += [str(fitted.shrunk), f"the smaller network: {smaller}"]
    smaller_one = None if fitted.shrunk is None else fitted.estimator
    return _More(more, tuple(lines), smaller_one)


def _rows_to_fit(model: ModelFile, data: Path, target: str | None) -> tuple[Any, Any]:
    """The columns and the targets of a table, as the model's estimator was fitted on them."""
    import numpy as np
    from sklearn.base import is_classifier

    if model.pipeline is not None:
        raise ValueError("A smaller network cannot be fitted in place of one that is part of a pipeline.")
    table = common.read_for(model, data, header=None, decimal=None)
    name, values = common.target_column(table, target or model.target, repr(str(data)))
    x = common.inputs(model, table, name)
    if not isinstance(x, np.ndarray):  # without the target
        x = x.select(model.estimator.feature_names_in_.tolist())
    if is_classifier(model.estimator):
        classes = model.estimator.classes_
        values = classes[common.class_codes(values, classes, name)]
    return x, values


@dataclass(frozen=True)
class _Written:
    suffix: str
    options: tuple[str, ...]
    write: Callable[[ModelFile, Path, dict[str, Any]], _More]


_MEASURING = ("calibration", "min_agreement")
_FORMATS = {
    Format.onnx: _Written(".onnx", ("float16", "input_type", *_MEASURING), _write_onnx),
    Format.c: _Written(
        ".c",
        (
            "name",
            "weights",
            "arithmetic",
            "package",
            "fit_into",
            "compiler",
            "learn",
            "data",
            "target",
            *_MEASURING,
        ),
        _write_c,
    ),
    Format.wasm: _Written(".wasm", ("weights", "compiler", *_MEASURING), _write_wasm),
}


def _report(source: Path, model: ModelFile, to: Format, output: Path, more: _More, as_json: bool) -> None:
    files = [path for path in output.rglob("*") if path.is_file()] if output.is_dir() else [output]
    estimator = model.estimator if more.estimator is None else more.estimator
    size, network = sum(path.stat().st_size for path in files), estimator.network_
    if as_json:
        common.print_json(
            {
                "model": str(source),
                "format": to.value,
                "output": str(output),
                "bytes": size,
                "estimator": type(estimator).__name__,
                "topology": network.topology(),
                "feature_names": common.feature_names(model),
                **more.data,
            }
        )
    else:
        text = f"{type(estimator).__name__} {network.topology()} written to {output} ({size:,} bytes)"
        for line in (text, *more.lines):
            common.console().print(line, soft_wrap=True, markup=False, highlight=False)
