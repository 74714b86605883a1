"""Formulas are the network: numpy evaluates their text to what the network says."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow import Block, Layer, Network, OperatorSet, operator_sets
from opgrow.operators import register_nodal, unregister
from opgrow.report import formula
from tests.networks import outputs_of, randomized
from tests.report.explanation.models import fitted, of_network, random_model


def evaluated(shown, rows, names=None):
    """What the text says of rows, by the names of its inputs."""
    variables = dict(vars(np))
    variables |= {name: rows[:, i].astype(np.float64) for i, name in enumerate(shown.inputs)}
    with np.errstate(all="ignore"):
        exec(shown.text, variables)
    return np.stack([variables[name] + np.zeros(len(rows)) for name in shown.outputs], axis=1)


def expected(model, rows):
    outputs = outputs_of(model, rows)
    return outputs.reshape(len(rows), -1)


def assert_says_the_same(model, rows, tolerance=1e-4):
    actual, said = evaluated(formula(model, 12, max_parameters=10_000), rows), expected(model, rows)
    assert actual.shape == said.shape
    assert np.abs(actual - said).max() < tolerance * (1 + np.abs(said).max())


@pytest.mark.parametrize("seed", range(50))
def test_the_text_gives_the_outputs_of_random_networks(seed):
    model = random_model(seed)
    rows = np.random.default_rng(seed).normal(size=(20, model.network_.n_inputs))
    assert_says_the_same(model, rows, 1e-3)


@pytest.mark.parametrize("pool", ["sum", "correlation1", "correlation2", "maximum"])
@pytest.mark.parametrize("bound", [None, 3.0])
def test_the_text_gives_the_outputs_of_all_operators(pool, bound):
    rows = 5 * np.random.default_rng(0).normal(size=(20, 3))
    for operators in [
        *operator_sets(pool=[pool]),
        OperatorSet("pygop_quadratic", pool, "pygop_softplus"),
        OperatorSet("pygop_dog", pool, "identity"),
    ]:
        network = randomized(Network(3, 1, [Layer([Block(3, 2, operators)])], input_bound=bound))
        assert_says_the_same(of_network(network, "regression"), rows, 1e-3)


def test_fewer_digits_are_further_away():
    x = np.random.default_rng(0).normal(size=(200, 2))
    model = fitted("HeMLGOPRegressor", x, np.tanh(x[:, 0]) * x[:, 1], max_layers=1)
    errors = [np.abs(evaluated(formula(model, digits), x) - expected(model, x)).max() for digits in (2, 4, 8)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-4


def test_constants_of_the_inputs_are_part_of_the_weights_where_nothing_is_lost():
    plain = Block(2, 2, OperatorSet("multiplication", "sum", "tanh"))
    constants = {"input_mean": np.array([1.0, 2.0]), "input_scale": np.array([2.0, 0.5])}
    network = randomized(Network(2, 1, [Layer([plain])]), constants=False)
    network.input_mean, network.input_scale = constants["input_mean"], constants["input_scale"]
    model = of_network(network, "regression")
    rows = np.random.default_rng(0).normal(size=(10, 2))
    assert "z1" not in formula(model).text
    assert_says_the_same(model, rows)
    network.input_mean = np.array([1e6, 2.0])  # folded, rounded weights would have to cancel
    assert "z1 = (x0 - 1000000) / 2" in formula(model).text
    rows[:, 0] += 1e6
    actual = evaluated(formula(model, 5), rows)
    assert np.abs(actual - expected(model, rows)).max() < 1e-2


def test_two_classes_have_their_log_odds_and_columns_keep_their_names():
    x = {"lambda": np.linspace(-1, 1, 60), "a b": np.cos(np.arange(60.0)), "ä": ["r", "g"] * 30}
    model = fitted("HeMLRNClassifier", x, np.array(["no", "yes"] * 30), max_layers=1)
    shown = formula(model)
    assert shown.outputs == ("log_odds_of_yes",)
    assert shown.inputs == {"_lambda": "lambda", "a_b": "a b", "g": "ä=g", "r": "ä=r"}
    assert r"\mathrm{a\ b}" in shown.latex
    said = evaluated(formula(model, 12), model.network_rows(x))[:, 0]
    np.testing.assert_allclose(said, model.decision_function(x), rtol=0, atol=1e-4)


def test_latex_has_balanced_braces_and_a_line_for_each_line_of_text():
    for seed in range(20):
        shown = formula(random_model(seed))
        depth = 0
        for character in shown.latex.replace(r"\{", "").replace(r"\}", ""):
            depth += {"{": 1, "}": -1}.get(character, 0)
            assert depth >= 0
        assert depth == 0
        assert shown.latex.count(r"\left") == shown.latex.count(r"\right")
        assert shown.latex.count("&=") == len(shown.text.splitlines())
        assert shown._repr_latex_() == f"$${shown.latex}$$"


def test_large_networks_are_refused_with_the_remedy():
    network = Network(10, 2, [Layer([Block(10, 60, OperatorSet("dog", "sum", "tanh"))])])
    with pytest.raises(ValueError, match=r"902 parameters, and a formula at most 500: grow a smaller one"):
        formula(of_network(network))


def test_an_operator_without_text_is_named_and_one_with_text_is_written():
    facts = {"formula": lambda y, w: np.cos(w * y)}
    register_nodal("cosine", lambda y, w: (w * y).cos(), **facts)
    register_nodal("told", lambda y, w: (w * y).cos(), **facts, text="cos({w} * {y})", latex=r"\cos({w}{y})")
    try:
        network = randomized(Network(2, 2, [Layer([Block(2, 2, OperatorSet("cosine", "sum", "tanh"))])]))
        with pytest.raises(ValueError, match="operator 'cosine' was registered without text"):
            formula(of_network(network))
        network = randomized(Network(2, 1, [Layer([Block(2, 2, OperatorSet("told", "sum", "tanh"))])]))
        assert_says_the_same(of_network(network, "regression"), np.random.default_rng(0).normal(size=(9, 2)))
    finally:
        unregister("nodal", "cosine")
        unregister("nodal", "told")
