"""The number of ranks does not show: they grow the same network, and send what the formulas say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rank_worker as worker
import torch
import torch.distributed as dist
from sklearn.datasets import load_breast_cancer

from opgrow import HeMLGOPClassifier, distributed, load
from opgrow.distributed.cost import epoch_bytes, search_bytes, step_bytes
from opgrow.operators import library

HERE = Path(__file__).parent
#: Seconds for all ranks of a case, on a busy machine.
PATIENCE = 900


def start(case: str, size: int, folder: Path) -> list[subprocess.Popen[str]]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return [
        subprocess.Popen(
            [sys.executable, str(HERE / "rank_worker.py"), case, str(rank), str(size), str(folder)],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(size)
    ]


def run(case: str, size: int, folder: Path) -> list[Any]:
    """What each rank found."""
    ranks = start(case, size, folder)
    try:
        errors = [rank.communicate(timeout=PATIENCE)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * size, errors
    return [json.loads((folder / f"{case}-{rank}.json").read_text()) for rank in range(size)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[Any]]:
    return {size: run("fits", size, tmp_path_factory.mktemp(f"ranks{size}")) for size in (1, 2, 4)}


@pytest.mark.parametrize("name", worker.FITS)
@pytest.mark.parametrize("size", [2, 4])
def test_the_number_of_ranks_does_not_show(found: dict[int, list[Any]], size: int, name: str) -> None:
    alone, shared = found[1][0][name], found[size][0][name]
    for what in ("operators", "curves", "parameters"):
        assert alone[what] == shared[what]
    said, wanted = np.array(shared["said"]), np.array(alone["said"])
    np.testing.assert_allclose(said, wanted, rtol=0, atol=1e-4 * max(1.0, np.ptp(wanted)))


@pytest.mark.parametrize("name", worker.FITS)
def test_all_ranks_have_the_same_network(found: dict[int, list[Any]], name: str) -> None:
    first, *others = found[4]
    for other in others:
        assert other[name]["said"] == first[name]["said"]


def test_without_tuning_one_process_grows_the_same(found: dict[int, list[Any]]) -> None:
    make, data = worker.FITS["random"]
    x, y = data()
    plain, shared = make().fit(x, y), found[2][0]["random"]
    assert [str(step.operator_set) for step in plain.history_] == shared["operators"]
    np.testing.assert_allclose(shared["said"], plain.predict_proba(x), rtol=0, atol=1e-4)


def test_tuning_on_ranks_learns_as_much_as_in_one_process(found: dict[int, list[Any]]) -> None:
    make, data = worker.FITS["tuned"]
    x, y = data()
    plain = make().fit(x, y)
    right = plain.classes_[np.argmax(found[2][0]["tuned"]["said"], axis=1)] == y
    assert right.mean() > plain.score(x, y) - 0.05


def test_mistakes_of_one_rank_are_told_to_all(tmp_path: Path) -> None:
    ranks = run("mistakes", 2, tmp_path)
    assert ranks[0] | {"stopped": 0} == ranks[1] | {"stopped": 0}
    said = ranks[0]
    assert said["columns"] == "the ranks differ in columns: rank 0 has 6, and rank 1 4"
    assert said["rows"].startswith("rank 1: Found array with 0 sample(s)")
    assert said["missing"].startswith("rank 1: Input X contains NaN")
    assert said["parameters"] == (
        "the ranks differ in parameters of the estimator: rank 0 has ridge=1.0, and rank 1 ridge=2.0"
    )
    assert said["labels"] == "the classes of all ranks must be of one type, got str, int"
    assert (
        said["method"]
        == "PLNClassifier cannot grow on several ranks: HeMLGOP, HoMLGOP, HeMLRN and HoMLRN can"
    )
    assert said["checkpoints"].startswith("HeMLRNClassifier keeps no checkpoints on several ranks: ")
    assert said["chunks"].startswith("rank 1: several ranks have their rows in memory and read none in chunk")
    assert said["far"].startswith("rank 1: X or eval_set has values that are too far from the others")
    assert "cannot distill on several ranks" in said["distill"]
    # Rank 0 alone is asked whether to stop, and all of them do.
    assert [rank["stopped"] for rank in ranks] == [
        ["five epochs are enough", 5],
        ["five epochs are enough", 0],
    ]


def test_a_rank_that_dies_ends_the_others_with_one_sentence(tmp_path: Path) -> None:
    ranks = start("killed", 2, tmp_path)
    try:
        for rank in ranks:
            rank.communicate(timeout=PATIENCE)
    finally:
        for rank in ranks:
            rank.kill()
    assert ranks[0].returncode == -9
    error = json.loads((tmp_path / "killed-1.json").read_text())["error"]
    assert error.startswith("rank 1 of 2 has lost another rank while it shared ")
    assert "\n" not in error


@pytest.fixture
def one_rank() -> Any:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("one_rank")
def test_weights_and_columns_of_any_magnitude() -> None:
    x, y = worker.classes()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    make, _ = worker.FITS["random"]
    plain, far = (
        distributed.fit(make(), x * np.float64(unit), y, sample_weight=weight * factor)
        for unit, factor in ((1.0, 1.0), (2.0**600, 2.0**-900))
    )
    np.testing.assert_allclose(
        far.predict_proba(x * np.float64(2.0**600)), plain.predict_proba(x), rtol=0, atol=1e-6
    )


@pytest.mark.usefixtures("one_rank")
def test_the_traffic_is_as_the_formulas_say() -> None:
    x, y = worker.classes()
    n_neurons, n_outputs, epochs = 9, 3, 5
    clf = HeMLGOPClassifier(
        n_min=n_neurons, max_neurons=n_neurons, max_layers=1, n_estimators=1, epochs=(epochs,),
        learning_rates=(0.01,), patience=None, dropout=0.0, fine_tune_epochs=0, batch_size=200,
        validation_fraction=0.0, random_state=0, n_jobs=1,
    )  # fmt: skip
    sent = distributed.fit(clf, x, y).traffic_
    n_batches = -(-len(x) // 200)
    widths, n_parameters = [n_neurons], clf.network_.n_parameters()

    def n_bytes(*purposes: str) -> int:
        return sum(sent[purpose][1] for purpose in purposes)

    k = len(library())
    searched = n_bytes("sums of the search", "constants of the search")
    assert searched == search_bytes(k, n_neurons, 0, n_outputs)
    steps = ("batch statistics", "their gradients", "gradients")
    assert [sent[purpose][0] for purpose in steps] == [epochs * n_batches] * 3
    assert n_bytes(*steps) == epochs * n_batches * step_bytes(widths, n_parameters)
    scored = n_bytes("statistics of features", "scores of epochs")
    first_score = 2 * 8 * n_neurons + 2 * 8
    everything = n_bytes(*steps, "sizes of batches") + scored - first_score
    assert everything == epochs * epoch_bytes(widths, n_parameters, n_batches)


@pytest.mark.usefixtures("one_rank")
def test_the_traffic_does_not_depend_on_the_rows() -> None:
    sent = []
    for n_rows in (300, 600):
        x, y = worker.classes(n_rows)
        clf = worker.HeMLRNClassifier(**worker.SMALL, max_layers=1, n_estimators=1, fine_tune_epochs=0)
        traffic = distributed.fit(clf.set_params(max_neurons=8), x, y).traffic_
        sent.append(traffic["sums of the search"])
    assert sent[0] == sent[1]


@pytest.mark.usefixtures("one_rank")
def test_the_steps_on_a_device_are_those_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    from opgrow.estimators import base
    from opgrow.gpu.backend import DeviceBackend

    x, y = worker.classes(200)
    found = []
    for backend in (None, DeviceBackend(torch.device("cpu"))):
        clf = HeMLGOPClassifier(
            n_min=4, max_neurons=4, max_layers=1, n_estimators=1, operators=library()[:8], epochs=(3,),
            learning_rates=(0.01,), dropout=0.2, fine_tune_epochs=0, batch_size=64, random_state=0, n_jobs=1,
        )  # fmt: skip
        if backend is not None:
            monkeypatch.setattr(base, "choose_backend", lambda *given, chosen=backend: chosen)
        found.append(distributed.fit(clf, x, y))
    host, device = found
    assert [s.operator_set for s in host.history_] == [s.operator_set for s in device.history_]
    np.testing.assert_allclose(device.predict_proba(x), host.predict_proba(x), rtol=0, atol=1e-3)


def test_without_a_process_group_it_says_what_to_do() -> None:
    x, y = worker.classes()
    with pytest.raises(RuntimeError, match="needs a process group: start the program with torchrun"):
        distributed.fit(HeMLGOPClassifier(), x, y)


def test_torchrun_fits_from_the_command_line(tmp_path: Path) -> None:
    x, y = load_breast_cancer(return_X_y=True)
    np.savez(tmp_path / "data.npz", X=x, y=y)
    options = ["--method", "HeMLRN", "-p", "n_min=10", "-p", "fine_tune_epochs=2", "--jobs", "1", "--json"]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "-m"]
    files = [str(tmp_path / "data.npz"), "-o", str(tmp_path / "model.safetensors")]
    done = subprocess.run(
        [sys.executable, *torchrun, "opgrow", "fit", *files, *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)  # of rank 0 alone
    assert said["rows"] == len(x)
    assert said["scores"]["training"]["accuracy"] > 0.9
    assert load(tmp_path / "model.safetensors").score(x, y) > 0.9
