"""Sizes, costs and meaning of blocks, layers and networks."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
import torch

from opgrow import PERCEPTRON, Block, Layer, Network, OperatorSet
from opgrow.network import NORM_EPSILON, Linear, compiled
from opgrow.operators import register_activation, unregister
from tests.example_networks import ALL, broad, mixed, operational, perceptrons, progressive
from tests.networks import in_double

pytestmark = pytest.mark.cpu

X = np.random.default_rng(1).normal(size=(30, 4))
KINDS = [("batch", True), ("batch", False), (None, True), (None, False), ("unit", False)]


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
@pytest.mark.parametrize(
    ("widths", "parameters"),
    [
        ((8, 60, 2), 782),
        ((8, 60, 10), 1_270),
        ((512, 120, 15), 63_615),
        ((512, 120, 257), 92_897),
        ((512, 160, 500), 162_900),
        ((8, 200, 200, 2), 43_202),
        ((512, 200, 200, 200, 15), 187_215),
    ],
)
def test_sizes_of_the_papers_tables(widths, parameters, activation):
    network = perceptrons(*widths, activation=activation)
    assert network.n_parameters() == parameters


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
@pytest.mark.parametrize(
    ("widths", "flops"),
    [((8, 200, 200, 2), 85_602), ((8, 200, 200, 10), 88_810), ((512, 200, 200, 200, 15), 373_215)],
)
def test_flops_of_the_papers_tables(widths, flops, activation):
    assert perceptrons(*widths, activation=activation).flops() == flops


def test_a_description_counts_neurons_parameters_and_operations():
    network = mixed()
    assert network.topology() == "4-5-4-2"
    actual = network.describe()
    assert (actual["inputs"], actual["outputs"]) == (4, 2)
    assert actual["parameters"] == network.n_parameters()
    assert actual["flops"] == network.flops()
    assert [layer["neurons"] for layer in actual["layers"]] == [5, 4]
    assert actual["layers"][0]["blocks"] == [
        {"operators": "gaussian/sum/tanh", "neurons": 3},
        {"operators": "dog/maximum/elu", "neurons": 2},
    ]
    text = repr(network)
    for piece in (
        "4-5-4-2",
        f"{network.n_parameters():,}",
        f"{network.flops():,}",
        "3 x gaussian/sum/tanh",
        "layer 2",
    ):
        assert piece in text
    assert "4, 3, gaussian/sum/tanh" in repr(network.layers[0].blocks[0])


def test_plain_networks_are_described_without_remarks():
    network = mixed()
    actual = network.describe()
    assert (actual["head"], actual["broad"]) == ("linear", False)
    text = repr(network)
    assert text.endswith("  head: linear, 2 outputs")
    assert "no bias" not in text
    assert "norm" not in text


@pytest.mark.parametrize(
    ("norm", "bias", "parameters", "flops"),
    [
        ("batch", True, 2 * (3 + 1 + 2), 2 * (6 + 1 + 1 + 2)),
        ("batch", False, 2 * (3 + 2), 2 * (6 + 1 + 2)),
        (None, True, 2 * (3 + 1), 2 * (6 + 1 + 1)),
        (None, False, 2 * 3, 2 * (6 + 1)),
        ("unit", False, 2 * 3, 2 * (6 + 1) + 2 * 3 + 1),
    ],
)
def test_sizes_of_every_kind_of_block(norm, bias, parameters, flops):
    block = Block(3, 2, PERCEPTRON, norm=norm, bias=bias)
    assert block.n_parameters() == parameters
    assert block.flops() == flops
    assert block.normalization == norm
    assert (block.norm is None) == (norm != "batch")


def block_of(norm, bias, operator_set=PERCEPTRON):
    block, rng = Block(4, 3, operator_set, norm=norm, bias=bias), np.random.default_rng(0)
    block.weight = rng.uniform(-1, 1, (4, 3)).astype(np.float32)
    if bias:
        block.bias = rng.uniform(-1, 1, 3).astype(np.float32)
    if norm == "batch":
        for name in ("mean", "scale", "shift"):
            setattr(block.norm, name, rng.uniform(-1, 1, 3).astype(np.float32))
        block.norm.variance = rng.uniform(0.5, 2, 3).astype(np.float32)
    return block


@pytest.mark.parametrize(("norm", "bias"), KINDS)
def test_every_kind_of_block_by_its_formula(norm, bias):
    block = block_of(norm, bias)
    z = X @ block.weight
    if norm == "unit":
        z = z / np.linalg.norm(z, axis=1, keepdims=True)
    wanted = 1 / (1 + np.exp(-(z + block.bias)))
    np.testing.assert_allclose(block.features(X), wanted, rtol=1e-5, atol=1e-6)
    if norm == "batch":
        n = block.norm
        wanted = (wanted - n.mean) / np.sqrt(n.variance + NORM_EPSILON) * n.scale + n.shift
    np.testing.assert_allclose(block.outputs(X), wanted, rtol=1e-5, atol=1e-5)


def test_unit_norm_leaves_rows_of_zeros_and_neither_overflows_nor_vanishes():
    block = Block(2, 2, OperatorSet("multiplication", "sum", "identity"), norm="unit", bias=False)
    block.weight[:] = np.eye(2)
    x = np.array([[3, -4], [0, 0], [3e-30, -4e-30], [3e30, -4e30]])
    np.testing.assert_allclose(block.features(x), [[0.6, -0.8], [0, 0], [0.6, -0.8], [0.6, -0.8]], rtol=1e-6)
    assert np.isnan(block.features(np.array([[np.nan, 1.0]]))).all()


def test_operators_of_users_in_every_kind_of_block():
    register_activation("swish", torch.nn.functional.silu)
    try:
        for norm, bias in ((None, True), ("unit", False)):
            block = block_of(norm, bias, OperatorSet("multiplication", "sum", "swish"))
            z = X @ block.weight
            z = z / np.linalg.norm(z, axis=1, keepdims=True) if norm == "unit" else z + block.bias
            np.testing.assert_allclose(block.features(X), z / (1 + np.exp(-z)), rtol=1e-5, atol=1e-6)
    finally:
        unregister("activation", "swish")


@pytest.mark.parametrize("norm", ["layer", "", True, 1])
def test_unknown_norms_are_refused(norm):
    with pytest.raises(ValueError, match="norm must be 'batch', 'unit' or None, got"):
        Block(3, 2, PERCEPTRON, norm=norm, bias=False)


def test_unit_norm_refuses_a_bias():
    with pytest.raises(ValueError, match="pass bias=False"):
        Block(3, 2, PERCEPTRON, norm="unit")


@pytest.mark.parametrize("make", ALL)
def test_outputs_are_those_of_torch_in_double_precision(make):
    network = make()
    assert network.outputs(X).dtype == np.float32
    np.testing.assert_allclose(network.outputs(X), in_double(network, X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", ALL)
def test_outputs_are_the_same_block_by_block_as_operators_of_users_are_computed(make, monkeypatch):
    whole = make().outputs(X)
    monkeypatch.setattr(compiled, "is_compilable", lambda network: False)
    np.testing.assert_allclose(make().outputs(X), whole, rtol=1e-4, atol=1e-4)


def test_features_are_what_the_head_sees():
    for make in ALL:
        network = make()
        features = network.features(X)
        assert features.shape == (30, network.head_width)
        out = network.head.outputs(features)
        np.testing.assert_allclose(out, network.outputs(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("compilable", [True, False])
def test_outputs_are_scaled_and_limited(compilable, monkeypatch):
    monkeypatch.setattr(compiled, "is_compilable", lambda network: compilable)
    mean, scale = np.array([10.0, -10.0]), np.array([2.0, 3.0])
    options = {"output_mean": mean, "output_scale": scale}
    network = Network(3, 2, head_operators=PERCEPTRON, **options)
    network.head.weight[:] = np.random.default_rng(0).normal(size=(3, 2))
    x = np.random.default_rng(2).normal(size=(7, 3))
    expected = scale / (1 + np.exp(-x @ network.head.weight)) + mean
    assert network.outputs(x).dtype == np.float64
    np.testing.assert_allclose(network.outputs(x), expected, rtol=1e-5)
    network.output_low, network.output_high = np.array([11.0, -9.0]), np.array([11.2, -8.5])
    np.testing.assert_allclose(network.outputs(x), expected.clip([11.0, -9.0], [11.2, -8.5]), rtol=1e-5)


def test_input_constants_survive_large_means():
    x = np.array([[1e9 + 1.0], [1e9 - 1.0]])
    network = Network(1, 1, input_mean=np.array([1e9]), input_scale=np.array([2.0]))
    assert network.standardize(x).tolist() == [[0.5], [-0.5]]
    network.head.weight[:] = 1
    assert network.outputs(x).tolist() == [[0.5], [-0.5]]


@pytest.mark.parametrize("is_broad", [False, True])
@pytest.mark.parametrize("head_operators", [None, PERCEPTRON])
def test_a_network_without_layers_is_its_head(head_operators, is_broad):
    network = Network(3, 2, head_operators=head_operators, broad=is_broad)
    network.head.weight[:] = np.random.default_rng(0).normal(size=(3, 2))
    np.testing.assert_allclose(network.outputs(X[:, :3]), network.head.outputs(X[:, :3]), rtol=1e-6)
    assert isinstance(network.head, Linear) == (head_operators is None)
    assert network.n_parameters() == 8
    assert network.topology() == "3-2"


@pytest.mark.parametrize(
    ("head", "flops"),
    [
        (PERCEPTRON, 85_602 + 2),  # a linear head, and an activation for each output
        (OperatorSet("gaussian", "maximum", "elu"), 85_602 - 2 * 401 + 2 * (5 * 200 + 199 + 1 + 3)),
    ],
)
def test_sizes_of_pop(head, flops):
    layers = [Layer([Block(8, 200, PERCEPTRON)]), Layer([Block(200, 200, PERCEPTRON)])]
    network = Network(8, 2, layers, head_operators=head)
    assert network.n_parameters() == 43_202
    assert network.flops() == flops
    assert network.topology() == "8-200-200-2"


def test_sizes_of_a_broad_network():
    network = broad()
    parameters = 5 * (4 + 3) + 4 * (3 + 1) + 2 * (5 + 1) + (5 + 6) * 2 + 2
    flops = 5 * (8 + 1 + 2) + 4 * (6 + 2) + 2 * (10 + 2) + 2 * (5 + 6) * 2 + 2
    assert network.n_parameters() == parameters
    assert network.flops() == flops
    assert network.topology() == "4-5-6-2"


@pytest.mark.parametrize(
    ("widths", "is_broad"),
    [
        (((4, 3), (4, 2)), False),  # more inputs than there are
        (((4, 3), (4, 2)), True),
        (((4, 3), (2, 2)), False),  # fewer, where the rest would be seen by nobody
        (((3, 3), (3, 2)), True),
    ],
)
def test_widths_that_do_not_fit_are_refused(widths, is_broad):
    layers = [Layer([Block(*sizes, PERCEPTRON)]) for sizes in widths]
    with pytest.raises(
        ValueError, match=r"^block 1 of layer \d has \d inputs, and the layer before it \d outputs$"
    ):
        Network(4, 2, layers, broad=is_broad)


# --- copies and digests ---


@pytest.mark.parametrize("make", ALL)
def test_copies_are_equal_and_have_arrays_of_their_own(make):
    network = make()
    network.outputs(X)
    for twin in (network.copy(), copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert twin.digest() == network.digest()
        np.testing.assert_array_equal(twin.outputs(X), network.outputs(X))
        twin.layers[0].blocks[0].weight += 1
        assert twin.digest() != network.digest()


def other_weight(network):
    network.head.weight[0, 0] = np.nextafter(network.head.weight[0, 0], np.float32(9))


def other_statistics(network):
    network.layers[0].blocks[0].norm.variance[1] += 1


def other_operators(network):
    network.layers[0].blocks[0].operator_set = PERCEPTRON


def other_bound(network):
    network.input_bound = 3.0


def other_range(network):
    network.input_low = np.zeros(4)


def other_precision(network):
    network.head.bias = network.head.bias.astype(np.float64)


def turned(network):
    network.layers[1].blocks[0].weight = network.layers[1].blocks[0].weight.T.reshape(5, 4)


CHANGES = [other_weight, other_statistics, other_operators, other_bound, other_range, other_precision, turned]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_gives_another_digest(change):
    network = mixed()
    before = network.digest()
    assert len(before) == 64
    change(network)
    assert network.digest() != before


def test_the_digest_does_not_depend_on_the_layout_in_memory():
    network = mixed()
    before = network.digest()
    block = network.layers[0].blocks[0]
    block.weight = np.asfortranarray(block.weight)
    network.input_mean = network.input_mean.astype(">f8")
    assert network.digest() == before


def test_digests_tell_different_networks_apart():
    assert len({make().digest() for make in ALL}) == len(ALL)


def test_description_of_what_is_not_usual():
    actual = operational().describe()
    assert actual["head"] == "harmonic/correlation1/elu"
    assert actual["layers"][0]["blocks"] == [{"operators": "gaussian/sum/tanh", "neurons": 5}]
    assert "head: harmonic/correlation1/elu, 2 outputs" in repr(operational())
    relu = "multiplication/sum/relu"
    assert progressive().describe()["layers"][1]["blocks"] == [
        {"operators": relu, "neurons": 4, "norm": None, "bias": False},
        {"operators": relu, "neurons": 3, "norm": "unit", "bias": False},
    ]
    text = repr(progressive())
    assert f"   4 x {relu}, no norm, no bias\n" in text
    assert f"   3 x {relu}, unit norm, no bias\n" in text
    assert f"4, 5, {relu}, unit norm, no bias" in repr(progressive().layers[0].blocks[1])
    network = broad()
    assert network.describe()["broad"] is True
    assert network.describe()["layers"][1]["blocks"][0] == {
        "operators": "multiplication/sum/sigmoid",
        "neurons": 4,
        "norm": None,
    }
    assert repr(network).endswith("head: linear, 2 outputs, sees all layers")
    for make in ALL:
        described = make().describe()
        assert json.loads(json.dumps(described)) == described
