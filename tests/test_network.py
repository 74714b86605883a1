"""Sizes, costs and meaning of the modules."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from opgrow import PERCEPTRON, Block, Layer, Network, OperatorSet
from opgrow.operators import register_activation, unregister


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
