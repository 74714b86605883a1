"""WebAssembly in a browser and in node: the labels are those of Python, on all rows of four tables."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import subprocess
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from typer.testing import CliRunner

import opgrow
from opgrow.cli import app
from opgrow.common.errors import TableWarning
from opgrow.export import export_wasm
from opgrow.export.wasm import wasm_compiler
from opgrow.rows.tables.dates import Reading
from tests.export.signals import pipeline, signals
from tests.export.test_onnx_table import QUICK, N, frame
from tests.integration.browser import NEEDED, PROGRAM, Browser


def _compiler() -> str | None:
    try:
        return " ".join(wasm_compiler())
    except RuntimeError as error:
        return str(error) if "needs" not in str(error) else None


needs_wasm = pytest.mark.skipif(_compiler() is None, reason="needs ziglang, or clang and lld")
TABLES = ("iris", "digits", "breast_cancer", "columns")
DATES = {"when": Reading("date"), "at": Reading("time")}


def table_with_columns() -> pd.DataFrame:
    """Text, rare and new categories, gaps and dates."""
    table = frame()
    table.loc[4, "plain"] = table.loc[5, "many"] = "never seen"
    return table


def as_json(rows: Any) -> list[Any]:
    """Rows as JavaScript has them."""
    if isinstance(rows, np.ndarray):
        return rows.tolist()
    listed = []
    for row in rows.to_dict("records"):
        gapless = {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for name, reading in DATES.items():
            if gapless[name] is not None:
                gapless[name] = reading.seconds(gapless[name])
        listed.append(gapless)
    return json.loads(json.dumps(listed, default=str))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A model of each table, exported, with its rows and what Python says of them."""
    folder, cases = tmp_path_factory.mktemp("wasm"), {}
    for name, load in zip(TABLES, (load_iris, load_digits, load_breast_cancer, None), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)
            if load is None:
                x, y = frame(), np.where(np.arange(N) % 2, "odd", "even")
            else:
                x, y = load(return_X_y=True)
            model = opgrow.HeMLRNClassifier(**QUICK).fit(x, y)
            rows = x if load else table_with_columns()
            model.export_wasm(folder / f"{name}.wasm")
            labels, shares = model.predict(rows).tolist(), model.predict_proba(rows)
        cases[name] = (as_json(rows), labels, shares)
    return {"folder": folder, "cases": cases}


@pytest.fixture(scope="module")
def address(written: dict[str, Any]) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    (written["folder"] / "index.html").write_text(
        "<!doctype html><title>models</title><link rel=icon href=data:>"
    )
    handler = functools.partial(Quiet, directory=str(written["folder"]))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@needs_wasm
@pytest.mark.skipif(PROGRAM is None, reason=NEEDED)
def test_a_browser_says_what_python_says(written: dict[str, Any], address: str, tmp_path: Path) -> None:
    with Browser(tmp_path) as browser:
        browser.open(f"{address}/index.html")
        for name, (rows, labels, shares) in written["cases"].items():
            said = browser.look(
                f"import('{address}/{name}.js').then(async ({{ load }}) => {{ const m = await load();"
                f"const rows = {json.dumps(rows)};"
                "return [rows.map(m.predict), rows.map(m.probabilities)]; })"
            )
            assert said[0] == labels, name
            assert np.abs(np.array(said[1]) - shares).max() < 1e-4, name
        assert browser.complaints == []
        assert {page.split("/")[2] for page in browser.fetched if page.startswith("http")} == {address[7:]}


def in_node(script: str, folder: Path) -> Any:
    (folder / "run.mjs").write_text(script)
    done = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


@needs_wasm
@needs_node
@pytest.mark.parametrize("name", TABLES)
def test_node_says_what_python_says(name: str, written: dict[str, Any]) -> None:
    rows, labels, shares = written["cases"][name]
    folder = written["folder"]
    (folder / "rows.json").write_text(json.dumps(rows))
    said = in_node(
        f'import {{ load }} from "./{name}.js"; import {{ readFileSync }} from "node:fs";'
        f'const m = await load(readFileSync("{name}.wasm")), rows = JSON.parse(readFileSync("rows.json"));'
        "console.log(JSON.stringify([rows.map(m.predict), rows.map(m.probabilities)]));",
        folder,
    )
    assert said[0] == labels
    assert np.abs(np.array(said[1]) - shares).max() < 1e-4


