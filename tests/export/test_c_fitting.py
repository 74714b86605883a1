"""Exports that are to fit: the variant is the one that agrees best among those that are small enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from opgrow.cli import app
from opgrow.export import export_c_into
from opgrow.export.c_fitting import parse_limits
from opgrow.export.c_size import c_size
from tests.export.compiled import needs_compiler

X = load_iris(return_X_y=True)[0]


@needs_compiler
def test_the_variant_that_is_written_is_within_the_limits(fitted: dict[str, Any], tmp_path: Path) -> None:
    model, file = fitted["HeMLGOPClassifier"], tmp_path / "model.c"
    options = {"calibration": X, "min_agreement": 0.5}
    large = export_c_into(model, file, {"flash": 100_000}, **options)
    assert large.check.agreement == 1.0
    small = export_c_into(model, file, {"flash": 100_000, "ram": large.ram - 1}, **options)
    assert small.ram < large.ram
    assert (small.weights, small.arithmetic) != (large.weights, large.arithmetic)
    size = c_size(file)
    assert size is not None
    assert size.code + size.constants == small.flash
    text = file.read_text()
    assert f"{small.weights}" in text or small.weights == "float32"
    assert ("integers alone" in text) == (small.arithmetic == "integer")


@needs_compiler
def test_what_does_not_fit_is_refused_with_the_closest(fitted: dict[str, Any], tmp_path: Path) -> None:
    sentence = (
        r"^No variant fits into 100 bytes of flash, 64 bytes of ram; the closest is weights='\w+', .* of RAM"
    )
    with pytest.raises(ValueError, match=sentence):
        export_c_into(
            fitted["HeMLGOPClassifier"], tmp_path / "model.c", {"flash": 100, "ram": 64}, calibration=X
        )
    assert list(tmp_path.iterdir()) == []


def test_limits_are_read_in_bytes() -> None:
    assert parse_limits("flash=16k, ram=900") == {"flash": 16384, "ram": 900}
    assert parse_limits("RAM=1kb") == {"ram": 1024}
    for wrong in ("", "flash", "flash=1.5k", "rom=2k", "flash=-1"):
        with pytest.raises(ValueError, match="Limits are such as flash=16k,ram=1k, got"):
            parse_limits(wrong)


@needs_compiler
def test_the_command_says_what_it_has_chosen(fitted: dict[str, Any], tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    fitted["HeMLGOPClassifier"].save(model)
    command = ["export", str(model), "--out", str(tmp_path / "model.c"), "--fit-into", "flash=64k,ram=4k"]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["fitted"]["check"]["agreement"] == 1.0
    done = CliRunner().invoke(app, [*command, "--weights", "int8"])
    assert "--fit-into chooses --weights and --arithmetic itself" in done.output
