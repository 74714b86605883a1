"""The number of ranks does not show: they grow the same network, and send what the formulas say."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import r2_score

from opgrow import HeMLGOPClassifier, HeMLRNClassifier, distributed, load
from opgrow.common.team import Alone
from opgrow.distributed.cost import epoch_bytes, search_bytes, step_bytes
from opgrow.distributed.rendezvous import meet
from opgrow.growth.checkpoints import Folder
from opgrow.growth.checkpoints.identity import read_run
from opgrow.growth.checkpoints.record_files import read_record
from opgrow.operators import library
from opgrow.rows.chunks import from_files
from tests.distributed import rank_worker as worker

HERE = Path(__file__).parent
#: Seconds for all ranks of a case, on a busy machine.
PATIENCE = 900
#: Fits that shuffle the rows of each rank among themselves.
SHUFFLED = ("tuned chunks", "torch chunks")
#: Classifiers whose rows are in memory, trained by the engine: not one bit shows the number of ranks.
EXACT = ("tuned", "average", "random")


Found = dict[str, list[Any]]
CASES = ("fits:1", "fits:2", "fits:4", "mistakes:2", "ended:2", "killed:2", "resumed:1", "resumed:2")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which each case has one of its own; processes are started once for all tests."""
    folder = tmp_path_factory.mktemp("ranks")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(HERE / "rank_worker.py"), str(folder), *CASES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
    assert done.returncode == 0, done.stderr
    for case in CASES:
        codes = json.loads((folder / case / "codes.json").read_text())
        assert codes == ([-9, 0] if case == "killed:2" else [0] * int(case[-1])), done.stderr
    return folder


@pytest.fixture(scope="module")
def actual(place: Path) -> Found:
    """What the ranks of each case have found, as far as they lived."""
    return {
        case: [json.loads(file.read_text()) for file in sorted((place / case).glob("[0-9].json"))]
        for case in CASES
    }


@pytest.mark.parametrize("name", [name for name in worker.FITS if name not in SHUFFLED])
@pytest.mark.parametrize("size", [2, 4])
def test_the_number_of_ranks_does_not_show(actual: Found, size: int, name: str) -> None:
    alone, shared = actual["fits:1"][0][name], actual[f"fits:{size}"][0][name]
    for what in ("operators", "curves", "parameters"):
        assert alone[what] == shared[what]
    said, expected = np.array(shared["said"]), np.array(alone["said"])
    if name in EXACT:
        assert np.array_equal(said, expected)
    np.testing.assert_allclose(said, expected, rtol=0, atol=1e-4 * max(1.0, np.ptp(expected)))


@pytest.mark.parametrize("name", worker.FITS)
def test_all_ranks_have_the_same_network(actual: Found, name: str) -> None:
    first, *others = actual["fits:4"]
    for other in others:
        assert other[name]["said"] == first[name]["said"]


def test_without_tuning_one_process_grows_the_same(actual: Found) -> None:
    make, data = worker.FITS["random"]
    x, y = data()
    plain, shared = make().fit(x, y), actual["fits:2"][0]["random"]
    assert [str(step.operator_set) for step in plain.history_] == shared["operators"]
    np.testing.assert_allclose(shared["said"], plain.predict_proba(x), rtol=0, atol=1e-4)


