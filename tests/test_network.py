"""Sizes, costs and meaning of the modules."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import torch
from torch import nn

from opgrow import PERCEPTRON, Block, Layer, Network, OperatorSet
from opgrow.operators import register_activation, unregister

pytestmark = pytest.mark.cpu


def perceptrons(*widths, activation="sigmoid"):
    operator_set = OperatorSet("multiplication", "sum", activation)
    layers = [Layer([Block(a, b, operator_set)]) for a, b in itertools.pairwise(widths[:-1])]
    return Network(widths[0], widths[-1], layers)


def randomized(network, seed=0):
    """Arbitrary parameters and statistics, as after training."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=generator) * 2 - 1)
                if name.endswith(("running_var", "input_scale")):
                    tensor.abs_().add_(0.5)
    return network.eval()


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
    assert sum(p.numel() for p in network.parameters()) == parameters


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
@pytest.mark.parametrize(
    ("widths", "flops"),
    [((8, 200, 200, 2), 85_602), ((8, 200, 200, 10), 88_810), ((512, 200, 200, 200, 15), 373_215)],
)
def test_flops_of_the_papers_tables(widths, flops, activation):
    assert perceptrons(*widths, activation=activation).flops() == flops


def test_blocks_of_perceptrons_are_a_plain_torch_network():
    sizes = [(6, (4, 3)), (7, (5,)), (5, (2, 2))]
    layers = [Layer([Block(n, width, PERCEPTRON) for width in widths]) for n, widths in sizes]
    network = randomized(Network(6, 3, layers))
    modules: list[nn.Module] = []
    for layer in network.layers:
        linear, norm = nn.Linear(layer.blocks[0].n_inputs, layer.n_neurons), nn.BatchNorm1d(layer.n_neurons)
        norm.eps = layer.blocks[0].norm.eps
        with torch.no_grad():
            linear.weight.copy_(torch.cat([block.weight for block in layer], dim=1).T)
            linear.bias.copy_(torch.cat([block.bias for block in layer]))
            for name in ("weight", "bias", "running_mean", "running_var"):
                getattr(norm, name).copy_(torch.cat([getattr(block.norm, name) for block in layer]))
        modules += [linear, nn.Sigmoid(), norm]
    plain = nn.Sequential(*modules, network.head).eval()
    x = torch.randn(50, 6)
    standard = ((x - network.input_mean) / network.input_scale).float()
    torch.testing.assert_close(network(x), plain(standard), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        network.double()(x.double()), plain.double()(standard.double()), rtol=1e-6, atol=1e-6
    )


def mixed():
    first = Layer(
        [
            Block(4, 3, OperatorSet("gaussian", "sum", "tanh")),
            Block(4, 2, OperatorSet("dog", "maximum", "elu")),
        ]
    )
    second = Layer([Block(5, 4, OperatorSet("harmonic", "correlation1", "softplus"))])
    return randomized(Network(4, 2, [first, second]))


def test_precisions_agree():
    network, x = mixed(), torch.rand(20, 4)
    single = network(x)
    assert single.dtype == torch.float32
    double = network.double()(x.double())
    assert double.dtype == torch.float64
    torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-4)


def test_a_network_can_be_tuned_like_any_module():
    network = mixed().train()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    x, target = torch.randn(64, 4), torch.randn(64, 2)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(network(x), target)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.9 * losses[0]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_gradients_of_a_whole_network_equal_those_in_double_precision():
    network, x = mixed(), torch.rand(30, 4)
    network(x).square().mean().backward()
    found = [p.grad.double() for p in network.parameters()]
    twin = mixed().double()
    twin(x.double()).square().mean().backward()
    for f, p in zip(found, twin.parameters(), strict=True):
        assert float((f - p.grad).abs().max()) <= 1e-3 * float(p.grad.abs().max()) + 1e-6


def test_state_dict_round_trip():
    network = mixed()
    twin = Network(
        4,
        2,
        [Layer([Block(b.n_inputs, b.n_neurons, b.operator_set) for b in layer]) for layer in network.layers],
    )
    twin.load_state_dict(network.state_dict())
    x = torch.randn(9, 4)
    assert torch.equal(network(x), twin.eval()(x))


def test_input_constants_survive_large_means():
    x = torch.tensor([[1e9 + 1.0], [1e9 - 1.0]], dtype=torch.float64)
    network = Network(
        1, 1, input_mean=torch.tensor([1e9], dtype=torch.float64), input_scale=torch.tensor([2.0])
    )
    assert network.standardize(x).tolist() == [[0.5], [-0.5]]


def test_a_network_without_layers_is_its_head():
    network = Network(3, 2)
    x = torch.randn(5, 3)
    assert torch.equal(network(x), network.head(x))
    assert network.n_parameters() == 8
    assert network.topology() == "3-2"


