"""``opgrow update``: a model file learns from another table, and is always the old or the new model."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

import opgrow
from opgrow import BLSClassifier
from tests.cli.commands import refused, run, write_csv

NAMES = ["a", "b", "c", "d"]
#: Runs an update that is killed when it replaces its file, before or after it has.
KILLED = """
import os, signal, sys
from opgrow.cli import main
*arguments, when = sys.argv[1:]
replace = os.replace
def killed(*names):
    if when == "after":
        replace(*names)
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = killed
sys.argv = ["opgrow", "update", *arguments]
main()
"""


@pytest.fixture
def files(tmp_path):
    """A model of 90 rows with its sums, and a table with 60 more."""
    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    x, y = x[order], y[order]
    model = tmp_path / "model.safetensors"
    clf = BLSClassifier(max_neurons=10, n_min=10, random_state=0).partial_fit(x[:90], y[:90])
    opgrow.save(clf, model, target="kind", sums=True)
    rows = ([*row, label] for row, label in zip(x[90:], y[90:], strict=True))
    table = write_csv(tmp_path / "new.csv", [*NAMES, "kind"], rows)
    return model, table, clf.partial_fit(x[90:], y[90:])


def test_the_file_is_the_model_that_has_learned_from_all_rows(files):
    model, table, expected = files
    output = run("update", model, table).output
    assert opgrow.load(model).network_.digest() == expected.network_.digest()
    assert "learned from 60 rows" in output
    run("update", model, table, "--grow")
    assert opgrow.load(model).running_.n_rows == 210


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_leaves_the_old_or_the_new_model(files, when):
    model, table, expected = files
    old = model.read_bytes()
    killed = subprocess.run([sys.executable, "-c", KILLED, model, table, when], check=False)
    assert killed.returncode == -9
    if when == "before":
        assert model.read_bytes() == old
    assert (opgrow.load(model).network_.digest() == expected.network_.digest()) == (when == "after")


def test_a_model_without_sums_says_so(files, tmp_path):
    x, y = load_iris(return_X_y=True)
    path = tmp_path / "fitted.safetensors"
    BLSClassifier(random_state=0).fit(x, y).save(path)
    result = run("update", path, files[1], "--target", "kind")
    assert "the file had no sums" in result.stderr
    assert opgrow.load(path).score(x, y) > 0.9


def test_what_is_refused(files, tmp_path):
    model, _, _ = files
    old = model.read_bytes()
    table = write_csv(tmp_path / "other.csv", [*NAMES, "kind"], [[1, 2, 3, 4, "x"]])
    assert "y has labels that are text" in refused("update", model, table)
    assert "no column 'kind'" in refused(
        "update", model, write_csv(tmp_path / "n.csv", NAMES, [[1, 2, 3, 4]])
    )
    assert model.read_bytes() == old