def test_one_process_grows_the_same_from_a_source(actual: Found) -> None:
    make, data = worker.FITS["random chunks"]
    x, y = data()
    plain, shared = make().fit(worker.rows_of("chunks", x, y)[0]), actual["fits:2"][0]["random chunks"]
    assert [str(step.operator_set) for step in plain.history_] == shared["operators"]
    np.testing.assert_allclose(shared["said"], plain.predict_proba(x), rtol=0, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_tuning_on_windows_of_all_ranks_learns_as_much(actual: Found, size: int) -> None:
    make, data = worker.FITS["tuned chunks"]
    x, y = data()
    plain = make().fit(worker.rows_of("chunks", x, y)[0])
    assert r2_score(y, actual[f"fits:{size}"][0]["tuned chunks"]["said"]) > plain.score(x, y) - 0.05


def test_tuning_on_ranks_learns_as_much_as_in_one_process(actual: Found) -> None:
    make, data = worker.FITS["tuned"]
    x, y = data()
    plain = make().fit(x, y)
    right = plain.classes_[np.argmax(actual["fits:2"][0]["tuned"]["said"], axis=1)] == y
    assert right.mean() > plain.score(x, y) - 0.05


def test_mistakes_of_one_rank_are_told_to_all(actual: Found) -> None:
    ranks = actual["mistakes:2"]
    assert ranks[0] | {"stopped": 0} == ranks[1] | {"stopped": 0}
    said = ranks[0]
    assert said["columns"] == "the ranks differ in columns: rank 0 has 6, and rank 1 4"
    assert said["rows"].startswith("rank 1: Found array with 0 sample(s)")
    assert said["missing"].startswith("rank 1: on several ranks X has to be numbers without gaps")
    assert said["parameters"] == (
        "the ranks differ in parameters of the estimator: rank 0 has ridge=1.0, and rank 1 ridge=2.0"
    )
    assert said["labels"] == "the classes of all ranks must be of one type, got str, int"
    able = said["method"].removeprefix("PLNClassifier cannot grow on several ranks: ").removesuffix(" can")
    assert set(re.split(", | and ", able)) == {"HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN"}
    assert said["folder"].startswith("rank 0: checkpoint_dir must be a folder, and ")
    assert said["chunks"].endswith("rank 0 has memory_limit=None, and rank 1 memory_limit=1000")
    assert said["far"].startswith("rank 1: X or eval_set has values that are too far from the others")
    assert "cannot distill on several ranks" in said["distill"]
    # Rank 0 alone is asked whether to stop, and all of them do.
    assert [rank["stopped"] for rank in ranks] == [
        ["five epochs are enough", 5],
        ["five epochs are enough", 0],
    ]


def test_a_rank_that_dies_ends_the_others_with_one_sentence(actual: Found) -> None:
    [survivor] = actual["killed:2"]
    assert survivor["error"].startswith("rank 1 of 2 has lost another rank while it shared ")
    assert "\n" not in survivor["error"]


@pytest.mark.parametrize(("case", "tolerance"), [("resumed:2", 0.0), ("resumed:1", 1e-4)])
def test_what_they_have_left_any_number_of_ranks_go_on_with(
    actual: Found, case: str, tolerance: float
) -> None:
    undisturbed, resumed = actual["fits:2"][0]["tuned"], actual[case][0]
    assert resumed["operators"] == undisturbed["operators"]
    np.testing.assert_allclose(resumed["said"], undisturbed["said"], rtol=0, atol=tolerance)
    # The first search and the first tuning were not done again.
    for what in ("sums of the search", "gradients"):
        assert resumed["traffic"][what][0] < undisturbed["traffic"][what][0]


def test_a_signal_to_one_rank_saves_and_ends_all_of_them(actual: Found, place: Path) -> None:
    assert actual["ended:2"] == [{"error": "143"}] * 2
    growth = place / "ended:2" / "growth"
    run = read_run(growth / "run.json").key
    records = [read_record(file, run, None)[0] for file in growth.glob("*.safetensors")]
    assert not all(record.finished for record in records)


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
        n_min=n_neurons, max_neurons=n_neurons, max_layers=1, n_estimators=1, n_draws=1, epochs=(epochs,),
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
    scored = n_bytes("statistics and scores")
    first_score = 2 * 8 * n_neurons + 4 * 8
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
    from opgrow.estimators.fit import array_data
    from opgrow.growth.cuda_engine import CudaEngine

    x, y = worker.classes(200)
    actual = []
    there = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # where Triton interprets
    for backend in (None, CudaEngine(there)):
        clf = HeMLGOPClassifier(
            n_min=4, max_neurons=4, max_layers=1, n_estimators=1, operators=library()[:8], epochs=(3,),
            learning_rates=(0.01,), dropout=0.2, fine_tune_epochs=0, batch_size=64, random_state=0, n_jobs=1,
        )  # fmt: skip
        if backend is not None:
            monkeypatch.setattr(array_data, "choose_engine", lambda *given, chosen=backend: chosen)
        actual.append(distributed.fit(clf, x, y))
    host, device = actual
    assert [s.operator_set for s in host.history_] == [s.operator_set for s in device.history_]
    np.testing.assert_allclose(device.predict_proba(x), host.predict_proba(x), rtol=0, atol=1e-3)


def test_a_signal_that_comes_while_ranks_ask_each_other_is_not_lost(tmp_path: Path) -> None:
    class Meanwhile(Alone):
        """A team of one rank, which a signal reaches after it has said that there was none."""

        def numbers(self, number: int, purpose: str) -> list[int]:
            folder.interruption.signal = signal.SIGTERM
            return [number]

    folder = Folder(tmp_path, 60.0, Meanwhile())
    assert [folder.asked(), folder.asked()] == [False, True]


def test_ranks_meet_those_of_the_same_start() -> None:
    store = dist.HashStore()
    for key, word in (
        ("hello/1", "gone"),
        ("welcome/1", "gone old"),
        ("thanks/1", "old"),
        ("thanks/2", "old"),
    ):
        store.set(f"opgrow/{key}", word)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(meet, store, 0, 3)
        time.sleep(0.2)  # rank 0 finds what was left, and the others come later
        others = [pool.submit(meet, store, rank, 3) for rank in (1, 2)]
        words = {actual.result(timeout=60) for actual in (first, *others)}
    assert len(words) == 1
    assert words.isdisjoint({"old", "gone"})


def test_a_rank_does_not_wait_for_ever() -> None:
    for rank, whom in ((0, "rank 1"), (1, "rank 0")):
        with pytest.raises(
            TimeoutError, match=f"rank {rank} has waited 0 s for {whom}, which does not answer"
        ):
            meet(dist.HashStore(), rank, 2, patience=0.1)


def test_without_a_process_group_it_says_what_to_do() -> None:
    x, y = worker.classes()
    with pytest.raises(RuntimeError, match="needs a process group: start the program with torchrun"):
        distributed.fit(HeMLGOPClassifier(), x, y)


X, Y = load_breast_cancer(return_X_y=True)


def torchrun(data: Path, *options: str, restarts: int = 0, n_ranks: int = 2) -> list[str]:
    """A command that fits the rows of a file or folder on ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={n_ranks}", "--standalone"]
    return [*command, f"--max-restarts={restarts}", "-m", "opgrow", "fit", str(data), "--jobs", "1", *options]


def test_torchrun_fits_a_folder_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "days").mkdir()
    for day in range(4):
        np.savez(tmp_path / "days" / f"{day}.npz", X=X[day::4], y=Y[day::4])
    model = tmp_path / "model.safetensors"
    options = ["--method", "HeMLRN", "-pn_min=10", "-pmax_layers=1", "-pfine_tune_epochs=0"]
    command = torchrun(tmp_path / "days", *options, "--json", "-o", str(model))
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)  # of rank 0 alone
    assert said["rows"] == len(X)
    alone = HeMLRNClassifier(n_min=10, max_layers=1, fine_tune_epochs=0, random_state=0)
    alone.fit(from_files(tmp_path / "days"))
    np.testing.assert_allclose(load(model).predict_proba(X), alone.predict_proba(X), rtol=0, atol=1e-4)


#: One network of two blocks, which takes some seconds.
GIVEN = ("n_min=10", "max_neurons=20", "max_layers=1", "n_estimators=1", "distill=null")
LONG = [f"-p{given}" for given in GIVEN]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the ranks in /proc")
def test_torchrun_goes_on_with_a_job_whose_ranks_are_killed(tmp_path: Path) -> None:
    """Killed once it starts again, killed twice it says so, and --resume ends it with the same network."""
    np.savez(tmp_path / "data.npz", X=X, y=Y)
    growth, model = tmp_path / "growth", tmp_path / "model.safetensors"
    options = [*LONG, "--checkpoint", str(growth), "-o", str(model)]
    command = torchrun(tmp_path / "data.npz", *options, restarts=1)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as job:
        try:
            dead: set[int] = set()
            for n_files in (1, 2):
                kill_when(job, growth, n_files, dead)
            said = job.communicate(timeout=PATIENCE)[0]
        finally:
            job.kill()
    assert job.returncode == 1
    assert "Signal 9 (SIGKILL) received by PID" in said
    assert not model.exists()
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert not growth.exists()
    undisturbed = tmp_path / "undisturbed.safetensors"
    alone = torchrun(tmp_path / "data.npz", *LONG, "-o", str(undisturbed), n_ranks=1)
    subprocess.run(alone, capture_output=True, check=True, timeout=PATIENCE)
    assert load(model).network_.digest() == load(undisturbed).network_.digest()


def kill_when(job: subprocess.Popen[str], growth: Path, n_files: int, dead: set[int]) -> None:
    """Kill rank 1, another one than those that are dead, as soon as so many pieces of work are saved."""
    deadline = time.monotonic() + PATIENCE
    while True:
        alive = ranks_of(job.pid, 1) - dead
        if alive and len(list(growth.glob("*.safetensors"))) >= n_files:
            break
        assert job.poll() is None, job.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for process in alive:
        os.kill(process, signal.SIGKILL)
    dead |= alive


def ranks_of(parent: int, rank: int) -> set[int]:
    """The processes that torchrun has started as a rank."""
    actual = set()
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with suppress(OSError):
            if f"\0RANK={rank}\0".encode() in Path(f"/proc/{child}/environ").read_bytes():
                actual.add(int(child))
    return actual
