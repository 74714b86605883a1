"""Presets: how many networks, how large, and what comes before them."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_iris, load_wine, make_classification

from opgrow import HeMLGOPClassifier, HeMLGOPRegressor
from opgrow.estimators.base import NetworkSize
from opgrow.estimators.families.presets import (
    PRESETS,
    finds_its_size,
    n_networks,
    preset_of,
    sizes_up_to,
    student_size,
    widest,
    widths,
)
from opgrow.network import Block, Layer, Network
from opgrow.operators import OperatorSet

SET = OperatorSet("multiplication", "sum", "sigmoid")
#: Growth in hundredths of a second.
SHORT = {"epochs": (2,), "learning_rates": (0.01,), "fine_tune_epochs": 2, "operators": [SET]}


def block_sizes(**parameters):
    """Neurons of each block of a layer that grows until it is full."""
    full = {"block_threshold": -1e9, "max_layers": 1, "n_estimators": 1}
    model = HeMLGOPRegressor(random_state=0, **SHORT, **full, **parameters)
    x, _ = load_iris(return_X_y=True)
    return [block.n_neurons for block in model.fit(x[:, 1:], x[:, 0]).network_.layers[0]]


def test_a_compact_network_has_few_parameters():
    x, y = load_wine(return_X_y=True)
    model = HeMLGOPClassifier(preset="compact", max_neurons=20, random_state=0, **SHORT).fit(x, y)
    assert model.network_.n_parameters() <= 500
    assert len(model.network_.layers) == 1
    # The average of the networks before the last one was its teacher.
    assert model.history_[-1].member == PRESETS["compact"].n_estimators + 1


def test_a_compact_network_that_goes_on_learning_has_all_features_there_is_room_for():
    x, y = load_wine(return_X_y=True)
    model = HeMLGOPClassifier(preset="compact", max_neurons=20, random_state=0, **SHORT).partial_fit(x, y)
    assert 470 < model.network_.n_parameters() <= 500


def test_students_are_tried_from_one_neuron_to_all():
    assert sizes_up_to(1) == [1]
    assert sizes_up_to(8) == [1, 2, 4, 8]
    assert sizes_up_to(38) == [1, 2, 4, 8, 16, 32, 38]
    assert finds_its_size(HeMLGOPClassifier(preset="compact"))
    assert not finds_its_size(HeMLGOPClassifier(preset="compact", distill=20))
    assert not finds_its_size(HeMLGOPClassifier(max_parameters=300))


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


@pytest.mark.parametrize("preset", PRESETS)
def test_growth_and_not_a_preset_bounds_the_networks(preset):
    classifier, regressor = HeMLGOPClassifier(preset=preset), HeMLGOPRegressor(preset=preset)
    assert preset_of(classifier) == preset_of(regressor)
    assert preset_of(classifier).max_layers == preset_of(HeMLGOPClassifier()).max_layers > 1
    assert widest(classifier) == widest(regressor) == widest(HeMLGOPClassifier())
    assert widest(classifier) > 20 * preset_of(classifier).n_min
    assert widest(HeMLGOPClassifier(preset=preset, n_min=5000)) == 5000
    assert widest(HeMLGOPClassifier(preset=preset, max_neurons=70)) == 70


def test_more_accurate_presets_grow_more_networks():
    single, balanced, accurate = (
        preset_of(HeMLGOPClassifier(preset=p)) for p in (None, "balanced", "accurate")
    )
    assert 1 == single.n_estimators < balanced.n_estimators < accurate.n_estimators
    assert HeMLGOPClassifier().preset == "balanced"


@pytest.mark.parametrize("preset", PRESETS)
def test_only_a_compact_network_is_a_student(preset):
    assert (preset_of(HeMLGOPClassifier(preset=preset)).student is not None) == (preset == "compact")


@pytest.mark.parametrize(
    ("preset", "n_rows", "neurons"),
    [
        ("balanced", 40, [10]),
        ("balanced", 100, [10, 20]),
        ("balanced", 400, [10, 20, 40, 80]),
        ("balanced", 2000, [25, 50, 100]),
        ("balanced", 6000, [75]),
        ("accurate", 400, [20, 40, 80]),
        ("accurate", 2000, [100]),
        ("compact", 16_000, [100]),
        ("compact", 16_001, []),
    ],
)
def test_layers_may_have_more_neurons_the_more_rows_there_are(preset, n_rows, neurons):
    assert widths(HeMLGOPClassifier(preset=preset), n_rows) == neurons


@pytest.mark.parametrize("own", [{"n_min": 5}, {"n_step": 5}, {"max_neurons": 15}])
def test_networks_have_the_sizes_that_users_name(own):
    assert widths(HeMLGOPClassifier(**own), 2000) == []
    model = HeMLGOPClassifier(max_layers=1, n_estimators=2, random_state=0, **SHORT, **own)
    model.fit(*make_classification(500, 4, n_informative=2, n_redundant=0, random_state=0))
    sizes = {step.n_neurons for step in model.history_ if step.kind == "block" and step.block == 1}
    assert sizes == {own.get("n_min", 10)}


def test_two_of_three_networks_of_an_average_are_tuned_as_a_whole():
    x, y = make_classification(500, 4, n_informative=2, n_redundant=0, random_state=0)
    model = HeMLGOPClassifier(random_state=0, max_layers=2, **SHORT).fit(x, y)
    layers = [(s.member, s.accepted) for s in model.history_ if s.kind == "layer"]
    blocks = [s.member for s in model.history_ if s.kind == "block"]
    for member in (2, 3, 5):
        assert [accepted for m, accepted in layers if m == member] == [True, True]
        assert blocks.count(member) == 2
    assert blocks.count(1) > 2


def test_parameters_of_their_own_come_before_those_of_a_preset():
    ready = PRESETS["accurate"]
    accurate = preset_of(HeMLGOPClassifier(preset="accurate", n_min=7, n_estimators=2))
    assert (accurate.n_min, accurate.n_estimators) == (7, 2)
    assert (accurate.n_step, accurate.max_layers) == (ready.n_step, ready.max_layers)
    alone = preset_of(HeMLGOPClassifier(n_estimators=1))
    assert alone == preset_of(HeMLGOPClassifier(preset=None)) == PRESETS[None]
    several = preset_of(HeMLGOPClassifier(preset=None, n_estimators=3, max_layers=2))
    assert (several.n_estimators, several.max_layers) == (3, 2)
    assert preset_of(HeMLGOPRegressor(max_layers=7)).max_layers == 7
    with pytest.raises(
        ValueError, match="preset must be one of None, 'compact', 'balanced', 'accurate', got"
    ):
        HeMLGOPClassifier(preset="tiny").fit(*load_iris(return_X_y=True))


def test_blocks_grow_with_their_layer():
    assert block_sizes(n_min=40, max_neurons=150) == [40, 20, 30, 45, 15]


def test_no_block_but_the_last_is_smaller_than_a_step():
    least = PRESETS[None].n_step
    assert block_sizes(n_min=2, max_neurons=2 + least + 1) == [2, least, 1]


def test_a_step_of_the_user_turns_proportional_growth_off():
    assert preset_of(HeMLGOPClassifier()).step_share > 0
    assert preset_of(HeMLGOPClassifier(n_step=20)).step_share == 0
    assert block_sizes(n_min=40, n_step=20, max_neurons=150) == [40, 20, 20, 20, 20, 20, 10]
    assert block_sizes(n_min=40, n_step=1, max_neurons=43) == [40, 1, 1, 1]


def test_many_rows_need_fewer_networks():
    model = HeMLGOPClassifier()
    numbers = [n_networks(model, rows) for rows in (10, 10_000, 20_000, 33_000, 50_000, 51_000, 10**5, 10**7)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == numbers[1] == preset_of(model).n_estimators
    assert 1 <= numbers[-1] < numbers[0]
    assert n_networks(HeMLGOPClassifier(n_estimators=4), 10**7) == 4
