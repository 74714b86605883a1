"""`opgrow bench flash`: every program says what its model says, and flash is that of a linked program."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
from typer.testing import CliRunner

from opgrow.bench import flash
from opgrow.bench.c_programs import CFunction, build
from opgrow.cli.bench import app
from opgrow.export.c_size import find_compiler, object_sizes

needs_arm = pytest.mark.skipif(
    shutil.which(flash.CORTEX_M4[0]) is None or find_compiler() is None,
    reason="needs gcc and arm-none-eabi-gcc, of Debian's package gcc-arm-none-eabi",
)


@needs_arm
def test_one_line_for_each_program(tmp_path, monkeypatch):
    for package in ("m2cgen", "emlearn", "micromlgen"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}")
    quick = {"n_min": 4, "max_neurons": 4, "max_layers": 1, "epochs": (2,), "learning_rates": (0.01,)}
    monkeypatch.setattr(flash, "NETWORKS", {"small": quick | {"preset": None}})
    monkeypatch.setattr(flash, "TREES", (1,))
    monkeypatch.setattr(flash, "HIDDEN", (4,))
    out = tmp_path / "flash" / "runs.jsonl"
    done = CliRunner().invoke(app, ["flash", "--tables", "wine", "--out", str(out)])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["series"] for line in lines] == [
        *(f"ours, {variant}" for variant in flash.VARIANTS),
        *("MLP, emlearn", "trees, emlearn", "trees, m2cgen", "trees, micromlgen"),
        *("linear, m2cgen", "SVM, micromlgen"),
    ]
    for line in lines:
        assert line["table"] == "wine"
        assert 100 < line["flash"] < 20_000
        assert line["agreement"] >= (0.85 if "int" in line["series"] or "emlearn" in line["series"] else 0.99)
    sizes = {line["series"]: line["flash"] for line in lines}
    assert max(sizes["ours, int4"], sizes["ours, int8"]) < sizes["ours, float32"]


@needs_arm
def test_functions_of_libraries_count(tmp_path):
    sizes = {}
    for name, value in (("without", "x[0]"), ("with", "expf(x[0])")):
        source = tmp_path / f"{name}.c"
        source.write_text(
            f"#include <math.h>\nint f(const float *x);\nint f(const float *x) {{ return (int){value}; }}\n"
        )
        made = build(CFunction(source, "f"), np.ones((1, 1)), find_compiler(), sizing=flash.CORTEX_M4)
        compiler, *flags = flash.CORTEX_M4
        sizes[name] = made.n_bytes - sum(object_sizes(source, compiler, flags))
    assert sizes["with"] > sizes["without"] + 100


def test_without_its_compiler_it_says_so(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match="^Flash is measured by arm-none-eabi-gcc: apt-get install"):
        list(flash.study(None, ["wine"]))
