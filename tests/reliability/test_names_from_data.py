"""Names come from data, and data from anywhere: pages, C, ONNX and terminals show them and do not obey."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from copy import copy
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console
from safetensors import safe_open
from safetensors.numpy import load_file
from typer.testing import CliRunner

import opgrow
from opgrow import HeMLRNClassifier
from opgrow.bench.page import page as study_page
from opgrow.bench.runs import DONE, Run
from opgrow.bench.study import Study
from opgrow.cli import app
from opgrow.common.texts import plain_console, printable
from opgrow.estimators import files as persistence
from opgrow.estimators.files.reading import tried_operators
from opgrow.estimators.fit.tables import adopt
from opgrow.estimators.listeners.progress import growth_table
from opgrow.export.c_text import safe_comment
from opgrow.report import write_report
from opgrow.rows.tables import Table, TableEncoder

COMPILER = shutil.which("gcc") or shutil.which("cc")
EVIL = [
    "<script>alert(1)</script>",
    '"\' onmouseover=alert(1) x="',
    "</style></title></svg></textarea>--><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "\u202etxt.exe\u202c and \u2067other\u2069",
    "nul\x00 bell\x07 escape\x1b[31m\x1b]0;title\x07 csi\x9b2J",
    "&lt;b&gt; &#60;i&#62; <!-- ]]>",
    "*/ int x; /* ???/ ??/\n #error \\",
    "new\nline \\\nand\r\n%s%n ??'",
    "\u200fשלום 名前 \u2028",
]
#: In the same order, so that the classes have the same codes and the networks are the same.
PLAIN = [f"name{sorted(EVIL).index(name)}" for name in EVIL]


def fitted(names: list[str]) -> Any:
    """A classifier whose inputs, classes and columns have these names."""
    rng = np.random.default_rng(0)
    codes = np.arange(120) % len(names)
    x = rng.normal(size=(120, len(names))) + np.eye(len(names))[codes]
    model = HeMLRNClassifier(n_min=6, n_estimators=1, max_layers=1, fine_tune_epochs=1, random_state=0)
    model.fit(x, np.array(names, dtype=object)[codes].astype(str))
    # Operators of the history need not be registered, so their names come from anywhere, too.
    history = [replace(step, operator_set=tried_operators(names[:3])) for step in model.history_]
    model.history_ = [replace(history[0], operator_set=tried_operators(names[4:7])), *history]
    model.feature_names_in_ = np.array(names, dtype=object)
    return model, Table(dict(zip(names, x.T, strict=True))), codes


@pytest.fixture(scope="module")
def evil() -> Any:
    return fitted(EVIL)


@pytest.fixture(scope="module")
def plain() -> Any:
    return fitted(PLAIN)


# --- pages ---


class Elements(HTMLParser):
    """The kinds of elements with their attributes, addresses, and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.kinds: set[tuple[str, ...]] = set()
        self.addresses: list[str] = []
        self.words = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.kinds.add((tag, *sorted(name for name, _ in attrs)))
        self.addresses += [value for name, value in attrs if name in ("href", "src", "xlink:href", "action")]

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)

    def handle_comment(self, data: str) -> None:
        self.kinds.add(("comment",))

    def handle_data(self, data: str) -> None:
        self.words += data


