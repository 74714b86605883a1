"""Exported pipelines of window features: what C says of whole windows is what Python says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opgrow.signals import FEATURES, windows
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import opgrow
from opgrow import HeMLGOPClassifier, WindowFeatures, export_c, export_onnx
from opgrow.export.c_size import c_size
from tests.export.compiled import COMPILER, FLAGS, Library, compiled, needs_compiler
from tests.export.signals import QUICK, pipeline, signals

SHAPES = [(33, 2, FEATURES), (64, 1, ("bands",)), (5, 3, ("difference", "bands", "mean")), (7, 1, ("mean",))]
SHAPES += [(16, 1, ("crossings",)), (16, 2, ("range", "maximum")), (1, 2, ("minimum", "deviation"))]


@needs_compiler
@pytest.mark.parametrize(("n", "channels", "features"), SHAPES)
@pytest.mark.parametrize("regression", [False, True])
def test_c_says_what_the_pipeline_says(
    n: int, channels: int, features: tuple[str, ...], regression: bool, tmp_path: Path
) -> None:
    x, y = signals(120, n, channels)
    model = pipeline(x, y, regression, n_channels=channels, features=features)
    check = export_c(model, tmp_path / "model.c", calibration=x)
    assert check.rows == 120
    assert "whole windows" in check.how
    more, _ = signals(50, n, channels, seed=1)
    exact = model.predict(more)[:, None] if regression else model.predict_proba(more)
    for level in ("-O0", "-O3"):
        library = Library([tmp_path / "model.c"], level)
        scores = library.scores("model", more, exact.shape[1])
        np.testing.assert_allclose(scores, exact, atol=3e-4 * np.abs(exact).max())
    if not regression:
        sure = np.abs(exact[:, 0] - 0.5) > 1e-3
        assert np.array_equal(library.predict("model", more)[sure], model.predict(more)[sure])


@needs_compiler
@pytest.mark.parametrize(("n", "channels", "features"), SHAPES)
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_the_check_is_of_the_program_bit_for_bit(
    n: int, channels: int, features: tuple[str, ...], weights: str, tmp_path: Path
) -> None:
    """The largest difference that the export states is that of the compiled program."""
    x, y = signals(120, n, channels)
    model = pipeline(x, y, n_channels=channels, features=features)
    check = export_c(model, tmp_path / "model.c", calibration=x, weights=weights, min_agreement=0)
    for level in ("-O1", "-Os"):
        scores = Library([tmp_path / "model.c"], level).scores("model", x, 2)
        difference = np.abs(scores - model.predict_proba(x))
        assert difference.max() == pytest.approx(check.largest_difference, rel=1e-6, abs=1e-12)


@needs_compiler
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_have_nothing_to_say(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    for number, (n, channels, features) in enumerate(SHAPES):
        x, y = signals(60, n, channels)
        file = tmp_path / f"model{number}.c"
        export_c(pipeline(x, y, n_channels=channels, features=features), file, calibration=x)
        for level, sample in (("-Os", "float"), ("-O2", "int16_t"), ("-O1", "int32_t"), ("-O0", "double")):
            defined = f"-DMODEL{number}_SAMPLE={sample}"
            command = [compiler, *FLAGS, level, defined, "-c", str(file), "-o", str(tmp_path / "made.o")]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        source = file.read_text()
        assert "math.h" not in source
        assert "double" not in source
        assert "malloc" not in source


STREAM = """
#include <stdio.h>
#include <string.h>
#include "model.h"

