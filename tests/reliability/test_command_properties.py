"""Whatever file and options the command gets: what was asked for, or one line and nothing on the disk."""

from __future__ import annotations

import csv
import io
import os
import re
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from generated import ODD_NAMES, examples
from hypothesis import event, given
from hypothesis import strategies as st
from tiny_estimators import NAMES, rows, tiny
from typer.testing import CliRunner, Result

from opgrow.cli import app
from opgrow.estimators.files import save

#: What a message quotes from a file may hold anything.
QUOTED = re.compile(r"'.*'|\".*\"")
METHODS = sorted({name.removesuffix("Classifier") for name in NAMES if name.endswith("Classifier")})
#: How lines about growth begin, which may have been printed before an error.
SHOWN = ("accepted", "rejected", "network", *METHODS)
#: Options that keep a fit short; those that a method does not have are left out.
_BLOCKS = ["n_min=2", "n_step=1", "max_neurons=3"]
_TUNED = ["learning_rates=0.01", "epochs=1", "fine_tune_epochs=1", 'operators=[["harmonic","sum","tanh"]]']
SHORT = {
    "HeMLGOP": [*_BLOCKS, *_TUNED, "preset=null", "max_layers=1"],
    "POP": ["widths=[2]", *_TUNED],
    "PMLP": ["widths=[2]", *_TUNED[:3]],
    "PLN": [*_BLOCKS, "max_layers=1", "admm_iterations=3"],
    "BLS": [*_BLOCKS, "admm_iterations=3"],
}
CELLS = (
    "",
    "NA",
    "nan",
    "?",
    "0",
    "1",
    "2",
    "-3.5",
    "1e300",
    "1e-300",
    "inf",
    "1_000",
    "٣",
    " 7 ",
    "red",
    "ä",
    "a,b",
)
CELLS += ('say "no"', "two\nlines", "<script>", "=1+1", "'", "x" * 300, "True", "2020-01-01")
OPTIONS: dict[str, tuple[str, ...]] = {
    "--target": ("target", "", "absent", "ä", "<b>"),
    "--task": ("auto", "classification", "regression", "sorting"),
    "--drop": ("x0", "target", "absent", ",", ""),
    "--param": (
        "n_min=0",
        "epochs=-1",
        "bogus=1",
        "=",
        "n_min",
        "class_weight={}",
        'class_weight={"0":0}',
        "dropout=2",
    ),
    "--text": ("x0", "target", "absent", ""),
    "--numeric": ("x0", "target", "absent"),
    "--max-categories": ("1", "2", "0", "x"),
    "--decimal": (".", ";"),
    "--paper": ("small", "huge"),
    "--seed": ("0", "-1", "99999999999", "x"),
    "--jobs": ("1", "2", "0", "-1", "many"),
    "--device": ("cpu", "tpu", "cuda:99"),
    "--validation": ("data.csv", "absent.csv", ".", "data.xyz"),
    "--report": ("page.html", "absent/page.html", "data.csv", "page.txt"),
    "--output": ("model.safetensors", "absent/model.safetensors", ".", "data.csv", "model.pdf"),
}


#: What may be odd about a table, with what it is otherwise.
USUAL = {"delimiter": ",", "end": "\n", "labels": ("no", "yes", "perhaps"), "target": "target", "damage": ""}
ODD = {
    "delimiter": (";", "\t", "|"),
    "end": ("\r\n", "\n\n", "\r"),
    "labels": (("0", "1"), ("1.5", "-2", "7e3"), ("", "1"), ("1",), ("1e300", "0"), ("inf", "0"), ("a", "1")),
    "target": ("ä", "x0", "", " target "),
    "damage": ("mark", "cut", "latin", "ragged", "zero", "quote", "header only", "empty"),
}


