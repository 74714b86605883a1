"""Export as WebAssembly: the C of a model compiled for browsers and for whatever else runs such modules.

A module imports nothing and needs no runtime. A few lines of JavaScript beside it put rows into its memory
and read labels and scores; rows of tables go through the same C function that encodes them elsewhere.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..common.atomic import write_together
from ..common.extras import has
from ..common.version import __version__
from ..rows.tables.categories import TextColumn
from ..rows.tables.target_means import TargetColumn
from .buffers import buffers
from .c import export_c, exported_program
from .c_size import run_tool
from .c_table import table_text
from .checks import check_exportable
from .measuring import MIN_AGREEMENT, ExportCheck

__all__ = ["export_wasm", "wasm_compiler"]

#: What the JavaScript calls, and where rows and results are.
_FACE = """\
#include "model.h"
#define EXPORTED(name) __attribute__((export_name(name)))
#ifdef MODEL_N_COLUMNS
double row[MODEL_N_COLUMNS];
#endif
static float x[MODEL_N_INPUTS], out[MODEL_N_OUTPUTS];

EXPORTED("outputs") float *outputs_at(void) {{ return out; }}
EXPORTED("scores") void scores(void) {{ {encode}model_scores(x, out); }}
{more}"""
_PREDICT = 'EXPORTED("predict") int predict(void) {{ {encode}return model_predict(x); }}\n'
_INPUT = 'EXPORTED("inputs") {kind} *inputs_at(void) {{ return {place}; }}\n'
#: There is no mathematical library. Tables with dates need these; the angles are from 0 to a whole turn.
_MATH = """\
#define floor __builtin_floor
static inline double cos(double t)
{
    /* cos(t) = -cos(t - pi), by Taylor's series up to the 26th power. */
    const double u = (t - 3.141592653589793) * (t - 3.141592653589793);
    double term = -1.0, sum = -1.0;
    for (int i = 1; i < 27; i += 2) {
        term *= -u / (double)(i * (i + 1));
        sum += term;
    }
    return sum;
}
static inline double sin(double t)
{
    const double v = t - 3.141592653589793, u = v * v;
    double term = -v, sum = -v;
    for (int i = 2; i < 28; i += 2) {
        term *= -u / (double)(i * (i + 1));
        sum += term;
    }
    return sum;
}
"""
_FLAGS = (
    "-std=c99",
    "-Oz",
    "-ffreestanding",
    "-fno-builtin",
    "-ffp-contract=off",
    "-mbulk-memory",
    "-nostdlib",
)
#: Bytes of the stack beside the arrays of a program.
_FRAMES = 8192

_SCRIPT = """\
// {about}, written by opgrow {version}.
// import {{ load }} from {script}; const m = await load(); m.predict(row); m.{scores}(row)
// A row is an array of the columns in order, or an object by their names; null is a gap.
export const labels = {labels};
export const columns = {columns};
{texts}
export async function load(source = new URL({module}, import.meta.url)) {{
  const fetched = typeof source === "string" || source instanceof URL;
  const bytes = fetched ? await (await fetch(source)).arrayBuffer() : source;
  const c = (await WebAssembly.instantiate(bytes)).instance.exports;
  const input = new {numbers}(c.memory.buffer, c.inputs(), columns.length);
  const output = new Float32Array(c.memory.buffer, c.outputs(), {n_outputs});
  const put = (row) => {{
    const list = Array.isArray(row) || ArrayBuffer.isView(row);
    if (list && row.length !== columns.length)
      throw new RangeError(`A row has ${{columns.length}} values, got ${{row.length}}.`);
    columns.forEach((name, i) => {{ input[i] = {code}(list ? row[i] : row[name]{place}); }});
  }};
  const scores = (row) => (put(row), c.scores(), [...output]);
  return {{ {face} }};
}}
"""
#: What an input is for the program: of numbers alone, and of columns of a table.
_NUMBER = """
const number = (v) => (v == null || v === "" ? NaN : v);
"""
_CODE = """
// Of columns of text, by their place: the categories, the code of other texts, and that of a gap.
const texts = {texts};
const code = (v, i) => {{
  const gap = v == null || v !== v;
  if (!texts[i]) return gap || v === "" ? NaN : v instanceof Date ? v / 1000 : v;
  const [known, other, none] = texts[i], k = gap ? -1 : known.indexOf(String(v));
  return k >= 0 ? k : gap || v === "" ? none : other;
}};
"""
_CLASSES = "labels, probabilities: scores, predict: (row) => (put(row), labels[c.predict()] ?? null)"
_NUMBERS = "values: scores, predict: (row) => {value}"


def export_wasm(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    weights: str = "float32",
    calibration: Any = None,
    min_agreement: float = MIN_AGREEMENT,
    compiler: str | None = None,
) -> ExportCheck:
    """Write a fitted estimator as a WebAssembly module, and a JavaScript module of the same name beside it.

    The JavaScript is an ES module: ``const m = await load()`` reads the WebAssembly beside it (or the address
    or the bytes that it is given), ``m.predict(row)`` is the label, or the predicted value, and
    ``m.probabilities(row)``, of regressors ``m.values(row)``, the scores. It computes what the C of
    ``export_c`` does, in single precision, and is measured and refused like it.

    Parameters
    ----------
    estimator : a fitted estimator of this package
    path : str or path-like
        The module, which ends in ``.wasm``; the JavaScript ends in ``.js``.
    weights : {"float32", "int16", "int8", "int4"}, default="float32"
        How weights are stored.
    calibration, min_agreement
        As of ``export_c``.
    compiler : str, optional
        A clang that knows WebAssembly, with its linker; by default ``ziglang`` from PyPI, or ``clang``.

    Returns
    -------
    ExportCheck

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import HeMLRNClassifier
    >>> from opgrow.export import export_wasm
    >>> model = HeMLRNClassifier(n_min=10, max_layers=1, random_state=0)
    >>> export_wasm(model.fit(*load_iris(return_X_y=True)), "iris.wasm").agreement  # doctest: +SKIP
    1.0
    """
    module = Path(path).expanduser()
    if module.suffix != ".wasm":
        raise ValueError(f"The WebAssembly file must end in '.wasm', got {module.name!r}.")
    check_exportable(estimator, "C")
    command = shlex.split(compiler) if compiler else wasm_compiler()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options: dict[str, Any] = {"calibration": calibration, "min_agreement": min_agreement}
        check = export_c(estimator, folder / "model.c", weights=weights, **options)
        made = _compiled(estimator, weights, folder, command)
    script = module.with_suffix(".js")
    write_together({script: _script(estimator, module, script).encode(), module: made})
    return check


def wasm_compiler() -> list[str]:
    """The command that compiles for WebAssembly."""
    if has("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    if shutil.which("clang") is None or shutil.which("wasm-ld") is None:
        raise RuntimeError(
            "WebAssembly needs a compiler: pip install 'opgrow[wasm]', or install clang and lld."
        )
    return ["clang"]


def _compiled(estimator: Any, weights: str, folder: Path, command: list[str]) -> bytes:
    """The module of the C in a folder."""
    program = exported_program(estimator, weights, "float")
    table = "MODEL_N_COLUMNS" in (folder / "model.h").read_text()
    encode = "model_encode(row, x); " if table else ""
    predict = "" if program.classes is None else _PREDICT.format(encode=encode)
    kind, place = ("double", "row") if table else ("float", "x")
    more = predict + _INPUT.format(kind=kind, place=place)
    (folder / "face.c").write_text(_FACE.format(encode=encode, more=more))
    (folder / "math.h").write_text(_MATH)
    arrays = 4 * (sum(buffers(program, program.changes_input).values()) + 2 * program.n_outputs)
    stack = -(-(arrays + _FRAMES) // 16) * 16
    target = "wasm32-freestanding" if "ziglang" in command else "wasm32"
    made = folder / "model.wasm"
    link = ["-Wl,--no-entry", "-Wl,--strip-all", f"-Wl,-z,stack-size={stack}"]
    sources = [str(folder / name) for name in ("model.c", "face.c")]
    run_tool(*command, "-target", target, *_FLAGS, f"-I{folder}", *link, *sources, "-o", str(made))
    return made.read_bytes()


def _script(estimator: Any, module: Path, script: Path) -> str:
    """The JavaScript that loads a module."""
    classes = estimator.classes_.tolist() if hasattr(estimator, "classes_") else None
    n_outputs = estimator.network_.n_outputs
    names, texts = _columns(estimator)
    if classes is None:
        face = _NUMBERS.format(value="scores(row)[0]" if n_outputs == 1 else "scores(row)")
    else:
        face = _CLASSES
    return _SCRIPT.format(
        about=f"{type(estimator).__name__} {estimator.network_.topology()}",
        version=__version__,
        script=json.dumps(f"./{script.name}"),
        module=json.dumps(quote(module.name)),
        scores="values" if classes is None else "probabilities",
        labels=json.dumps(classes),
        columns=names,
        texts=_NUMBER if texts is None else _CODE.format(texts=json.dumps(texts, ensure_ascii=False)),
        code="number" if texts is None else "code",
        place="" if texts is None else ", i",
        numbers="Float32Array" if texts is None else "Float64Array",
        n_outputs=n_outputs,
        face=face,
    )


def _columns(estimator: Any) -> tuple[str, dict[int, list[Any]] | None]:
    """The names of the columns as JavaScript, and what `_CODE` has to know of text; None without a table."""
    table = table_text(estimator.table_, "model", None)
    if table is None:
        n, names = estimator.network_.n_inputs, estimator.input_names
        made = f"Array.from({{ length: {n} }}, (_, i) => `x${{i}}`)"
        return json.dumps(names, ensure_ascii=False) if names else made, None
    texts: dict[int, list[Any]] = {}
    for place, column in enumerate(table.columns):
        if isinstance(column, TextColumn | TargetColumn):
            n, pooled = len(column.categories), isinstance(column, TextColumn) and column.pooled
            gap = n + pooled if column.missing else -1
            texts[place] = [list(column.categories), n if pooled else -1, gap]
    return json.dumps([column.name for column in table.columns], ensure_ascii=False), texts
