"""Exports that are to fit: the variant is the one that agrees best among those that are small enough."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import opgrow
from opgrow import HeMLRNClassifier
from opgrow.cli import app
from opgrow.export import export_c_into
from opgrow.export.c_fitting import parse_limits
from opgrow.export.c_size import c_size
from tests.export.compiled import needs_compiler

X = load_iris(return_X_y=True)[0]


@needs_compiler
def test_the_variant_that_is_written_is_within_the_limits(fitted: dict[str, Any], tmp_path: Path) -> None:
    model, file = fitted["HeMLGOPClassifier"], tmp_path / "model.c"
    between = np.random.default_rng(0).normal(X, 1)  # among them rows on which small weights disagree
    options = {"calibration": between, "min_agreement": 0.5}
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
        r"^No variant fits into 100 bytes of flash, 64 bytes of RAM; the closest is weights='\w+', .* of RAM"
    )
    with pytest.raises(ValueError, match=sentence):
        export_c_into(
            fitted["HeMLGOPClassifier"], tmp_path / "model.c", {"flash": 100, "ram": 64}, calibration=X
        )
    assert list(tmp_path.iterdir()) == []


def test_limits_are_read_in_bytes() -> None:
    assert parse_limits("flash=16k, ram=900") == {"flash": 16384, "ram": 900}
    assert parse_limits("RAM=1kb,cycles=20k") == {"ram": 1024, "cycles": 20_000}
    for wrong in ("", "flash", "flash=1.5k", "rom=2k", "flash=-1", "cycles=2kb"):
        with pytest.raises(ValueError, match="Limits are such as flash=16k,ram=1k,cycles=20k, got"):
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


# --- smaller networks ---


@pytest.fixture(scope="module")
def wide() -> Any:
    model = HeMLRNClassifier(preset=None, n_min=40, max_layers=1, random_state=0)
    return model.fit(*load_iris(return_X_y=True))


@needs_compiler
def test_with_data_a_smaller_network_is_fitted_and_its_cost_is_told(wide: Any, tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    whole = export_c_into(wide, tmp_path / "whole.c", {"flash": 100_000}, X=x, y=y)
    assert whole.shrunk is None
    assert whole.estimator is wide
    with pytest.raises(
        ValueError, match=r"^No variant fits into 1 bytes of flash; .* or pass data"
    ) as refused:
        export_c_into(wide, tmp_path / "none.c", {"flash": 1})
    smallest = int(re.search(r"(\d+) bytes of flash, \d+ of RAM", str(refused.value))[1])
    limits = {"flash": smallest - 100}
    fitted = export_c_into(wide, tmp_path / "small.c", limits, X=x, y=y)
    assert fitted.flash <= limits["flash"]
    assert fitted.shrunk is not None
    assert (
        fitted.estimator.network_.n_parameters() == fitted.shrunk.parameters < fitted.shrunk.parameters_before
    )
    assert fitted.shrunk.held_rows == 38
    assert 0.8 < fitted.shrunk.score <= 1
    assert f"of {fitted.shrunk.parameters} parameters" in str(fitted.shrunk)
    assert fitted.estimator.network_.topology() in (tmp_path / "small.c").read_text()


@needs_compiler
def test_what_no_network_fits_into_is_refused(wide: Any, tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    sentence = r"^No variant fits into 300 bytes of flash, and no network down to \d+ parameters; the closest"
    with pytest.raises(ValueError, match=sentence):
        export_c_into(wide, tmp_path / "model.c", {"flash": 300}, X=x, y=y)
    with pytest.raises(ValueError, match="pass both, or neither"):
        export_c_into(wide, tmp_path / "model.c", {"flash": 300}, X=x)
    with pytest.raises(ValueError, match="X has 150 rows, and y has 149"):
        export_c_into(wide, tmp_path / "model.c", {"flash": 300}, X=x, y=y[1:])
    with pytest.raises(ValueError, match="Cycles are estimated for AVR"):
        export_c_into(wide, tmp_path / "model.c", {"cycles": 300})
    with pytest.raises(ValueError, match="Limits are those of 'flash', 'ram', 'cycles', got 'rom'"):
        export_c_into(wide, tmp_path / "model.c", {"rom": 300})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("avr-gcc") is None, reason="needs avr-gcc, of Debian's package gcc-avr")
def test_cycles_are_a_limit_and_a_table_is_data(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    x, y = load_iris(return_X_y=True)
    frame = pandas.DataFrame(x, columns=list("abcd")).assign(colour=np.where(x[:, 0] > 5.8, "red", "blue"))
    frame.assign(kind=y).to_csv(tmp_path / "train.csv", index=False)
    model = HeMLRNClassifier(preset=None, n_min=40, max_layers=1, random_state=0).fit(frame, y)
    model.save(tmp_path / "model.safetensors")
    command = ["export", str(tmp_path / "model.safetensors"), "--out", str(tmp_path / "model.c"), "--json"]
    command += ["--fit-into", "cycles=150k", "--compiler", "avr-gcc -mmcu=atmega328p"]
    done = CliRunner().invoke(app, [*command, "--data", str(tmp_path / "train.csv"), "--target", "kind"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert 0 < said["fitted"]["cycles"] <= 150_000
    smaller = opgrow.load(said["smaller_model"])
    assert smaller.network_.n_parameters() == said["fitted"]["shrunk"]["parameters"]
    assert smaller.network_.topology() == said["topology"]
    assert np.mean(smaller.predict(frame) == y) > 0.8
