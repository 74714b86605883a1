"""Growth by blocks: where perceptrons are tuned beside the winner of the search, and which of both stays."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from opgrow import HeMLGOPClassifier
from opgrow.growth.methods import hemlgop
from opgrow.growth.methods.hemlgop import _is_worth_more
from opgrow.training.scores import Score

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 20))
Y = (np.sin(3 * X[:, 0]) * X[:, 1] > 0).astype(int)
SMALL = {
    "preset": None,
    "n_min": 18,
    "max_neurons": 18,
    "max_layers": 2,
    "epochs": (1, 1, 1),
    "random_state": 0,
}


@pytest.fixture
def searched(monkeypatch):
    """The inputs of each layer that is searched, and whether there are rivals."""
    seen, search = [], hemlgop.search

    def noted(train, sets, size, settings, *more):
        seen.append((train.n_inputs, bool(settings.rivals)))
        return search(train, sets, size, settings, *more)

    monkeypatch.setattr(hemlgop, "search", noted)
    return seen


@pytest.mark.parametrize(
    ("n_inputs", "wish", "first", "later"),
    [
        (4, "auto", False, True),
        (16, "auto", False, True),
        (17, "auto", True, True),
        (4, True, True, True),
        (20, False, False, False),
    ],
)
def test_perceptrons_are_rivals_in_layers_of_many_inputs(searched, n_inputs, wish, first, later):
    model = HeMLGOPClassifier(**SMALL, tune_perceptron=wish, layer_threshold=-10.0)
    model.fit(X[:, :n_inputs], Y)
    layers = dict(searched)
    assert list(layers) == [n_inputs, 18]
    assert list(layers.values()) == [first, later]


@pytest.mark.parametrize(("worth", "stays"), [(np.inf, True), (-np.inf, False)])
def test_a_perceptron_stays_unless_the_winner_is_worth_its_time(monkeypatch, worth, stays):
    monkeypatch.setattr(hemlgop, "_is_worth_more", lambda winner, rival: worth < 0)
    model = HeMLGOPClassifier(**SMALL, tune_perceptron=True).fit(X, Y)
    block = model.network_.layers[0].blocks[0]
    assert ((block.operator_set.nodal, block.operator_set.pool) == ("multiplication", "sum")) == stays


@pytest.mark.parametrize(
    ("winner", "rival", "worth"),
    [
        (0.98, 1.0, True),
        (0.995, 1.0, False),
        (1.0, 1.0, False),
        (1.1, 1.0, False),
        (np.nan, 1.0, False),
        (1.0, np.nan, True),
        (np.nan, np.nan, True),
    ],
)
def test_a_winner_has_to_be_better_by_a_hundredth(winner, rival, worth):
    def grown(value):
        return SimpleNamespace(result=SimpleNamespace(best=Score(value, value, higher_is_better=False)))

    assert _is_worth_more(grown(winner), grown(rival)) == worth


def grown(**changes):
    settings = {
        "preset": None,
        "n_min": 8,
        "n_step": 8,
        "max_neurons": 24,
        "max_layers": 2,
        "random_state": 0,
    }
    short = {"epochs": (2,), "fine_tune_epochs": 2}
    return HeMLGOPClassifier(**(settings | short | changes)).fit(X, Y)


@pytest.fixture
def rows_of_searches(monkeypatch):
    seen, search = [], hemlgop.search

    def noted(train, *more):
        seen.append(train.n_rows)
        return search(train, *more)

    monkeypatch.setattr(hemlgop, "search", noted)
    return seen


@pytest.fixture
def rows_of_trainings(monkeypatch):
    seen, training = [], hemlgop.BlockGrowth.training

    def noted(self, candidates, parts, *more):
        seen.append(parts[0].n_rows)
        return training(self, candidates, parts, *more)

    monkeypatch.setattr(hemlgop.BlockGrowth, "training", noted)
    return seen


@pytest.mark.parametrize(
    ("changes", "blocks", "all_rows"),
    [
        ({"growth_rows": 100}, 100, 240),
        ({"growth_rows": None}, 240, 240),
        ({"growth_rows": 240}, 240, 240),
        ({"growth_rows": 100, "validation_fraction": 0.0}, 300, 300),  # nothing else could judge
    ],
)
def test_blocks_grow_from_some_rows_and_the_end_learns_from_all(
    rows_of_searches, rows_of_trainings, changes, blocks, all_rows
):
    grown(**changes)
    assert set(rows_of_searches) == {blocks}
    assert set(rows_of_trainings[:-1]) == {blocks}
    assert rows_of_trainings[-1] == all_rows


def test_without_joint_tuning_the_head_still_learns_from_all_rows():
    model = grown(growth_rows=60, fine_tune_epochs=0)
    last = model.history_[-1]
    assert last.kind == "fine-tune"
    assert last.curve == []


def test_the_ridge_of_the_last_head_is_in_proportion_to_the_rows(monkeypatch):
    ridges, solve = [], hemlgop.solved_again
    noted = lambda rows, block, ridge, *more: (ridges.append(ridge), solve(rows, block, ridge, *more))[1]  # noqa: E731
    monkeypatch.setattr(hemlgop, "solved_again", noted)
    grown(fine_tune_ridge=0.25)
    grown(fine_tune_ridge=None)
    assert ridges == [pytest.approx(0.25 * 240)]


@pytest.mark.parametrize("name", ["growth_rows", "fine_tune_ridge"])
def test_wrong_values_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be .*None"):
        grown(**{name: -1})
