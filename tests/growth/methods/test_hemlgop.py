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
