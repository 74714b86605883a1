"""Layers of a training step, forth and back, against automatic differentiation in double precision."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from opgrow import Block, Layer, OperatorSet
from opgrow.engine import reference
from opgrow.operators import registered
from opgrow.training.candidates import Shape

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

from opgrow.training.cuda import passes
from opgrow.training.cuda.model import Model
from opgrow.training.cuda.passes import LayerPass
from tests.engine.cuda.tensors import DEVICE, uniform

# The interpreter computes with numpy, which warns about what lies beyond the edge of a tile and is not kept.
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")

N_OUTPUTS, EPSILON, TOLERANCE = 2, 1e-8, 1e-5
NODALS = [name for name in registered("nodal") if OperatorSet(name, "sum", "tanh").codes]
POOLS = [name for name in registered("pool") if OperatorSet("dog", name, "tanh").codes]
ACTIVATIONS = ["tanh", "sigmoid", "elu", "softplus", "identity"]
PAIRS = [(nodal, pool) for nodal in NODALS for pool in POOLS]
#: Every pair of operators, and another order of them for the second candidate.
SETS = [OperatorSet(*pair, ACTIVATIONS[i % 5]) for i, pair in enumerate(PAIRS)]
TURNED = [*SETS[5:], *SETS[:5]]
FEW = [OperatorSet("dog", "sum", "tanh"), OperatorSet("harmonic", "maximum", "elu")]


def model_of(candidates, n_inputs):
    """Candidates of one layer, with a block of a single neuron or two for each set."""
    shapes = []
    for sets in candidates:
        blocks = [Block(n_inputs, 1 + i % 2, operator_set) for i, operator_set in enumerate(sets)]
        width = sum(block.n_neurons for block in blocks)
        shapes.append(Shape([Layer(blocks)], nn.Linear(width, N_OUTPUTS), 0))
    theta = uniform(len(shapes), shapes[0].size, seed=1)
    return Model(shapes, theta)


def expected(model, x, slope, has_norm):
    """What the layer hands on, and its gradients by parameters and by inputs, candidate by candidate."""
    results = []
    for shape, flat, inputs, by_out in zip(
        model.shapes, model.theta, x.expand(model.n_candidates, -1, -1), slope, strict=True
    ):
        theta, inputs = flat.double().requires_grad_(), inputs.double().requires_grad_()
        out = []
        for block in shape.blocks(theta)[0]:
            raw = reference.features(inputs.T, block.weight, block.bias, block.operator_set)
            if has_norm:
                raw = functional.batch_norm(raw, None, None, block.scale, block.shift, True, eps=EPSILON)
            out.append(raw.T)
        out = torch.cat(out)
        results.append([out.detach(), *torch.autograd.grad((out * by_out).sum(), (theta, inputs))])
    return [torch.stack(tensors) for tensors in zip(*results, strict=True)]


def assert_agrees(model, x, has_norm=False, skip=0):
    """Without batch norm, which amplifies the rounding of a neuron that varies little, errors are small."""
    n = x.shape[2]
    layer = LayerPass(model, model.layers[0], n)
    slope = uniform(*layer.out.shape, seed=3)
    grad = torch.zeros_like(model.theta)
    below = torch.full((model.n_candidates, x.shape[1] - skip, n), torch.nan, device=DEVICE)
    norm = layer.norm(torch.zeros(1, dtype=torch.int64, device=DEVICE), 0, 0, None) if has_norm else None
    layer.forward(x, layer.out, norm)
    layer.backward(x, slope, grad, norm, below, skip)
    out, by_theta, by_input = expected(model, x, slope, has_norm)
    for name, ours, theirs in (
        ("out", layer.out, out),
        ("theta", grad, by_theta),
        ("x", below, by_input[:, skip:]),
    ):
        error = (ours.double() - theirs).abs().amax() / theirs.abs().amax()
        assert float(error) <= TOLERANCE, name
    for place, size, n_inputs in model.layers[0].places.tolist():
        at = [place + size * i for i in range(-n_inputs, 3)]
        error = (grad[:, at].double() - by_theta[:, at]).abs().amax() / by_theta[:, at].abs().amax()
        assert float(error) <= 20 * TOLERANCE


@pytest.mark.parametrize("groups", [1, 2], ids=["shared rows", "own rows"])
def test_every_pair_of_operators_at_once(groups):
    assert_agrees(model_of([SETS, TURNED], 4), uniform(groups, 4, 7, seed=2) * 1.5)


@pytest.mark.parametrize("groups", [1, 2], ids=["shared rows", "own rows"])
def test_every_pair_of_operators_in_tiles(groups, monkeypatch):
    monkeypatch.setattr(passes, "_FEW_VALUES", 0)
    assert_agrees(model_of([SETS[::3], TURNED[::3]], 4), uniform(groups, 4, 7, seed=2) * 1.5)


@pytest.mark.parametrize("n_inputs", [1, 2, 5, 9])
def test_inputs_of_several_tiles(n_inputs, monkeypatch):
    monkeypatch.setattr(passes, "_TILE", 32)
    sets = [OperatorSet("gaussian", pool, "tanh") for pool in POOLS]
    assert_agrees(model_of([sets, sets[::-1]], n_inputs), uniform(2, n_inputs, 7, seed=2))


@pytest.mark.parametrize("few_values", [8192, 0], ids=["at once", "in tiles"])
def test_batch_norm_of_rows_inside_a_window(few_values, monkeypatch):
    monkeypatch.setattr(passes, "_FEW_VALUES", few_values)
    window = uniform(1, 3, 20, seed=2) * 1.5
    assert_agrees(model_of([FEW], 3), window[:, :, 4:15], has_norm=True)


@pytest.mark.parametrize("few_values", [8192, 0], ids=["at once", "in tiles"])
@pytest.mark.parametrize(("n_inputs", "n_rows"), [(3, 33), (19, 5)])
def test_gradients_by_some_of_the_inputs(few_values, n_inputs, n_rows, monkeypatch):
    monkeypatch.setattr(passes, "_FEW_VALUES", few_values)
    sets = [OperatorSet("dog", pool, "tanh") for pool in POOLS]
    assert_agrees(model_of([sets], n_inputs), uniform(1, n_inputs, n_rows, seed=2), skip=2)


def test_what_is_not_a_number_stays_so():
    sets = [OperatorSet("multiplication", pool, "identity") for pool in POOLS]
    model, x = model_of([sets], 5), uniform(1, 5, 4, seed=2)
    x[0, 1, 2] = torch.nan
    layer = LayerPass(model, model.layers[0], 4)
    layer.forward(x, layer.out, None)
    unknown = layer.out.isnan()
    assert unknown[:, :, 2].all()
    assert not unknown[:, :, [0, 1, 3]].any()