def test_description():
    network = mixed()
    assert network.topology() == "4-5-4-2"
    found = network.describe()
    assert (found["inputs"], found["outputs"]) == (4, 2)
    assert found["parameters"] == network.n_parameters() == sum(p.numel() for p in network.parameters())
    assert found["flops"] == network.flops()
    assert [layer["neurons"] for layer in found["layers"]] == [5, 4]
    assert found["layers"][0]["blocks"] == [
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
    found = network.describe()
    assert (found["head"], found["broad"]) == ("linear", False)
    text = repr(network)
    assert text.endswith("  head: linear, 2 outputs")
    assert "no bias" not in text
    assert "norm" not in text


def test_block_features_come_before_its_batch_norm():
    block = Block(3, 2, OperatorSet("multiplication", "sum", "relu")).eval()
    with torch.no_grad():
        block.bias.copy_(torch.tensor([0.5, -0.5]))
        block.norm.running_mean.copy_(torch.tensor([1.0, 2.0]))
        block.norm.running_var.copy_(torch.tensor([4.0, 9.0]))
    x = torch.randn(10, 3)
    raw = torch.relu(x @ block.weight + block.bias)
    torch.testing.assert_close(block.features(x), raw)
    torch.testing.assert_close(block(x), (raw - torch.tensor([1.0, 2.0])) / torch.tensor([2.0, 3.0]))


def test_registered_operators_in_a_network():
    register_activation("swish", nn.functional.silu)
    try:
        block = Block(3, 2, OperatorSet("multiplication", "sum", "swish"))
        x = torch.randn(4, 3)
        torch.testing.assert_close(block.features(x), nn.functional.silu(x @ block.weight + block.bias))
    finally:
        unregister("activation", "swish")


def test_numpy_statistics_of_training_mode():
    """In training mode a block's output has mean 0 and variance 1 over the batch."""
    block = Block(4, 3, OperatorSet("exponential", "sum", "tanh")).train()
    out = block(torch.randn(500, 4)).detach().numpy()
    np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(out.std(axis=0), 1, atol=1e-3)


# --- blocks without batch norm or bias ---

KINDS = [("batch", True), ("batch", False), (None, True), (None, False), ("unit", False)]


def block_of(norm, bias, n_inputs=5, n_neurons=4, operator_set=PERCEPTRON, seed=0):
    layer = Layer([Block(n_inputs, n_neurons, operator_set, norm=norm, bias=bias)])
    return randomized(layer, seed).blocks[0]


def plain_block(block, x):
    """The block once more: multiplication, sum and sigmoid in plain torch."""
    z = x @ block.weight
    if block.normalization == "unit":
        z = z / torch.linalg.vector_norm(z, dim=1, keepdim=True)
    out = torch.sigmoid(z + block.bias)
    if block.normalization == "batch":
        norm = block.norm
        out = (out - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias
    return out


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
    assert block.n_parameters() == sum(p.numel() for p in block.parameters()) == parameters
    assert block.flops() == flops
    assert block.normalization == norm
    assert (block.norm is None) == (norm != "batch")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("norm", "bias"), KINDS)
def test_every_kind_of_block_equals_plain_torch(norm, bias, dtype):
    block, x = block_of(norm, bias).to(dtype), torch.randn(30, 5, dtype=dtype)
    torch.testing.assert_close(block(x), plain_block(block, x), rtol=1e-5, atol=1e-5)


def test_values_by_hand():
    x = torch.tensor([[3.0, 4.0], [-3.0, 4.0], [0.0, 0.0]])
    found = {}
    for norm, bias in KINDS[2:]:
        block = Block(2, 2, OperatorSet("multiplication", "sum", "relu"), norm=norm, bias=bias)
        with torch.no_grad():
            block.weight.copy_(torch.eye(2))
            if bias:
                block.bias.copy_(torch.tensor([1.0, -1.0]))
        found[norm, bias] = block(x).detach()
    torch.testing.assert_close(found[None, True], torch.tensor([[4.0, 3.0], [0.0, 3.0], [1.0, 0.0]]))
    torch.testing.assert_close(found[None, False], torch.tensor([[3.0, 4.0], [0.0, 4.0], [0.0, 0.0]]))
    torch.testing.assert_close(found["unit", False], torch.tensor([[0.6, 0.8], [0.0, 0.8], [0.0, 0.0]]))


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_unit_norm_neither_overflows_nor_vanishes(size):
    block = Block(2, 2, OperatorSet("multiplication", "sum", "identity"), norm="unit", bias=False)
    with torch.no_grad():
        block.weight.copy_(torch.eye(2))
    x = (torch.tensor([[3.0, -4.0]]) * size).requires_grad_()
    out = block(x)
    torch.testing.assert_close(out.detach(), torch.tensor([[0.6, -0.8]]))
    # Of y = z / |z|: (identity - y y') / |z|, here times (1, 0).
    out[0, 0].backward()
    wanted = torch.tensor([[0.64, 0.48]], dtype=torch.float64) / (5 * size)
    torch.testing.assert_close(x.grad.double(), wanted, rtol=1e-5, atol=0)


@pytest.mark.parametrize("value", [float("nan"), 1e308])  # the second overflows in one neuron of the two
def test_unit_norm_does_not_hide_what_is_unknown(value):
    block = Block(1, 2, OperatorSet("multiplication", "sum", "identity"), norm="unit", bias=False).double()
    with torch.no_grad():
        block.weight.copy_(torch.tensor([[10.0, 0.001]]))
    assert block(torch.tensor([[value]], dtype=torch.float64)).isnan().all()


@pytest.mark.parametrize(
    "names", [("multiplication", "sum", "tanh"), ("harmonic", "correlation1", "softplus")]
)
def test_gradients_of_unit_norm(names):
    block = block_of("unit", False, operator_set=OperatorSet(*names)).double()
    x = torch.randn(6, 5, dtype=torch.float64).requires_grad_()
    weight = block.weight.detach().clone().requires_grad_()

    def call(x, weight):
        return torch.func.functional_call(block, {"weight": weight}, (x,))

    assert torch.autograd.gradcheck(call, (x, weight))
    twin = block_of("unit", False, operator_set=OperatorSet(*names))
    inputs = x.detach().float().requires_grad_()
    (twin(inputs).square().sum() + call(x, weight).square().sum()).backward()
    for single, double in ((inputs.grad, x.grad), (twin.weight.grad, weight.grad)):
        assert float(double.abs().max()) > 1e-3
        torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_of_zeros_has_finite_gradients_below_unit_norm(dtype):
    block = block_of("unit", False).to(dtype)
    x = torch.cat([torch.zeros(1, 5), torch.randn(3, 5)]).to(dtype).requires_grad_()
    out = block(x)
    assert torch.equal(out[0], torch.full((4,), 0.5, dtype=dtype))
    out.square().sum().backward()
    assert x.grad.isfinite().all()
    assert block.weight.grad.isfinite().all()
    assert block.weight.grad.abs().max() > 0


@pytest.mark.parametrize("norm", ["batch", None, "unit"])
def test_a_missing_bias_is_zero_and_neither_trained_nor_saved(norm):
    block = Block(3, 2, PERCEPTRON, norm=norm, bias=False)
    assert not block.has_bias
    assert torch.equal(block.bias, torch.zeros(2))
    assert "bias" not in block.state_dict()
    assert "bias" not in dict(block.named_parameters())
    assert block.double().bias.dtype == torch.float64


@pytest.mark.parametrize("norm", ["layer", "", True, 1])
def test_unknown_norms_are_refused(norm):
    with pytest.raises(ValueError, match="norm must be 'batch', 'unit' or None, got"):
        Block(3, 2, PERCEPTRON, norm=norm, bias=False)


def test_unit_norm_refuses_a_bias():
    with pytest.raises(ValueError, match="pass bias=False"):
        Block(3, 2, PERCEPTRON, norm="unit")


# --- heads of neurons, and heads that see all layers ---


def operational():
    """A network of POP: the head, too, is of operational neurons."""
    layers = [Layer([Block(4, 5, OperatorSet("gaussian", "sum", "tanh"))]), Layer([Block(5, 3, PERCEPTRON)])]
    return randomized(Network(4, 2, layers, head_operators=OperatorSet("harmonic", "correlation1", "elu")))


def progressive():
    """A network of PLN: a structured and a random part side by side."""
    relu = OperatorSet("multiplication", "sum", "relu")
    widths, layers = [4, 9, 7], []
    for n_inputs, n_neurons in itertools.pairwise(widths):
        structured = Block(n_inputs, 4, relu, norm=None, bias=False)
        layers.append(
            Layer([structured, Block(n_inputs, n_neurons - 4, relu, norm="unit", bias=False)]),
        )
    return randomized(Network(4, 2, layers))


def broad():
    """A network of BLS: three feature nodes, enhancement nodes, and further feature nodes after them."""
    linear = OperatorSet("multiplication", "sum", "identity")
    features = Layer([Block(4, 3, linear), Block(4, 2, linear)])
    enhancements = Layer([Block(3, 4, PERCEPTRON, norm=None), Block(5, 2, PERCEPTRON, norm=None)])
    return randomized(Network(4, 2, [features, enhancements], broad=True))


ALL = [mixed, operational, progressive, broad]


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
    assert network.n_parameters() == sum(p.numel() for p in network.parameters()) == 43_202
    assert network.flops() == flops
    assert network.topology() == "8-200-200-2"


def test_a_head_of_neurons_equals_plain_torch():
    layers = [Layer([Block(4, 5, PERCEPTRON)])]
    network = randomized(Network(4, 2, layers, head_operators=PERCEPTRON))
    x = torch.randn(20, 4)
    hidden = plain_block(layers[0].blocks[0], network.standardize(x))
    wanted = torch.sigmoid(hidden @ network.head.weight + network.head.bias)
    torch.testing.assert_close(network(x), wanted, rtol=1e-5, atol=1e-5)
    assert network(x).dtype == torch.float32
    with torch.no_grad():
        torch.testing.assert_close(network(x), wanted, rtol=1e-5, atol=1e-5)


def test_outputs_of_a_head_of_neurons_are_scaled_too():
    mean, scale = torch.tensor([10.0, -10.0]), torch.tensor([2.0, 3.0])
    network = Network(3, 2, output_mean=mean, output_scale=scale, head_operators=PERCEPTRON)
    x = torch.randn(7, 3)
    wanted = torch.sigmoid(x @ network.head.weight) * scale + mean
    found = network(x)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, wanted.double(), rtol=1e-5, atol=1e-5)


