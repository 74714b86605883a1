"""Prediction of whole networks against torch in double precision."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from opgrow import Block, Layer, Network, OperatorSet
from opgrow.engine.prediction import BlockArrays, CompiledNetwork, NetworkArrays
from tests.networks import in_double

TANH = OperatorSet("multiplication", "sum", "tanh")


def network_of(layers, n_inputs, n_outputs, seed=0, **options):
    """A network of random parameters and statistics; a layer is a list of (set, neurons, inputs, norm)."""
    plain = [
        Layer([Block(i, d, s, norm=norm, bias=norm != "unit") for s, d, i, norm in layer]) for layer in layers
    ]
    network, rng = Network(n_inputs, n_outputs, plain, **options), np.random.default_rng(seed)

    def draw(array, low, high):
        array[...] = rng.uniform(low, high, array.shape)

    for block in [*(block for layer in plain for block in layer), network.head]:
        draw(block.weight, -0.4, 0.4)
        if getattr(block, "has_bias", True):
            draw(block.bias, -0.4, 0.4)
        if getattr(block, "norm", None) is not None:
            draw(block.norm.scale, -0.4, 0.4)
            draw(block.norm.shift, -0.4, 0.4)
            draw(block.norm.mean, -0.5, 0.5)
            draw(block.norm.variance, 0.3, 2.0)
    return network


def arrays_of(network):
    def block_arrays(block):
        moments, norm = None, block.norm
        if norm is not None:
            moments = np.stack([norm.mean, norm.variance, norm.scale, norm.shift])
        codes = block.operator_set.codes
        return BlockArrays(codes, block.weight, block.bias, block.normalization, moments)

    head = network.head
    return NetworkArrays(
        network.n_inputs,
        [[block_arrays(block) for block in layer] for layer in network.layers],
        block_arrays(head) if isinstance(head, Block) else (head.weight, head.bias),
        network.input_mean,
        network.input_scale,
        network.input_bound,
        network.output_scale,
        network.output_mean,
        network.output_low,
        network.output_high,
        network.broad,
        head_low=network.head_low,
        head_high=network.head_high,
    )


def check(engine, network, n_inputs, tolerance=2e-5):
    rng = np.random.default_rng(5)
    compiled = CompiledNetwork(arrays_of(network))
    x = rng.normal(3, 2, (300, n_inputs))
    result = engine.predict(compiled, x)
    exact = in_double(network, x)
    scale = max(np.abs(exact).max(), 1e-3)
    assert np.abs(result - exact).max() <= tolerance * scale
    singles = x.astype(np.float32)
    together = engine.predict(compiled, singles)
    for rows in (slice(0, 1), slice(1, 4), slice(5, 22), slice(127, 300)):
        assert np.array_equal(engine.predict(compiled, singles[rows]), together[rows])
    return compiled, singles


STANDARD = {
    "input_mean": np.linspace(1, 4, 6),
    "input_scale": np.linspace(1.0, 3.0, 6),
}
CASES = {
    "one layer": ([[(OperatorSet("exponential", "correlation1", "tanh"), 13, 6, "batch")]], {}),
    "blocks and layers": (
        [
            [
                (OperatorSet("harmonic", "sum", "sigmoid"), 20, 6, "batch"),
                (OperatorSet("gaussian", "maximum", "elu"), 7, 6, "batch"),
            ],
            [(OperatorSet("dog", "correlation2", "softplus"), 18, 27, "batch")],
        ],
        STANDARD,
    ),
    "squashed inputs and bounded outputs": (
        [[(OperatorSet("quadratic", "sum", "relu"), 16, 6, "batch")]],
        {
            **STANDARD,
            "input_bound": 3.0,
            "output_mean": np.array([2.0, 3.0, -1.0]),
            "output_scale": np.array([10.0, 0.1, 2.0]),
            "output_low": np.array([-1.0, 2.9, -2.0]),
            "output_high": np.array([4.0, 3.1, 2.0]),
        },
    ),
    "limited features": (
        [[(TANH, 9, 6, None)], [(OperatorSet("quadratic", "correlation1", "elu"), 20, 9, "batch")]],
        {
            **STANDARD,
            "output_mean": np.zeros(3),
            "output_scale": np.ones(3),
            "head_low": np.linspace(-0.1, 0.1, 29),
            "head_high": np.linspace(0.0, 0.4, 29),
            "broad": True,
        },
    ),
    "head of neurons": (
        [[(OperatorSet("exponential", "sum", "inverse_absolute"), 40, 6, "batch")]],
        {**STANDARD, "head_operators": OperatorSet("harmonic", "correlation1", "sigmoid")},
    ),
    "head of neurons alone": ([], {"head_operators": OperatorSet("gaussian", "maximum", "tanh")}),
    "no layer": ([], STANDARD),
    "unit norm": (
        [[(OperatorSet("multiplication", "sum", "relu"), 30, 6, "unit"), (TANH, 5, 6, None)]],
        STANDARD,
    ),
    "broad": (
        [[(TANH, 9, 6, None), (TANH, 9, 6, None)], [(TANH, 20, 18, "batch"), (TANH, 11, 9, None)]],
        {**STANDARD, "broad": True},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_predictions_agree_with_double_precision_and_rows_are_independent(engine, name):
    layers, options = CASES[name]
    check(engine, network_of(layers, 6, 3, **options), 6)


def test_a_wide_network_agrees(engine):
    layers = [[(TANH, 300, 6, "batch")], [(OperatorSet("harmonic", "sum", "tanh"), 50, 300, "batch")]]
    check(engine, network_of(layers, 6, 3), 6, tolerance=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_a_row_with_a_gap_is_predicted_as_a_gap_and_changes_no_other(engine, name):
    layers, options = CASES[name]
    compiled, x = check(engine, network_of(layers, 6, 3, **options), 6)
    clean = engine.predict(compiled, x)
    x[[3, 140, 299], 1] = np.nan
    result = engine.predict(compiled, x)
    assert np.isnan(result[[3, 140, 299]]).all()
    rest = np.delete(np.arange(300), [3, 140, 299])
    assert np.array_equal(result[rest], clean[rest])


def test_huge_inputs_of_a_bounded_network_stay_finite(engine):
    layers, options = CASES["squashed inputs and bounded outputs"]
    compiled = CompiledNetwork(arrays_of(network_of(layers, 6, 3, **options)))
    x = np.array([[1e300, -1e300, np.inf, -np.inf, 1e30, 0.0]] * 20)
    result = engine.predict(compiled, x)
    assert np.isfinite(result).all()
    assert (result == result[0]).all()


def test_threads_change_nothing(engine):
    layers, options = CASES["blocks and layers"]
    compiled = CompiledNetwork(arrays_of(network_of(layers, 6, 3, **options)))
    x = np.random.default_rng(0).normal(size=(5000, 6)).astype(np.float32)
    with ThreadPoolExecutor(3) as pool:

        def spread(tasks):
            list(pool.map(lambda task: task(), tasks))

        assert np.array_equal(engine.predict(compiled, x, spread), engine.predict(compiled, x))


def test_every_instruction_set_gives_the_same_bits(engines):
    x = np.random.default_rng(0).normal(size=(40, 6))
    for name, (layers, options) in CASES.items():
        compiled = CompiledNetwork(arrays_of(network_of(layers, 6, 3, **options)))
        assert len({engine.predict(compiled, x).tobytes() for engine in engines.values()}) == 1, name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_inputs": 4}, "a block of layer 1 has 3 inputs, expected 4"),
        (
            {"head": (np.zeros((4, 2)), np.zeros(2))},
            r"the head's weights have shape \(4, 2\), expected 5 rows",
        ),
        ({"layers": [[]]}, "layer 1 has no blocks"),
        ({"input_mean": np.zeros(2)}, "expected 3 values of double precision"),
        (
            {"head_low": np.zeros(4), "head_high": np.zeros(5)},
            r"expected 5 values of single precision, got shape \(4,\)",
        ),
        ({"head_low": np.zeros(5)}, "head_low and head_high go together"),
        (
            {
                "head": BlockArrays((0, 0, 0), np.zeros((5, 2))),
                "head_low": np.zeros(5),
                "head_high": np.ones(5),
            },
            "features have limits below a linear head alone",
        ),
        ({"layers": [[BlockArrays((0, 0, 9), np.zeros((3, 5)))]]}, "codes must be three numbers below"),
        ({"layers": [[BlockArrays((0, 0, 0), np.zeros((3, 5)), norm="batch")]]}, "has moments of shape"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    arguments = {
        "n_inputs": 3,
        "layers": [[BlockArrays((0, 0, 0), np.zeros((3, 5)))]],
        "head": (np.zeros((5, 2)), np.zeros(2)),
    }
    with pytest.raises(ValueError, match=message):
        CompiledNetwork(NetworkArrays(**(arguments | change)))