def shown(name: str) -> str:
    """A name as a page has it: without what is not to be shown."""
    hidden = [c for c in name if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    for c in (*hidden, "\u202e", "\u202c", "\u2067", "\u2069"):
        name = name.replace(c, "\ufffd")
    return name


def check_page(evil: str, plain: str, names: list[str]) -> None:
    found, expected = Elements(evil), Elements(plain)
    assert found.kinds <= expected.kinds
    assert all(address.startswith("#") for address in found.addresses)
    assert not any(name.startswith("on") for kind in found.kinds for name in kind[1:])
    for name in names:
        assert shown(name) in found.words
    assert not set("\x00\x07\x1b\x9b\u202e\u2067") & set(evil)
    assert evil.count("<script") == plain.count("<script")
    assert evil.count("</style") == plain.count("</style") == 1


def test_the_page_of_a_model(evil: Any, plain: Any, tmp_path: Path) -> None:
    pages = []
    for (model, table, codes), names in ((evil, EVIL), (plain, PLAIN)):
        path = tmp_path / "report.html"
        x, y = np.column_stack(list(table.columns.values())), np.array(names)[codes]
        write_report(
            model,
            path,
            x,
            y,
            feature_names=names,
            target=names[0],
            rows=f"rows of {names[1]}",
        )
        pages.append(path.read_text(encoding="utf-8"))
    check_page(*pages, EVIL)


def test_the_picture_of_a_model(evil: Any, tmp_path: Path) -> None:
    evil[0].plot().save(tmp_path / "network.svg")
    tree = ElementTree.parse(tmp_path / "network.svg")
    kinds = {element.tag.split("}")[1] for element in tree.iter()}
    assert kinds <= {"svg", "g", "rect", "circle", "line", "path", "text", "tspan", "title", "style"}
    assert not any(name.startswith("on") for element in tree.iter() for name in element.attrib)


def test_notebooks(evil: Any) -> None:
    assert (
        Elements(evil[0].plot()._repr_html_()).kinds <= Elements(fitted(PLAIN)[0].plot()._repr_html_()).kinds
    )


def study_of(names: list[str]) -> str:
    """The page of a study whose datasets, models, operators and messages have these names."""
    models = ["HeMLGOP", *names[:3]]
    study = Study(names, models, Path(names[3]), n_splits=6)
    done = {"status": DONE, "seconds": 0.5, "parameters": 100, "flops": 200}
    steps = [
        {"kind": names[0], "layer": names[1], "block": names[2], "accepted": True, "curve": [[0.9, 0.3]]}
    ]
    grown = {
        "operators": [{"layer": 1, "set": "/".join(n.replace("/", "") for n in names[:3]), "neurons": 4}]
    }
    results = [
        (Run(name, split, model), done | grown | {"accuracy": 0.7 + 0.01 * (split + i), "steps": steps})
        for name in names
        for split in range(6)
        for i, model in enumerate(models)
    ]
    late = {"status": names[4], "message": names[5], "seconds": 1.0}
    results[1] = (results[1][0], late)
    return study_page(study, results, f"opgrow bench paper --out {names[6]}")


def test_the_page_of_a_study() -> None:
    check_page(study_of(EVIL), study_of(PLAIN), EVIL)


# --- C ---

MAIN = """
#define MODEL_LABELS
#include "{header}"
#include <stdio.h>
int main(void) {{
    int i;
    for (i = 0; i < MODEL_N_OUTPUTS; i++) {{ fputs(model_labels[i], stdout); putchar(1); }}
    return 0;
}}
"""


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("standard", ["c99", "gnu99", "c11"])
@pytest.mark.parametrize("arithmetic", ["float", "integer"])
def test_c_compiles_without_a_warning(standard: str, arithmetic: str, evil: Any, tmp_path: Path) -> None:
    model, table, _ = evil
    rows = np.column_stack(list(table.columns.values()))
    opgrow.export_c(
        model, tmp_path / "odd name.c", name="model", arithmetic=arithmetic, calibration=rows, features=EVIL
    )
    (tmp_path / "main.c").write_text(MAIN.format(header="odd name.h"))
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", "-trigraphs", "-Wtrigraphs"]
    command = [str(COMPILER), *flags, "main.c", "odd name.c", "-lm", "-o", "program"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    said = subprocess.run([tmp_path / "program"], capture_output=True, check=True).stdout
    expected = [label.encode().split(b"\0")[0] for label in model.classes_.tolist()]
    assert said.split(b"\1")[:-1] == expected


def test_no_text_ends_a_comment() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        text = "".join(rng.choice(list("*/?\\\n\r\u202e'a "), size=8))
        safe = safe_comment(text)
        assert not any(mark in safe for mark in ("*/", "/*", "??", "\\", "\n", "\r", "\u202e"))


@pytest.mark.parametrize("name", ['a".c', "a\\.c", "a??'b.c", "a\nb.c", "a\u202eb.c"])
def test_file_names_that_cannot_be_included_are_refused(name: str, evil: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot stand in an #include"):
        opgrow.export_c(evil[0], tmp_path / name, name="model")


# --- ONNX ---


def test_onnx_metadata(evil: Any, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    opgrow.export_onnx(evil[0], tmp_path / "m.onnx", feature_names=EVIL)
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    onnx.checker.check_model(model, full_check=True)
    assert not any(tensor.external_data for tensor in model.graph.initializer)
    session = runtime.InferenceSession(tmp_path / "m.onnx")
    data = session.get_modelmeta().custom_metadata_map
    assert json.loads(data["feature_names"]) == EVIL
    x = np.column_stack(list(evil[1].columns.values())).astype(np.float32)
    labels = session.run(None, {session.get_inputs()[0].name: x})[0].tolist()
    # A string of ONNX may end at a NUL.
    expected = [label.split("\0")[0] for label in evil[0].predict(x).tolist()]
    assert [label.split("\0")[0] for label in labels] == expected


# --- terminals ---


def controls(text: str) -> set[str]:
    return {
        c for c in text if c not in "\n\t" and (ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2067")
    }


@pytest.fixture(scope="module")
def model_file(evil: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, table, _ = evil
    path = tmp_path_factory.mktemp("evil") / "m.safetensors"
    model = copy(model)
    adopt(model, TableEncoder().fit(table))
    persistence.save(model, path, target=EVIL[5])
    return path


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_inspect_shows_what_it_does_not_obey(model_file: Path) -> None:
    result = invoke("inspect", model_file)
    assert result.exit_code == 0
    assert controls(result.stdout) == set()
    assert r"escape\x1b[31m" in result.stdout
    assert controls(invoke("inspect", model_file, "--json").stdout) == set()


def test_errors_show_what_they_do_not_obey(model_file: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a\x1b[31m,b\n1,2\n")
    for arguments in (
        ("predict", model_file, table),
        ("fit", table, "--target", "\x1b]0;owned\x07"),
        ("inspect", tmp_path / "\x1b[2J.safetensors"),
        ("fit", table, "--target", "b", "--param", "\x1b[1m=2"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert controls(result.stdout + result.stderr) == set()
        assert "\\x1b" in result.stderr


def test_predictions_keep_their_labels_in_a_file_and_not_on_a_terminal(
    model_file: Path, evil: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(
        tmp_path / "t.npz",
        X=np.column_stack(list(evil[1].columns.values())),
        feature_names=np.array(EVIL, dtype=str),
    )
    arguments = ("predict", model_file, tmp_path / "t.npz", "--proba")
    assert "\x1b" in invoke(*arguments).stdout
    terminal = SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(sys.modules["opgrow.cli.predict"], "sys", terminal)
    assert controls(invoke(*arguments).stdout) == set()


def test_progress_shows_what_it_does_not_obey(evil: Any) -> None:
    text = io.StringIO()
    console = plain_console(file=text, force_terminal=True, color_system="truecolor", width=200)
    assert isinstance(console, Console)
    console.print(EVIL[5], style="blue", markup=False, highlight=False)
    console.print(growth_table(evil[0].history_))
    said = text.getvalue()
    assert "\x1b[34m" in said  # the colour that was asked for
    assert r"escape\x1b[31m" in said
    assert "\x1b]0;" not in said
    assert "\x07" not in said


def test_what_is_harmless_stays() -> None:
    for text in ("", "name", "two\nlines\tand a tab", "\u200fשלום 名前"):
        assert printable(text) == text
    assert printable("\x1b\x9b\u202e\ud800") == r"\x1b\x9b\u202e\ud800"


# --- paths in files ---


@pytest.fixture(scope="module")
def opened() -> list[str]:
    """Every file that this process opens, from now on; the hook cannot be taken away again."""
    found: list[str] = []

    def hook(event: str, arguments: Any) -> None:
        if event in ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove") and arguments:
            found.append(
                os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes | os.PathLike) else ""
            )

    sys.addaudithook(hook)
    return found


def test_paths_in_a_model_file_are_not_followed(
    model_file: Path, tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever text stands in a file, be it an address, is no more than text."""
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "secret.json"
    secret.write_text('{"secret": 1}')
    with safe_open(model_file, framework="numpy") as file:
        text = json.loads(file.metadata()["opgrow"])
    del text["checksum"]
    tensors = load_file(model_file)

    def replaced(data: Any, way: tuple[Any, ...], value: Any) -> Any:
        if not way:
            return value
        copy = dict(data) if isinstance(data, dict) else list(data)
        copy[way[0]] = replaced(copy[way[0]], way[1:], value)
        return copy

    addresses = (str(secret), "secret.json", "../secret.json", f"file://{secret}")
    places = list(_texts(text))
    assert len(places) > 30
    refused = 0
    for number, way in enumerate(places):
        address = addresses[number % len(addresses)]
        path = tmp_path / "forged.safetensors"
        path.write_bytes(persistence.packed(json.dumps(replaced(text, way, address)), tensors))
        opened.clear()
        try:
            model = persistence.read(path)
            repr(model.estimator)
        except ValueError:
            refused += 1
        assert not [name for name in opened if "secret" in name]
        assert str(path) in opened  # the hook hears of files
    assert 0 < refused < len(places)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["forged.safetensors", "secret.json"]


def _texts(data: Any, way: tuple[Any, ...] = ()) -> Any:
    """Where in a description there is a text or nothing; of long lists, the first two places."""
    if isinstance(data, str) or data is None:
        yield way
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(value, (*way, key))
    elif isinstance(data, list):
        for i, value in enumerate(data[:2]):
            yield from _texts(value, (*way, i))
