"""Presets: how many networks, how large, and what comes before them."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_iris, load_wine

from opgrow import HeMLGOPClassifier, HeMLGOPRegressor
from opgrow.estimators.base import NetworkSize
from opgrow.estimators.families.presets import deepest, n_networks, preset_of, student_size, widest
from opgrow.network import Block, Layer, Network
from opgrow.operators import OperatorSet

SET = OperatorSet("multiplication", "sum", "sigmoid")


def test_a_compact_network_has_few_parameters():
    x, y = load_wine(return_X_y=True)
    short = {"epochs": (2,), "learning_rates": (0.01,), "max_neurons": 20}
    model = HeMLGOPClassifier(preset="compact", random_state=0, **short).fit(x, y)
    assert 400 < model.network_.n_parameters() <= 500
    assert model.history_[-1].member == 6


@pytest.mark.parametrize(("n_inputs", "n_outputs"), [(2, 2), (20, 10), (7, 1)])
def test_compact_students_of_small_problems_have_at_most_500_parameters(n_inputs, n_outputs):
    teacher = Network(n_inputs, n_outputs, [Layer([Block(n_inputs, 300, SET)])])
    size = student_size(HeMLGOPClassifier(preset="compact"), NetworkSize.of(teacher))
    student = Network(n_inputs, n_outputs, [Layer([Block(n_inputs, size, SET)])])
    assert student.n_parameters() <= 500
    assert size == 200 or student.n_parameters() > 500 - (n_inputs + n_outputs + 3)


def test_a_compact_student_has_a_neuron_for_each_of_many_classes():
    teacher = NetworkSize.of(Network(30, 102, [Layer([Block(30, 300, SET)])]))
    assert student_size(HeMLGOPClassifier(preset="compact"), teacher) == 102
    assert student_size(HeMLGOPClassifier(preset="compact", distill=None), teacher) is None
    assert student_size(HeMLGOPClassifier(), teacher) is None


def test_growth_and_not_a_preset_bounds_the_networks_of_an_average():
    assert widest(HeMLGOPClassifier()) == widest(HeMLGOPRegressor()) == 200
    assert widest(HeMLGOPClassifier(n_min=300)) == 300
    assert widest(HeMLGOPClassifier(max_neurons=70)) == 70


def test_a_single_network_may_have_two_layers_and_those_of_an_average_one():
    assert deepest(HeMLGOPRegressor(), 1) == 2
    assert deepest(HeMLGOPRegressor(), 5) == 1
    assert deepest(HeMLGOPRegressor(max_layers=4), 1) == 4


def test_parameters_of_their_own_come_before_those_of_a_preset():
    accurate = preset_of(HeMLGOPClassifier(preset="accurate", n_min=7, n_estimators=2))
    assert (accurate.n_min, accurate.n_step, accurate.n_estimators, accurate.max_layers) == (7, 40, 2, 1)
    alone = preset_of(HeMLGOPClassifier(preset=None))
    assert (alone.n_min, alone.n_step, alone.n_estimators, alone.max_layers) == (40, 20, 1, 2)
    several = preset_of(HeMLGOPClassifier(preset=None, n_estimators=3))
    assert (several.n_estimators, several.max_layers) == (3, 2)
    deep = preset_of(HeMLGOPClassifier(max_layers=3))
    assert (deep.n_estimators, deep.max_layers) == (5, 3)
    with pytest.raises(
        ValueError, match="preset must be one of None, 'compact', 'balanced', 'accurate', got"
    ):
        HeMLGOPClassifier(preset="tiny").fit(*load_iris(return_X_y=True))


def test_many_rows_need_fewer_networks():
    model = HeMLGOPClassifier()
    assert [n_networks(model, rows) for rows in (10, 20_000, 33_000, 50_000, 51_000, 10**7)] == [
        5,
        5,
        3,
        2,
        1,
        1,
    ]
    assert n_networks(HeMLGOPClassifier(n_estimators=4), 10**7) == 4