int main(void)
{
    static const MODEL_SAMPLE signal[] = {%(signal)s};
    model_window window;
    memset(&window, 1, sizeof window);
    model_window_start(&window, %(step)d);
    for (int i = 0; i < %(n)d; i++) {
        if (model_window_push(&window, signal + i * MODEL_N_CHANNELS)) {
            float p[MODEL_N_OUTPUTS];
            model_scores(window.samples, p);
            printf("%%d %%d %%.9g\\n", i, model_predict(window.samples), (double)p[0]);
        }
    }
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("step", [1, 5, 16, 17, 0])
@pytest.mark.parametrize("sample", ["float", "int16_t"])
def test_a_window_that_moves_on_predicts_as_windows_do(step: int, sample: str, tmp_path: Path) -> None:
    """Run with sanitizers, which abort at any access beyond an array and at any overflow."""
    x, y = signals(80, 16, 2)
    x = x.round()
    model = pipeline(x, y, n_channels=2)
    export_c(model, tmp_path / "model.c", calibration=x)
    signal = signals(1, 100, 2, seed=3)[0].reshape(100, 2).round()
    values = ", ".join(str(int(v)) if sample != "float" else f"{v:.1f}f" for v in signal.ravel())
    main = tmp_path / "main.c"
    main.write_text(STREAM % {"signal": values, "step": step, "n": 100})
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compiled(
        "-O1", *sanitizers, f"-DMODEL_SAMPLE={sample}", main, tmp_path / "model.c", "-o", tmp_path / "run"
    )
    done = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    moved = min(max(step, 1), 16)
    cut = windows(signal, 16, moved)
    assert [int(line[0]) for line in lines] == [15 + moved * i for i in range(len(cut))]
    np.testing.assert_allclose([float(line[2]) for line in lines], model.predict_proba(cut)[:, 0], atol=1e-4)
    assert [int(line[1]) for line in lines] == model.predict(cut).tolist()


@needs_compiler
def test_extreme_samples_are_bounded_and_unknown_ones_are_told(tmp_path: Path) -> None:
    x, y = signals(80, 16, 2)
    model = pipeline(x, y, n_channels=2)
    export_c(model, tmp_path / "model.c", calibration=x)
    library = Library([tmp_path / "model.c"], flags=("-fsanitize=undefined", "-fno-sanitize-recover=all"))
    rng = np.random.default_rng(0)
    wild = rng.choice(np.array([0, 1, -1e16, 1e16, 3e38, -3e38, 1e-40], np.float32), size=(200, 32))
    scores = library.scores("model", wild, 2)
    assert np.isfinite(scores).all()
    constant = np.repeat(np.array([[0], [4000], [-3e38], [1e-30]], np.float32), 32, axis=1)
    np.testing.assert_allclose(library.scores("model", constant, 2), model.predict_proba(constant), atol=1e-4)
    infinite = x[:4].copy()
    infinite[:, 3] = np.inf
    far = infinite.copy()
    far[:, 3] = 1e16
    assert np.array_equal(library.scores("model", infinite, 2), library.scores("model", far, 2))
    for place in range(32):
        unknown = x[:1].copy()
        unknown[0, place] = np.nan
        assert np.isnan(library.scores("model", unknown, 2)).all()
        assert library.predict("model", unknown) == [-1]


@needs_compiler
def test_stack_and_constants_are_within_what_is_said(tmp_path: Path) -> None:
    x, y = signals(60, 64, 2)
    file = tmp_path / "model.c"
    export_c(pipeline(x, y, n_channels=2), file, calibration=x)
    header, source = file.with_suffix(".h").read_text(), " ".join(file.read_text().replace(" * ", "").split())
    bound = int(re.search(r"at most (\d+) bytes of stack", header)[1])
    assert f"at most {bound} bytes on AVR" in source
    size = c_size(file, COMPILER)
    assert size.stack <= bound
    # A compiler adds numbers that stand in the code.
    assert 0 <= size.constants - int(re.search(r"Constants: (\d+) bytes", source)[1]) < 400
    assert "512 bytes where samples are floats" in header


@pytest.mark.parametrize("step", ["saved", "fitted"])
def test_saved_pipelines_are_exported_as_they_were(step: str, tmp_path: Path) -> None:
    x, y = signals(60, 32, 2)
    model = pipeline(x, y, n_channels=2, bands=(0.05, 0.2, 0.5), hysteresis=0)
    opgrow.save(model, tmp_path / "model.safetensors")
    back = opgrow.load(tmp_path / "model.safetensors")
    assert np.array_equal(back.predict_proba(x), model.predict_proba(x))
    assert back[0].form_ == model[0].form_
    used = back if step == "saved" else model
    check = export_c(used, tmp_path / "model.c")
    assert "of the network on features of training windows" in check.how
    export_c(model, tmp_path / "other.c", name="model")
    source = (tmp_path / "model.c").read_text()
    assert source.splitlines()[60:] == (tmp_path / "other.c").read_text().splitlines()[60:]


def test_a_package_predicts_windows(tmp_path: Path) -> None:
    x, y = signals(60, 32, 2)
    model = pipeline(x, y, n_channels=2)
    export_c(model, tmp_path / "tones", calibration=x, package="arduino")
    sketch = (tmp_path / "tones" / "examples" / "tones_rows" / "tones_rows.ino").read_text()
    assert "rows[5 * 64]" in sketch
    with pytest.raises(ValueError, match="A package has a few windows to predict, which models do not keep"):
        export_c(model, tmp_path / "other", package="arduino")


@needs_compiler
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_the_example_of_a_package_agrees(tmp_path: Path) -> None:
    x, y = signals(60, 32, 2)
    export_c(pipeline(x, y, n_channels=2), tmp_path / "tones", calibration=x, package="cmake")
    for command in (["-S", "tones", "-B", "made"], ["--build", "made"]):
        subprocess.run(["cmake", *command], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([tmp_path / "made" / "tones_rows"], capture_output=True, text=True, check=True)
    lines = re.findall(r"row \d: class (\d), in Python (\d)", done.stdout)
    assert len(lines) == 5
    assert all(a == b for a, b in lines)


def test_errors_are_a_sentence(tmp_path: Path) -> None:
    x, y = signals(60, 16, 1)
    model = pipeline(x, y)
    labels = (y > 0.2).astype(int)
    scaled = make_pipeline(WindowFeatures(bands=2), StandardScaler(), HeMLGOPClassifier(**QUICK))
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (model, {"arithmetic": "integer"}, "Integer arithmetic has no WindowFeatures, as sums of squares"),
        (scaled.fit(x, labels), {}, "got WindowFeatures, StandardScaler, HeMLGOPClassifier"),
        (make_pipeline(WindowFeatures(), HeMLGOPClassifier()), {}, "is not fitted"),
    ]
    for given, options, says in cases:
        with pytest.raises((ValueError, TypeError), match=says):
            export_c(given, tmp_path / "model.c", **options)
    with pytest.raises(TypeError, match="export its last step, which takes the features of windows, or to C"):
        export_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_network_of_a_data_frame_of_features_is_exported(tmp_path: Path) -> None:
    x, y = signals(60, 16, 2)
    step = WindowFeatures(2, bands=2).set_output(transform="pandas")
    model = make_pipeline(step, HeMLGOPClassifier(**QUICK)).fit(x, (y > 0.2).astype(int))
    assert export_c(model, tmp_path / "model.c", calibration=x).agreement == 1


def test_calibration_windows_may_be_cubes_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    x, y = signals(60, 16, 2)
    model = pipeline(x, y, n_channels=2)
    flat = export_c(model, tmp_path / "model.c", calibration=x)
    assert export_c(model, tmp_path / "model.c", calibration=x.reshape(60, 16, 2)) == flat
    with pytest.raises(ValueError, match="X has 30 features, but WindowFeatures is expecting 32"):
        export_c(model, tmp_path / "model.c", calibration=x[:, :30])


def test_the_header_tells_the_sizes(tmp_path: Path) -> None:
    x, y = signals(60, 16, 2)
    export_c(pipeline(x, y, n_channels=2), tmp_path / "model.c")
    header = (tmp_path / "model.h").read_text()
    for line in ("N_SAMPLES 16", "N_CHANNELS 2", "N_INPUTS 32", "N_OUTPUTS 2"):
        assert f"#define MODEL_{line}\n" in header
