"""What a fit would take: said before, within a factor of two, and bounded where it can be."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import opgrow
from opgrow.bench.fit_memory import measure_memory, parse_sizes
from opgrow.cli import app, forecast
from opgrow.cli.bench import app as bench
from opgrow.common import machine
from opgrow.common import reservations as cache
from opgrow.growth.methods import METHODS

#: Every method, grown as far as these settings allow.
FULL: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        ("HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN"),
        {
            "n_min": 4,
            "n_step": 3,
            "max_neurons": 9,
            "n_estimators": 2,
            "block_threshold": -1e9,
            "epochs": (1, 0, 0),
        }
        | {"fine_tune_epochs": 0},
    ),
    **dict.fromkeys(
        ("POP", "POPFast", "POPMemO", "POPMemH"),
        {"widths": (4, 3), "epochs": (1, 0, 0), "fine_tune_epochs": 0, "layer_threshold": -1e9}
        | {"operators": [("multiplication", "sum", "tanh"), ("harmonic", "sum", "tanh")]},
    ),
    "PMLP": {"widths": (4, 3), "epochs": (1, 0, 0), "fine_tune_epochs": 0, "layer_threshold": -1e9},
    "PLN": {"n_min": 10, "n_step": 3, "max_neurons": 13, "max_layers": 2}
    | {"block_threshold": -1e9, "layer_threshold": -1e9},
    "BLS": {"n_min": 4, "n_step": 3, "max_neurons": 9, "block_threshold": -1e9},
}


def some_rows(n_rows: int = 90, n_inputs: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_inputs))
    y = (x @ rng.normal(size=(n_inputs, 3)) + rng.normal(size=(n_rows, 3))).argmax(axis=1)
    return x, y


@pytest.mark.parametrize("method", METHODS)
def test_a_network_that_grows_as_far_as_it_may_has_the_planned_size(method: str) -> None:
    settings = FULL[method] | ({"memory_energy": 1.0} if method in ("POPMemO", "POPMemH") else {})
    estimator = getattr(opgrow, f"{method}Classifier")(random_state=0, **settings)
    x, y = some_rows()
    planned = estimator.plan(len(x), x.shape[1], 3)
    estimator.fit(x, y)
    assert estimator.network_.n_parameters() == planned.n_parameters
    assert planned.n_rows + planned.n_held == len(x)
    assert min(planned.data, planned.growth) > 0


@pytest.mark.parametrize("method", METHODS)
def test_more_of_anything_takes_more(method: str) -> None:
    # Presets grow fewer networks from more rows, and searches keep features that are few enough.
    fixed = (
        {"n_estimators": 1, "n_min": 40, "n_step": 20, "max_neurons": 100}
        if "n_estimators" in FULL[method]
        else {}
    )
    estimator = getattr(opgrow, f"{method}Classifier")(n_jobs=2, **fixed)
    small = estimator.plan(100_000, 50, 5)  # too many for a search to keep their features
    assert estimator.plan(200_000, 50, 5).growth > small.growth
    assert estimator.plan(100_000, 500, 5).growth > small.growth
    if method != "PLN":  # where neurons that carry predictions on take the place of random ones
        assert estimator.plan(100_000, 50, 50).growth > small.growth


def test_a_student_and_a_budget_bound_the_network() -> None:
    assert opgrow.HeMLGOPClassifier(distill=7).plan(1000, 4, 3).n_parameters == 7 * (4 + 3 + 3) + 3
    assert opgrow.PLNClassifier(max_parameters=99).plan(1000, 4, 3).n_parameters == 99
    assert opgrow.HeMLGOPRegressor(preset="compact").plan(1000, 4, 1).distills


def test_wrong_parameters_are_refused_as_by_a_fit() -> None:
    with pytest.raises(ValueError, match="n_min must be"):
        opgrow.HeMLGOPClassifier(n_min=-1).plan(100, 4, 2)


# --- processes ---


@pytest.mark.parametrize(("method", "size"), [("HeMLRN", "8000x10x2"), ("BLS", "60000x20x4")])
def test_the_estimate_is_within_a_factor_of_two(method: str, size: str, tmp_path: Path) -> None:
    [found] = measure_memory(parse_sizes(size), [method], 1, tmp_path)
    assert found.measured / 2 < found.estimate < found.measured * 2
    assert list(tmp_path.iterdir()) == []


def test_sizes_that_cannot_be_measured_are_refused() -> None:
    for given, why in (("10x2", "SIZES are"), ("ax2x2", "SIZES are"), ("10x2x5", "ten rows of each")):
        result = CliRunner().invoke(app, ["bench", "memory", given])
        assert result.exit_code == 2
        assert why in result.stderr
    assert "unknown method 'x'" in str(CliRunner().invoke(bench, ["memory", "--methods", "x"]).exception)


# --- the command ---


@pytest.fixture
def table(tmp_path: Path) -> Path:
    x, y = some_rows()
    path = tmp_path / "table.npz"
    np.savez(path, X=x, y=np.array(["one", "two", "three"])[y])
    return path


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["fit", *map(str, arguments)])


def test_a_dry_run_tells_and_writes_nothing(table: Path) -> None:
    result = invoke(table, "--dry-run", "--output", table.parent / "m.safetensors")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if line)
    assert lines["rows"] == "72 for training, 18 for validation"
    assert lines["inputs"] == "5"
    assert lines["outputs"] == "3 classes of target"
    assert lines["method"].startswith("HeMLGOPClassifier: 5 networks, ")
    assert lines["memory"].startswith("about ")
    assert lines["model"] == str(table.parent / "m.safetensors")
    assert [path.name for path in table.parent.iterdir()] == [table.name]


@pytest.mark.parametrize("method", METHODS)
def test_a_dry_run_as_json(method: str, table: Path) -> None:
    found = json.loads(invoke(table, "--dry-run", "--json", "--method", method).stdout)
    estimator = getattr(opgrow, f"{method}Classifier")()
    assert found["parameters"] == estimator.plan(90, 5, 3).n_parameters
    assert (found["inputs"], found["outputs"], found["device"]) == (5, 3, "cpu")
    assert found["training_rows"] + found["validation_rows"] == 90
    memory = found["memory"]
    assert memory["peak"] >= memory["libraries"] + memory["data"] > memory["growth"] // 100


def test_a_dry_run_counts_the_rows_of_small_classes_as_a_fit_does(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    labels = ["a"] * 37 + ["b"] * 2 + ["c"] * 3 + ["d"] * 11
    path.write_text("x,target\n" + "".join(f"{i % 7},{label}\n" for i, label in enumerate(labels)))
    options = (path, "--method", "pln", "--output", tmp_path / "m.safetensors", "--json")
    found = json.loads(invoke(*options, "--dry-run").stdout)
    estimator = opgrow.PLNClassifier(random_state=0, callbacks=[heard := Heard()])
    estimator.fit(np.array([[i % 7] for i in range(len(labels))], float), labels)
    assert (found["training_rows"], found["validation_rows"]) == heard.rows


class Heard(opgrow.Callback):
    rows: tuple[int, int]

    def on_growth_start(self, event: Any) -> None:
        self.rows = event.n_rows, event.n_validation


def test_a_dry_run_refuses_what_a_fit_refuses(table: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.csv"
    one.write_text("a,target\n1,x\n2,x\n3,x\n")
    for arguments, why in (
        ((one,), "needs at least 2 classes"),
        ((table, "-p", "n_min=-3"), "n_min must be"),
        ((table, "-p", "weight_range=-1"), "weight_range"),
        ((table, "--task", "regression"), "regression needs numbers"),
        ((table, "--output", tmp_path / "no" / "m"), "There is no folder"),
    ):
        wet, dry = (invoke(*arguments, *more) for more in ((), ("--dry-run",)))
        assert why in dry.stderr
        assert (wet.exit_code, wet.stderr) == (dry.exit_code, dry.stderr) == (2, dry.stderr)


def test_a_fit_that_needs_more_than_there_is_warns_in_a_sentence(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "available_bytes", lambda: 1000)
    options = (table, "--method", "pln", "--output", table.parent / "m.safetensors")
    result = invoke(*options)
    assert result.exit_code == 0
    first, *growth = result.stderr.splitlines()
    assert first.startswith("warning: growth may take about ")
    assert first.endswith("1 MiB are available.")
    assert "warning" not in " ".join(growth)
    assert invoke(*options, "--quiet").stderr == ""
    assert "which is not enough" in invoke(*options, "--dry-run").stdout


def test_a_dry_run_where_the_system_says_nothing_of_memory(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("available_bytes", "resident_bytes", "peak_bytes"):
        monkeypatch.setattr(forecast, name, lambda: None)
    assert "and what Python and its libraries take" in invoke(table, "--dry-run").stdout


# --- the machine ---


def test_what_is_taken_shows_in_what_a_process_has() -> None:
    before, available = machine.resident_bytes(), machine.available_bytes()
    if before is None:
        pytest.skip("this system does not say")
    block = np.ones(1 << 24)  # 128 MiB
    after = machine.resident_bytes()
    assert after is not None
    assert after - before > block.nbytes // 2
    assert machine.peak_bytes() >= after - (1 << 20)  # type: ignore[operator]
    assert available is not None
    assert available > 0


def test_a_container_bounds_what_is_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tmp_path / "group"
    group.mkdir()
    (group / "memory.max").write_text("1000\n")
    (group / "memory.current").write_text("700\n")
    (group / "memory.stat").write_text("anon 600\ninactive_file 100\n")
    monkeypatch.setattr(machine, "_GROUPS", group)
    assert machine.available_bytes() == 400
    (group / "memory.max").write_text("max\n")
    assert (machine.available_bytes() or 1 << 40) > 1000


# --- what is kept to save time ---


def test_searches_keep_no_more_than_their_bound_together() -> None:
    first = cache.reserve(cache.TOTAL_BYTES - 10)
    assert first is not None
    assert cache.reserve(11) is None
    second = cache.reserve(10)
    assert second is not None
    del first, second
    gc.collect()
    assert cache.reserve(cache.TOTAL_BYTES) is not None


def test_a_search_without_room_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = some_rows()

    def grown() -> np.ndarray:
        estimator = opgrow.HeMLRNClassifier(n_min=5, max_layers=1, fine_tune_epochs=0, random_state=0)
        return estimator.fit(x, y).predict_proba(x)

    kept = grown()
    monkeypatch.setattr(cache, "TOTAL_BYTES", 0)
    assert np.array_equal(grown(), kept)
