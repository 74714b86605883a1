"""Networks as torch modules: the same outputs, gradients, tuning, and the way back."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from opgrow import PERCEPTRON, Block, Layer, Network, OperatorSet
from opgrow.network.torch import BlockModule, from_torch
from opgrow.operators import register_activation, unregister
from tests.example_networks import ALL, broad, mixed, progressive
from tests.networks import in_double, randomized

pytestmark = pytest.mark.cpu

KINDS = [("batch", True), ("batch", False), (None, True), (None, False), ("unit", False)]


def test_blocks_of_perceptrons_are_a_plain_torch_network():
    sizes = [(6, (4, 3)), (7, (5,)), (5, (2, 2))]
    layers = [Layer([Block(n, width, PERCEPTRON) for width in widths]) for n, widths in sizes]
    network = randomized(Network(6, 3, layers)).to_torch()
    modules: list[nn.Module] = []
    for layer in network.layers:
        width = sum(block.weight.shape[1] for block in layer.blocks)
        linear, norm = nn.Linear(layer.blocks[0].weight.shape[0], width), nn.BatchNorm1d(width)
        norm.eps = layer.blocks[0].norm.eps
        with torch.no_grad():
            linear.weight.copy_(torch.cat([block.weight for block in layer.blocks], dim=1).T)
            linear.bias.copy_(torch.cat([block.bias for block in layer.blocks]))
            for name in ("weight", "bias", "running_mean", "running_var"):
                getattr(norm, name).copy_(torch.cat([getattr(block.norm, name) for block in layer.blocks]))
        modules += [linear, nn.Sigmoid(), norm]
    plain = nn.Sequential(*modules, network.head).eval()
    x = torch.randn(50, 6)
    standard = ((x - network.input_mean) / network.input_scale).float()
    torch.testing.assert_close(network(x), plain(standard), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        network.double()(x.double()), plain.double()(standard.double()), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("make", ALL)
def test_a_network_becomes_a_module_and_a_network_again(make):
    network = make()
    module = network.to_torch()
    assert not module.training
    assert sum(p.numel() for p in module.parameters()) == network.n_parameters()
    assert from_torch(module).digest() == network.digest()
    x = np.random.default_rng(0).normal(size=(20, 4))
    with torch.no_grad():
        actual = module(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(actual, network.outputs(x), rtol=1e-4, atol=1e-5)


def test_constants_go_there_and_back():
    values = {
        name: np.array([1.5, 2.5]) for name in ("output_mean", "output_scale", "output_low", "output_high")
    }
    network = Network(3, 2, input_mean=np.arange(3.0), input_bound=3.0, **values)
    network.input_low, network.input_high = np.zeros(3), np.ones(3)
    module = network.to_torch()
    assert module.state_dict()["input_high"].tolist() == [1, 1, 1]
    assert from_torch(module).digest() == network.digest()


def test_a_tuned_module_becomes_a_network():
    network = mixed()
    module = network.to_torch()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1
    again, x = from_torch(module), np.random.default_rng(0).normal(size=(9, 4))
    assert again.digest() != network.digest()
    np.testing.assert_allclose(again.outputs(x), in_double(again, x), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(again.head.weight, network.head.weight + np.float32(0.1))


def test_making_a_module_draws_no_random_numbers_of_the_user():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    mixed().to_torch()
    assert torch.equal(torch.rand(1), expected)


def test_precisions_agree():
    network, x = mixed().to_torch(), torch.rand(20, 4)
    single = network(x)
    assert single.dtype == torch.float32
    double = network.double()(x.double())
    assert double.dtype == torch.float64
    torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-4)


def test_gradients_of_a_whole_network_equal_those_in_double_precision():
    network, x = mixed().to_torch(), torch.rand(30, 4)
    network(x).square().mean().backward()
    actual = [p.grad.double() for p in network.parameters()]
    twin = mixed().to_torch().double()
    twin(x.double()).square().mean().backward()
    for f, p in zip(actual, twin.parameters(), strict=True):
        assert float((f - p.grad).abs().max()) <= 1e-3 * float(p.grad.abs().max()) + 1e-6


@pytest.mark.parametrize("make", ALL)
def test_every_kind_of_network_can_be_tuned(make):
    network = make().to_torch().train()
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
    for layer in network.layers:
        assert all(block.has_bias or not block.bias.any() for block in layer.blocks)


def perceptrons_to_the_end():
    return randomized(Network(4, 2, [Layer([Block(4, 5, PERCEPTRON)])], head_operators=PERCEPTRON))


# Sums of products only: whether every other kernel keeps to this, too, is for the tests of the kernels.
@pytest.mark.parametrize("make", [perceptrons_to_the_end, progressive, broad])
def test_a_prediction_does_not_depend_on_the_rows_beside_it(make):
    network, x = make().to_torch(), torch.randn(70, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        together = network(x)
        assert torch.equal(together, torch.cat([network(row[None]) for row in x]))
        assert torch.equal(together[:33], network(x[:33]))


def test_registered_operators_in_a_module():
    register_activation("swish", nn.functional.silu)
    try:
        operators = OperatorSet("multiplication", "sum", "swish")
        network = randomized(Network(3, 2, [Layer([Block(3, 2, operators)])]))
        x = np.random.default_rng(0).normal(size=(6, 3))
        with torch.no_grad():
            actual = network.to_torch()(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(network.outputs(x), actual, rtol=1e-5, atol=1e-6)
    finally:
        unregister("activation", "swish")


# --- blocks ---


def test_in_training_mode_a_batch_has_mean_0_and_variance_1():
    block = BlockModule(4, 3, OperatorSet("exponential", "sum", "tanh"), "batch", True).train()
    out = block(torch.randn(500, 4)).detach().numpy()
    np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(out.std(axis=0), 1, atol=1e-3)


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_unit_norm_neither_overflows_nor_vanishes(size):
    block = BlockModule(2, 2, OperatorSet("multiplication", "sum", "identity"), "unit", False)
    with torch.no_grad():
        block.weight.copy_(torch.eye(2))
    x = (torch.tensor([[3.0, -4.0]]) * size).requires_grad_()
    out = block(x)
    torch.testing.assert_close(out.detach(), torch.tensor([[0.6, -0.8]]))
    # Of y = z / |z|: (identity - y y') / |z|, here times (1, 0).
    out[0, 0].backward()
    expected = torch.tensor([[0.64, 0.48]], dtype=torch.float64) / (5 * size)
    torch.testing.assert_close(x.grad.double(), expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("value", [float("nan"), 1e308])  # the second overflows in one neuron of the two
def test_unit_norm_does_not_hide_what_is_unknown(value):
    block = BlockModule(1, 2, OperatorSet("multiplication", "sum", "identity"), "unit", False).double()
    with torch.no_grad():
        block.weight.copy_(torch.tensor([[10.0, 0.001]]))
    assert block(torch.tensor([[value]], dtype=torch.float64)).isnan().all()


@pytest.mark.parametrize(
    "names", [("multiplication", "sum", "tanh"), ("harmonic", "correlation1", "softplus")]
)
def test_gradients_of_unit_norm(names):
    torch.manual_seed(0)
    block = BlockModule(5, 4, OperatorSet(*names), "unit", False).double()
    x = torch.randn(6, 5, dtype=torch.float64).requires_grad_()
    weight = block.weight.detach().clone().requires_grad_()

    def call(x, weight):
        return torch.func.functional_call(block, {"weight": weight}, (x,))

    assert torch.autograd.gradcheck(call, (x, weight))
    twin = BlockModule(5, 4, OperatorSet(*names), "unit", False)
    twin.load_state_dict(block.state_dict())
    inputs = x.detach().float().requires_grad_()
    (twin(inputs).square().sum() + call(x, weight).square().sum()).backward()
    for single, double in ((inputs.grad, x.grad), (twin.weight.grad, weight.grad)):
        assert float(double.abs().max()) > 1e-3
        torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_of_zeros_has_finite_gradients_below_unit_norm(dtype):
    block = BlockModule(5, 4, PERCEPTRON, "unit", False).to(dtype)
    x = torch.cat([torch.zeros(1, 5), torch.randn(3, 5)]).to(dtype).requires_grad_()
    out = block(x)
    assert torch.equal(out[0], torch.full((4,), 0.5, dtype=dtype))
    out.square().sum().backward()
    assert x.grad.isfinite().all()
    assert block.weight.grad.isfinite().all()
    assert block.weight.grad.abs().max() > 0


@pytest.mark.parametrize("norm", ["batch", None, "unit"])
def test_a_missing_bias_is_zero_and_neither_trained_nor_saved(norm):
    block = BlockModule(3, 2, PERCEPTRON, norm, False)
    assert not block.has_bias
    assert torch.equal(block.bias, torch.zeros(2))
    assert "bias" not in block.state_dict()
    assert "bias" not in dict(block.named_parameters())
    assert block.double().bias.dtype == torch.float64
