"""``opgrow export --learn``: a program that goes on learning, and what has no meaning with it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from opgrow import HeMLGOPClassifier
from opgrow.export.c_size import find_compiler
from tests.cli.commands import refused, run

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    model = HeMLGOPClassifier(preset="compact", random_state=0).partial_fit(x[order], y[order])
    model.save(tmp_path / "model.safetensors", sums=True)
    return tmp_path / "model.safetensors"


@needs_compiler
def test_learn_adds_functions_with_a_state(saved: Path) -> None:
    output = saved.with_name("iris.c")
    plain = json.loads(run("export", saved, "--output", output, "--json").stdout)
    assert "state" not in output.with_suffix(".h").read_text()
    learning = json.loads(run("export", saved, "--output", output, "--learn", "--json").stdout)
    header = output.with_suffix(".h").read_text()
    for function in ("start", "learn", "predict_with", "scores_with"):
        assert f" iris_{function}(" in header
    assert learning["check"] == plain["check"]
    assert learning["size"]["code"] > plain["size"]["code"]


def test_the_state_may_be_larger_or_smaller(saved: Path) -> None:
    arguments = ("export", saved, "--format", "c", "--learn", "--state-bytes")
    assert "and at most 100 are allowed: fit a network" in refused(*arguments, 100)
    run(*arguments, 100_000)
    assert saved.with_suffix(".c").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--learn",), "--learn has no meaning for the format onnx."),
        (("--format", "c", "--state-bytes", "9"), "--state-bytes is for --learn, which is not given."),
        (("--format", "c", "--learn", "--state-bytes", "0"), "--state-bytes must be at least 1, got 0."),
        (
            ("--format", "c", "--learn", "--arithmetic", "integer"),
            "learn needs arithmetic='float', got 'integer'.",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(saved: Path, options: tuple[str, ...], said: str) -> None:
    assert refused("export", saved, *options) == said