def test_a_broad_head_sees_all_layers_and_a_narrow_block_the_first_columns():
    network = broad()
    (first, second), (early, late) = network.hidden
    x = torch.randn(20, 4)
    inputs = network.standardize(x)

    def linear(block):
        norm = block.norm
        out = inputs @ block.weight + block.bias
        return (out - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias

    windows = torch.cat([linear(first), linear(second)], dim=1)
    nodes = torch.cat([plain_block(early, windows[:, :3]), plain_block(late, windows)], dim=1)
    wanted = torch.cat([windows, nodes], dim=1) @ network.head.weight.T + network.head.bias
    torch.testing.assert_close(network(x), wanted, rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(network(x), wanted, rtol=1e-5, atol=1e-5)


def test_sizes_of_a_broad_network():
    network = broad()
    parameters = 5 * (4 + 3) + 4 * (3 + 1) + 2 * (5 + 1) + (5 + 6) * 2 + 2
    flops = 5 * (8 + 1 + 2) + 4 * (6 + 2) + 2 * (10 + 2) + 2 * (5 + 6) * 2 + 2
    assert network.n_parameters() == sum(p.numel() for p in network.parameters()) == parameters
    assert network.flops() == flops
    assert network.topology() == "4-5-6-2"


def test_a_progressive_network_equals_plain_torch():
    network = progressive()
    x = torch.randn(20, 4)
    out = network.standardize(x)
    for structured, random in network.hidden:
        z = out @ random.weight
        z = z / torch.linalg.vector_norm(z, dim=1, keepdim=True)
        out = torch.relu(torch.cat([out @ structured.weight, z], dim=1))
    wanted = out @ network.head.weight.T + network.head.bias
    torch.testing.assert_close(network(x), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("head_operators", [None, PERCEPTRON])
def test_a_broad_network_without_layers_sees_its_inputs(head_operators):
    network = Network(3, 2, head_operators=head_operators, broad=True)
    x = torch.randn(5, 3)
    assert torch.equal(network(x), network.head(x))
    assert network.n_parameters() == 8


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


def perceptrons_to_the_end():
    return randomized(Network(4, 2, [Layer([Block(4, 5, PERCEPTRON)])], head_operators=PERCEPTRON))


# Sums of products only: whether every other kernel keeps to this, too, is for the tests of the kernels.
@pytest.mark.parametrize("make", [perceptrons_to_the_end, progressive, broad])
def test_a_prediction_does_not_depend_on_the_rows_beside_it(make):
    network, x = make(), torch.randn(70, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        together = network(x)
        assert torch.equal(together, torch.cat([network(row[None]) for row in x]))
        assert torch.equal(together[:33], network(x[:33]))


@pytest.mark.parametrize("make", ALL)
def test_every_kind_of_network_can_be_tuned(make):
    network = make().train()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(1)
    x, target = torch.randn(64, 4, generator=generator), torch.rand(64, 2, generator=generator)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(network(x), target)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.95 * losses[0]
    assert all(not torch.equal(p, before[name]) for name, p in network.named_parameters())
    for layer in network.hidden:
        assert all(block.has_bias or not block.bias.any() for block in layer)


def test_description_of_what_is_not_usual():
    found = operational().describe()
    assert found["head"] == "harmonic/correlation1/elu"
    assert found["layers"][0]["blocks"] == [{"operators": "gaussian/sum/tanh", "neurons": 5}]
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
