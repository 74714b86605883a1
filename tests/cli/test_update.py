"""``opgrow update``: a model file learns from another table, and is always the old or the new model."""

from __future__ import annotations

import signal
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
arguments += ["--every", "0"] * ("--follow" in arguments)
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


@pytest.mark.parametrize("arguments", [[], ["--once"], ["--follow"]], ids=str)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_leaves_the_old_or_the_new_model(files, when, arguments):
    model, table, expected = files
    old = model.read_bytes()
    data = in_folder(table) if arguments else table
    killed = subprocess.run([sys.executable, "-c", KILLED, model, data, *arguments, when], check=False)
    assert killed.returncode == -9
    if when == "before":
        assert model.read_bytes() == old
    loaded = opgrow.load(model)
    assert (loaded.network_.digest() == expected.network_.digest()) == (when == "after")
    if arguments:  # the rest is learned by the next run, and nothing twice
        run("update", model, data)
        run("update", model, data)
        assert opgrow.load(model).network_.digest() == expected.network_.digest()


def in_folder(table):
    """A folder with that table, and others beside it that are none."""
    folder = table.parent / "rows"
    folder.mkdir()
    table.rename(folder / table.name)
    (folder / "notes.txt").write_text("not a table")
    (folder / ".hidden.csv").write_text("still being written")
    return folder


def test_each_file_of_a_folder_is_learned_once(files):
    model, table, expected = files
    folder = in_folder(table)
    assert "learned from 60 rows of new.csv" in run("update", model, folder, "--once").output
    assert "nothing new" in run("update", model, folder).output
    assert opgrow.load(model).network_.digest() == expected.network_.digest()
    (folder / "more.csv").write_text((folder / "new.csv").read_text())
    assert "of more.csv" in run("update", model, folder).output
    loaded = opgrow.load(model).running_
    assert (loaded.n_rows, loaded.files) == (210, ("new.csv", "more.csv"))


def test_files_are_learned_as_they_appear(files, monkeypatch):
    """One is there, one is written piece by piece, one is broken and mended; then comes Ctrl-C."""
    model, table, _ = files
    folder = in_folder(table)
    text = (folder / "new.csv").read_text()
    half = text.index("\n", len(text) // 2) + 1
    looks = iter(range(100))

    def wait(seconds):
        assert seconds == 0.25
        look = next(looks)
        if look == 3:
            (folder / "second.csv").write_text(text[:half])
        if look == 4:
            (folder / "second.csv").write_text(text)
            (folder / "third.csv").write_text("a,b\n1,2\n")
        if look == 8:
            assert opgrow.load(model).running_.files == ("new.csv", "second.csv")
            (folder / "third.csv").write_text(text)
        if look == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", wait)
    result = run("update", model, folder, "--follow", "--every", "0.25")
    assert "stopped after 3 files" in result.output
    assert result.stderr.count("third.csv was not learned") == 1
    assert opgrow.load(model).running_.n_rows == 90 + 3 * 60


def test_an_interruption_ends_following_and_leaves_a_model(files):
    model, table, expected = files
    process = subprocess.Popen(
        [sys.executable, "-m", "opgrow", "update", model, in_folder(table), "--follow", "--every", "0.01"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert "learned from 60 rows" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "stopped after 1 files" in rest
    assert opgrow.load(model).network_.digest() == expected.network_.digest()


def test_a_drift_is_found_in_later_files(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (3000, 4))
    y = (x[:, 0] > 0) ^ (np.arange(3000) >= 1500)
    path = tmp_path / "model.safetensors"
    clf = BLSClassifier(max_neurons=10, n_min=10, random_state=0).partial_fit(x[:500], y[:500].astype(int))
    opgrow.save(clf, path, target="kind", sums=True)
    folder = tmp_path / "rows"
    folder.mkdir()
    for start in range(500, 3000, 500):
        span = slice(start, start + 500)
        rows = [[*row, int(label)] for row, label in zip(x[span], y[span], strict=True)]
        write_csv(folder / f"{start:05}.csv", [*NAMES, "kind"], rows)
    output = run("update", path, folder, "--drift", "page_hinkley").output
    assert output.count("a drift was found") == 1
    assert opgrow.load(path).drift == "page_hinkley"
    assert opgrow.load(path).score(x[2500:], y[2500:]) > 0.9
    assert "a drift was found" in output.splitlines()[2]
    assert "--drift must be page_hinkley or none" in refused("update", path, folder, "--drift", "adwin")


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
