"""A study runs everything once, goes on after an interruption, and shows what did not finish."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from opgrow.bench import study, tables
from opgrow.bench.protocols import PROTOCOLS, draw_inner_split, draw_split
from opgrow.bench.runs import DONE, OVER_BUDGET, Run
from opgrow.bench.store import Store
from opgrow.bench.study import Study, run_study
from opgrow.cli.bench import app

FINE = {"status": DONE, "accuracy": 0.8, "seconds": 0.5, "parameters": 100, "flops": 200}
LATE = {"status": OVER_BUDGET, "message": "not finished within 1 s", "seconds": 1.0}


def small(tmp_path, **changes):
    settings = {"datasets": ["iris"], "models": ["PLN", "BLS"], "n_splits": 2, "select": "none"} | changes
    return Study(out=tmp_path, **settings)


@pytest.fixture
def executed(monkeypatch):
    """The runs that are executed, each of which ends at once."""
    runs = []

    def execute(run, x, y, split, select, budget, device):
        runs.append(run.name)
        return dict(FINE)

    monkeypatch.setattr(study, "execute", execute)
    return runs


def ignore(run, result, known):
    pass


def test_a_finished_study_is_not_run_again(tmp_path, executed):
    first = run_study(small(tmp_path), ignore)
    assert executed == ["iris/0/PLN", "iris/0/BLS", "iris/1/PLN", "iris/1/BLS"]
    heard = []
    again = run_study(small(tmp_path), lambda run, result, known: heard.append(known))
    assert again == first
    assert len(executed) == 4
    assert heard == [True] * 4


@pytest.mark.parametrize(("inner", "device"), [(False, "auto"), (True, "cpu")])
def test_a_study_hands_on_its_splits_and_its_device(tmp_path, monkeypatch, inner, device):
    seen = []

    def execute(run, x, y, split, select, budget, where):
        expected = (draw_inner_split if inner else draw_split)(y, run.split)
        seen.append((np.array_equal(split.train, expected.train), np.array_equal(split.test, expected.test)))
        assert (select, budget, where) == ("none", 7.0, device)
        return dict(FINE)

    monkeypatch.setattr(study, "execute", execute)
    run_study(small(tmp_path, inner=inner, device=device, budget=7.0), ignore)
    assert seen == [(True, True)] * 4


def test_an_interrupted_study_goes_on(tmp_path, executed):
    def interrupt(run, result, known):
        if run.name == "iris/0/BLS":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(small(tmp_path), interrupt)
    run_study(small(tmp_path), ignore)
    assert executed == ["iris/0/PLN", "iris/0/BLS", "iris/1/PLN", "iris/1/BLS"]


def test_more_models_and_splits_are_added_to_a_study(tmp_path, executed):
    run_study(small(tmp_path), ignore)
    actual = run_study(small(tmp_path, models=["PLN", "BLS", "PMLP"], n_splits=3), ignore)
    assert len(actual) == 9
    assert len(executed) == 9


@pytest.mark.parametrize("changes", [{"select": "test"}, {"inner": True}])
def test_another_selection_is_not_mixed_in(tmp_path, executed, changes):
    run_study(small(tmp_path), ignore)
    with pytest.raises(ValueError, match="with other settings"):
        run_study(small(tmp_path, **changes), ignore)


def test_runs_of_other_data_are_not_mixed_in(tmp_path, executed):
    for home, first in (("one", "0.5"), ("another", "0.6")):
        (tmp_path / home).mkdir()
        lines = ["x,y", f"{first},0", *(f"{i},{i % 2}" for i in range(40))]
        (tmp_path / home / "table.csv").write_text("\n".join(lines))
    run_study(small(tmp_path, datasets=["table"], data_home=str(tmp_path / "one")), ignore)
    with pytest.raises(ValueError, match="with other settings"):
        run_study(small(tmp_path, datasets=["table"], data_home=str(tmp_path / "another")), ignore)


def test_what_ran_out_of_time_is_tried_again_only_with_more_of_it(tmp_path, monkeypatch):
    tried = []

    def execute(run, x, y, split, select, budget, device):
        tried.append(budget)
        return dict(LATE if budget < 5 else FINE)

    monkeypatch.setattr(study, "execute", execute)
    settings = {"models": ["PLN"], "n_splits": 1}
    for budget in (1.0, 1.0, 0.5, 5.0, 5.0):
        run_study(small(tmp_path, budget=budget, **settings), ignore)
    assert tried == [1.0, 5.0]


def test_the_longest_runs_begin_first(tmp_path, executed):
    run_study(small(tmp_path, models=["PLN", "POPFast", "POP"], n_splits=1), ignore)
    assert executed == ["iris/0/POP", "iris/0/POPFast", "iris/0/PLN"]


def test_several_processes_give_the_same_results(tmp_path):
    alone = run_study(small(tmp_path / "one", n_jobs=1), ignore)
    together = run_study(small(tmp_path / "two", n_jobs=2), ignore)
    for (run, result), (other, same) in zip(alone, together, strict=True):
        assert run == other
        assert result["status"] == DONE
        assert result["accuracy"] == same["accuracy"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": ["PLN", "CNN"]}, "unknown model 'CNN'"),
        ({"models": ["PLN", ""]}, "unknown model ''"),
        ({"models": ["PLN depth=3"]}, "PLN has no parameter 'depth'; it has: admm_iterations, alpha, "),
        ({"device": "tpu"}, "device must be one of 'auto', 'cpu', 'cuda' or 'cuda:N', got 'tpu'"),
        ({"protocol": "mine"}, "protocol must be one of paper, seeds, given, splits, got 'mine'"),
        ({"select": "best"}, "select must be one of inner, none, test, got 'best'"),
    ],
)
def test_what_is_unknown_is_refused_before_any_work(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        run_study(small(tmp_path / "new", **changes), ignore)
    assert not (tmp_path / "new").exists()


# --- tables ---


def results(dataset, model, *values):
    return [(Run(dataset, i, model), dict(value)) for i, value in enumerate(values)]


def markdown(actual, protocol):
    return tables.as_markdown(tables.tables_of(actual, PROTOCOLS[protocol]))


def test_published_figures_stand_beside_ours_where_the_data_is_the_same():
    actual = results("pima", "HeMLGOP.paper", FINE) + results("scene15", "HeMLGOP.paper", FINE)
    text = markdown(actual, "paper")
    assert "| pima | 80.0 [81.81] |" in text
    assert "| scene15 | 80.0 |" in text
    assert "| pima | 0.5 [217] |" in text


def test_inner_splits_do_not_stand_beside_published_figures():
    actual = results("pima", "HeMLGOP", FINE)
    text = tables.as_markdown(tables.tables_of(actual, PROTOCOLS["paper"], inner=True))
    assert "[" not in text
    assert "Test accuracy" not in text
    assert "## Accuracy on training rows held back (%)" in text


def test_what_did_not_finish_is_shown():
    actual = results("pima", "POP", FINE, LATE, FINE) + results("pima", "POPFast", LATE)
    text = markdown(actual, "splits")
    assert "80.0 ± 0.0, 1 of 3 not finished" in text
    assert "| not finished |" in text


def test_accuracies_are_summarised_as_the_protocol_says():
    values = [
        FINE | {"accuracy": accuracy, "parameters": size}
        for accuracy, size in zip((0.5, 0.6, 1.0), (1, 2, 9), strict=True)
    ]
    [median] = tables.summarize(results("iris", "PLN", *values), "median")
    [mean] = tables.summarize(results("iris", "PLN", *values), "mean")
    assert (median["accuracy"], mean["accuracy"]) == (0.6, pytest.approx(0.7))
    assert median["parameters"] == mean["parameters"] == 2
    assert mean["deviation"] == pytest.approx(0.2646, abs=1e-4)


def test_means_over_datasets_are_of_models_that_finished_all_of_them():
    actual = results("pima", "PLN", FINE) + results("iris", "PLN", FINE | {"accuracy": 0.9})
    actual += results("pima", "BLS", FINE) + results("iris", "BLS", LATE)
    assert "| mean | 85.0 |  |" in markdown(actual, "paper")


def test_differences_are_of_the_same_splits():
    actual = results("pima", "HeMLGOP", FINE, FINE, LATE) + results("iris", "HeMLGOP", FINE)
    other = FINE | {"accuracy": 0.83, "parameters": 200}
    actual += results("pima", "PLN", other, LATE, other) + results("iris", "PLN", other | {"accuracy": 0.79})
    (row,) = tables.against_reference(actual)
    assert (row["model"], row["pairs"]) == ("PLN", 2)
    assert row["difference"] == pytest.approx(1.0)
    assert row["error"] == pytest.approx(2.0)
    assert (row["size"], row["time"]) == (pytest.approx(2.0), pytest.approx(1.0))
    assert "| PLN | +1.0 ± 2.0 | 2 | 1 | 2 |" in markdown(actual, "splits")


def test_the_csv_has_every_run():
    actual = results("iris", "PLN", FINE, LATE)
    actual[0][1]["operators"] = [{"layer": 1, "set": "dog/sum/elu", "neurons": 4}] * 2
    source = {"command": "opgrow bench paper", "protocol": "paper", "select": "inner"}
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(actual, source))))
    assert all(source.items() <= row.items() for row in rows)
    assert [row["operators"] for row in rows] == ["dog/sum/elu:4 dog/sum/elu:4", ""]
    assert [row["status"] for row in rows] == [DONE, OVER_BUDGET]
    assert rows[0]["accuracy"] == "0.8"
    assert rows[1]["accuracy"] == ""
    assert rows[1]["message"] == "not finished within 1 s"


def test_the_figures_of_a_median_are_those_of_one_run():
    values = [FINE | {"accuracy": a, "parameters": p} for a, p in ((0.9, 1), (0.7, 1000), (0.8, 50))]
    [row] = tables.summarize(results("iris", "PLN", *values), "median")
    assert (row["accuracy"], row["parameters"]) == (0.8, 50)
    [row] = tables.summarize(results("iris", "PLN", *values), "mean")
    assert (row["accuracy"], row["parameters"]) == (pytest.approx(0.8), 50)
    assert tables.median_run([]) == []


# --- the command ---


def test_the_command_writes_its_files_and_goes_on(tmp_path):
    arguments = ["paper", "--datasets", "iris", "--models", "PLN,HeMLRN", "--splits", "1", "--select", "none"]
    arguments += ["--jobs", "1", "--out", str(tmp_path / "out")]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert "## Test accuracy (%)" in first.stdout
    assert "[2/2]" in first.stderr
    assert (tmp_path / "out" / "tables.md").read_text() + "\n" == first.stdout
    assert (tmp_path / "out" / "results.csv").read_text().count("done") == 2
    again = CliRunner().invoke(app, [*arguments, "--json"])
    assert again.stderr.count("(known)") == 2
    assert {row["model"] for row in json.loads(again.stdout)["results"]} == {"PLN", "HeMLRN"}


def test_ablations_are_of_models_with_parameters(tmp_path):
    short = "preset=null learning_rates=[0.01] epochs=[1] max_neurons=60 fine_tune_epochs=0"
    names = [f"HeMLRN {short}", f"HeMLRN {short} n_min=10"]
    arguments = ["ablations", "--datasets", "iris", "--models", ",".join(names), "--splits", "2", "--inner"]
    actual = CliRunner().invoke(app, [*arguments, "--jobs", "1", "--out", str(tmp_path)])
    assert actual.exit_code == 0, actual.output
    assert f"## Against {names[0]}, all datasets" in actual.stdout
    assert "within the training rows" in (tmp_path / "index.html").read_text()
    sizes = {
        result["topology"].split("-")[1]
        for name, result in Store(tmp_path / "runs").results()
        if name.endswith("n_min=10")
    }
    assert sizes <= {"10", "30", "50"}


def test_tables_of_an_optimistic_study_say_so(tmp_path):
    arguments = ["ablations", "--datasets", "iris", "--models", "BLS", "--splits", "1"]
    actual = CliRunner().invoke(app, [*arguments, "--select", "test", "--jobs", "1", "--out", str(tmp_path)])
    assert actual.exit_code == 0, actual.output
    assert "Optimistic: parameters were chosen on the test rows" in actual.stdout
    assert "Optimistic" in (tmp_path / "tables.md").read_text()