@needs_wasm
@needs_node
def test_a_module_needs_nothing_and_its_wrapper_is_small(written: dict[str, Any]) -> None:
    folder = written["folder"]
    said = in_node(
        'import { readFileSync } from "node:fs";'
        'const m = new WebAssembly.Module(readFileSync("iris.wasm"));'
        "console.log(JSON.stringify([WebAssembly.Module.imports(m), "
        "WebAssembly.Module.exports(m).map(e => e.name).sort()]));",
        folder,
    )
    assert said == [[], ["inputs", "memory", "outputs", "predict", "scores"]]
    assert (folder / "iris.js").stat().st_size < 1400
    assert (folder / "iris.wasm").stat().st_size < 10_000


@needs_wasm
@needs_node
def test_rows_that_are_odd(written: dict[str, Any]) -> None:
    said = in_node(
        'import { load } from "./iris.js"; import { readFileSync } from "node:fs";'
        'const m = await load(readFileSync("iris.wasm"));'
        "let message; try { m.predict([1, 2]) } catch (error) { message = error.message }"
        "console.log(JSON.stringify([message, m.predict([1, null, 3, 4]), m.predict(new Float32Array(4))]));",
        written["folder"],
    )
    assert said[0] == "A row has 4 values, got 2."
    assert said[1] is None  # a gap that the model does not know
    assert said[2] in (0, 1, 2)


@needs_wasm
@needs_node
@pytest.mark.parametrize("weights", ["float32", "int4"])
def test_regressors_have_values(weights: str, tmp_path: Path) -> None:
    x, y = load_diabetes(return_X_y=True, as_frame=True)
    model = opgrow.HeMLRNRegressor(**QUICK).fit(x, y)
    check = export_wasm(model, tmp_path / "model.wasm", weights=weights, min_agreement=0.5)
    assert check.agreement > 0.9
    (tmp_path / "rows.json").write_text(json.dumps(x.to_dict("records")))
    said = in_node(
        'import { load, labels } from "./model.js"; import { readFileSync } from "node:fs";'
        'const m = await load(readFileSync("model.wasm")), rows = JSON.parse(readFileSync("rows.json"));'
        "console.log(JSON.stringify([rows.map(m.predict), m.values(rows[0]), labels]));",
        tmp_path,
    )
    expected = model.predict(x)
    assert np.corrcoef(said[0], expected)[0, 1] ** 2 > (0.999 if weights == "float32" else 0.9)
    assert said[1] == said[0][:1]
    assert said[2] is None


@needs_wasm
def test_the_command_writes_both_files(fitted: dict[str, Any], tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    fitted["HeMLGOPClassifier"].save(model)
    done = CliRunner().invoke(app, ["export", str(model), "--format", "wasm", "--weights", "int8"])
    assert done.exit_code == 0, done.output
    assert "JavaScript:" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.js", "model.safetensors", "model.wasm"]


def test_what_cannot_be_written_is_a_sentence(
    fitted: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fitted["HeMLGOPClassifier"]
    with pytest.raises(ValueError, match=r"must end in '.wasm', got 'model.js'"):
        model.export_wasm(tmp_path / "model.js")
    windows = pipeline(*signals(60, 32, 1), n_channels=1)
    with pytest.raises(TypeError, match="got Pipeline: export its last step"):
        export_wasm(windows, tmp_path / "model.wasm")
    monkeypatch.setattr("opgrow.export.wasm.has", lambda package: False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(
        RuntimeError, match=r"^WebAssembly needs a compiler: pip install 'opgrow\[wasm\]', or"
    ):
        model.export_wasm(tmp_path / "model.wasm")
    assert list(tmp_path.iterdir()) == []