@st.composite
def tables(draw: Any) -> bytes:
    """A CSV file, with two odd things about it at most."""
    odd = draw(st.lists(st.sampled_from(sorted([*USUAL, "names", "cells"])), max_size=2))
    how = {key: draw(st.sampled_from(ODD[key])) if key in odd else usual for key, usual in USUAL.items()}
    n, d = draw(st.integers(2, 30)), draw(st.integers(0 if odd else 1, 5))
    names, cells = [f"x{i}" for i in range(d)], ["", "red", "blue"]
    if "names" in odd:
        odd_name = st.one_of(st.sampled_from(ODD_NAMES), st.text(max_size=6))
        names = draw(st.lists(odd_name, min_size=d, max_size=d))
    if "cells" in odd:
        cells = draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    share, labels = draw(st.sampled_from([0.0, 0.2])), how["labels"]
    text = io.StringIO()
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    writer = csv.writer(text, delimiter=how["delimiter"], quoting=quoting, lineterminator=how["end"])
    writer.writerow([*names, how["target"]])
    for _ in range(n):
        numbers = [f"{number:.3g}" for number in rng.normal(size=d)]
        row = [cells[rng.integers(len(cells))] if rng.random() < share else number for number in numbers]
        writer.writerow([*row, labels[rng.integers(len(labels))]])
    content = text.getvalue().encode(errors="replace")
    return {
        "": content,
        "mark": b"\xef\xbb\xbf" + content,
        "cut": content[: len(content) * 2 // 3],
        "latin": content + b"\xe4,1\n",
        "ragged": content + b"1,2,3,4,5,6,7,8\n",
        "zero": content + b"\0",
        "quote": content + b'"open',
        "header only": content.split(b"\n")[0],
        "empty": b"",
    }[how["damage"]]


def run(folder: Path, *arguments: str) -> Result:
    """Run the command in a folder; check how it ends, and that a failure leaves the folder as it was."""
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    here = Path.cwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            result = CliRunner().invoke(app, list(arguments))
    finally:
        os.chdir(here)
    event(f"{arguments[0]}: {result.exit_code}")
    assert result.exit_code in (0, 1, 2), result.output
    assert "Traceback" not in result.output
    assert not [w for w in heard if issubclass(w.category, RuntimeWarning)]
    if result.exit_code:
        *growth, line = result.stderr.splitlines()
        assert line.startswith("error: ")
        assert not [other for other in growth if other.split()[0] not in SHOWN], growth
        assert "(unexpected;" not in line
        assert ". " not in QUOTED.sub("", line), f"more than one sentence: {line}"
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    return result


def short(method: str) -> list[str]:
    known = next(
        name
        for name in ("PMLP", "POP", "PLN", "BLS", "HeMLGOP")
        if method.startswith(name) or name == "HeMLGOP"
    )
    return [word for item in SHORT[known] for word in ("--param", item)]


@examples(0.12)
@given(
    tables(),
    st.sampled_from(METHODS),
    st.dictionaries(st.sampled_from(sorted(OPTIONS)), st.integers(0, 99), max_size=1),
    st.sampled_from(["", "--quiet", "--json"]),
)
def test_fit_and_what_follows(table, method, chosen, how):
    options = [word for name, i in chosen.items() for word in (name, OPTIONS[name][i % len(OPTIONS[name])])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data.csv").write_bytes(table)
        fitted = run(
            folder, "fit", "data.csv", "--method", method, *short(method), *options, *filter(None, [how])
        )
        assert (folder / "data.csv").read_bytes() == table
        model = folder / "model.safetensors"
        if fitted.exit_code or not model.exists():
            return
        assert run(folder, "inspect", model.name, "--json").exit_code == 0
        assert run(folder, "predict", model.name, "data.csv").exit_code == 0


@lru_cache
def models() -> tuple[bytes, ...]:
    """Model files: from a table, from a matrix, of several targets; and one that is none."""
    x, y = rows(30, 2)
    table = {"x0": x[:, 0], "ä": np.array(["a", "b"], object)[y]}
    fitted = [
        tiny("HoMLRNClassifier").fit(table, y),
        tiny("PLNClassifier").fit(x, np.array(["no", "yes"])[y]),
        tiny("BLSRegressor").fit(x, np.stack([y, 1 - y], axis=1)),
    ]
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model.safetensors"
        found = []
        for estimator in fitted:
            save(estimator, path, target="target")
            found.append(path.read_bytes())
    return (*found, b"no model")


USES: dict[str, tuple[tuple[str, ...], ...]] = {
    "predict": (
        (),
        ("--proba",),
        ("-o", "out.csv"),
        ("-o", "out.pdf"),
        ("--no-header",),
        ("--decimal", ","),
        ("-o", "data.csv"),
        ("-o", "absent/out.csv"),
        ("-o", "."),
        ("-o",),
    ),
    "evaluate": ((), ("--json",), ("--target", "x0"), ("--target", "absent"), ("--target", "")),
    "report": ((), ("--json",), ("--target", "x0"), ("-o", "data.csv"), ("-o", "model.safetensors")),
    "inspect": ((), ("--json",), ("--bogus",)),
    "export": (
        *((), ("--format", "c"), ("--format", "onnx", "--float16"), ("--format", "exe")),
        *(("--weights", "int8"), ("--format", "c", "--name", "9 lives"), ("--input-type", "float64")),
        ("--format", "c", "--arithmetic", "integer", "--weights", "int16", "--calibration", "data.csv"),
        ("--format", "c", "--arithmetic", "integer"),
    ),
}


@examples(0.08)
@given(tables(), st.integers(0, 3), st.sampled_from(sorted(USES)), st.integers(0, 99), st.booleans())
def test_models_and_other_tables(table, number, command, chosen, given_data):
    options = USES[command][chosen % len(USES[command])]
    data = ["data.csv"] if given_data and command not in ("inspect", "export") else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data.csv").write_bytes(table)
        (folder / "model.safetensors").write_bytes(models()[number])
        run(folder, command, "model.safetensors", *data, *options)
        assert (folder / "model.safetensors").read_bytes() == models()[number]
        assert not data or (folder / "data.csv").read_bytes() == table
