"""Losses and linear heads on a GPU against plain torch in double precision, or interpreted without one."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

import triton

from opgrow.engine.cuda import triton_heads
from tests.engine.cuda.tensors import DEVICE, relative_error, uniform

# The interpreter computes with numpy, which warns about what lies beyond the edge of a tile and is not kept.
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")

TOLERANCE = 1e-5


# --- losses ---


def loss_backward(outputs, target, weight, kind, rows):
    """Losses (K,), and the gradients that take the place of outputs (K, C, n)."""
    k, n_outputs, n_rows = outputs.shape
    tiles = triton.cdiv(n_rows, rows)
    losses = torch.full((k, tiles), torch.nan, device=DEVICE)
    triton_heads.loss_backward[(tiles, k)](
        outputs,
        target,
        weight,
        losses,
        n_rows,
        n_outputs,
        outputs.stride(0),
        target.stride(0) if len(target) > 1 else 0,
        target.stride(1),
        weight.stride(0) if len(weight) > 1 else 0,
        KIND=kind.value,
        OUTPUTS=triton.next_power_of_2(n_outputs),
        ROWS=rows,
    )
    return losses.sum(dim=1), outputs


def mean_squared_error(outputs, target, weight):
    return ((outputs - target).square().mean(dim=1) * weight).mean(dim=1)


def cross_entropy(outputs, target, weight):
    k = len(outputs)
    each = functional.cross_entropy(outputs, target.expand(k, -1, -1), reduction="none")
    return (each * weight).mean(dim=1)


LOSSES = {
    "mse": (triton_heads.MEAN_SQUARED_ERROR, mean_squared_error),
    "cross-entropy": (triton_heads.CROSS_ENTROPY, cross_entropy),
}


def window(n_outputs, n_rows, loss, seed=4, groups=1):
    """Targets and row weights of a batch inside a window of staged rows, of all candidates or of each."""
    target = uniform(groups, n_outputs, n_rows + 7, seed=seed)
    if loss == "cross-entropy":
        target = (3 * target).softmax(dim=1)
    weight = 1 + uniform(groups, n_rows + 7, seed=seed + 1)
    return target[:, :, 5:-2], weight[:, 5:-2]


def assert_loss_agrees(outputs, target, weight, loss, rows):
    kind, function = LOSSES[loss]
    leaf = outputs.double().requires_grad_()
    expected = function(leaf, target.double(), weight.double())
    (slope,) = torch.autograd.grad(expected.sum(), leaf)
    actual, gradient = loss_backward(outputs, target, weight, kind, rows)
    assert relative_error(actual, expected.detach()) <= TOLERANCE
    assert relative_error(gradient, slope) <= TOLERANCE


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_outputs", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("rows", [8, 2], ids=["one tile", "several tiles"])
@pytest.mark.parametrize("groups", [1, 3], ids=["shared rows", "own rows"])
def test_losses_and_their_gradients(loss, n_outputs, rows, groups):
    target, weight = window(n_outputs, 7, loss, groups=groups)
    assert_loss_agrees(uniform(3, n_outputs, 7) * 3, target, weight, loss, rows)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_without_weight_have_no_loss(loss):
    target, weight = window(3, 7, loss)
    weight[:, 2:5] = 0
    outputs = uniform(2, 3, 7)
    assert_loss_agrees(outputs, target, weight, loss, 4)
    assert (outputs[:, :, 2:5] == 0).all()


def test_cross_entropy_of_certain_outputs_is_finite():
    target = functional.one_hot(torch.tensor([0, 1, 2, 0, 1]), 3).T.contiguous().float().to(DEVICE)
    outputs = torch.stack([target * 1000, target * -1000, target * 50 - 400])
    assert_loss_agrees(outputs, target[None], torch.ones(1, 5, device=DEVICE), "cross-entropy", 8)


# --- linear heads ---


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("groups", [1, 3], ids=["shared rows", "own rows"])
@pytest.mark.parametrize(
    ("n_outputs", "n_frozen", "n_neurons", "n_rows"),
    [(1, 0, 2, 3), (5, 3, 4, 19), (16, 18, 17, 33), (26, 2, 3, 16)],
)
def test_a_linear_head_and_its_loss(loss, groups, n_outputs, n_frozen, n_neurons, n_rows):
    """Losses, and gradients by outputs, by the tuned features and by weights and biases."""
    n_features = n_frozen + n_neurons + 1
    seen = uniform(3, n_features, n_rows + 7, seed=1)
    seen[:, -1] = 1.0
    seen = seen[:, :, 5:-2]
    theta = uniform(3, 4 + n_features * n_outputs, seed=2)
    grad = torch.full_like(theta, torch.nan)
    weight, by_weight = (flat[:, 4:].unflatten(1, (n_features, n_outputs)) for flat in (theta, grad))
    target, row_weight = window(n_outputs, n_rows, loss, groups=groups)
    kind, function = LOSSES[loss]
    columns, tiles = max(16, triton.next_power_of_2(n_outputs)), triton.cdiv(n_rows, 16)
    losses = torch.full((3, tiles), torch.nan, device=DEVICE)
    by_output = torch.full((3, n_outputs, n_rows), torch.nan, device=DEVICE)
    slope = torch.full((3, n_neurons, n_rows), torch.nan, device=DEVICE)
    triton_heads.head_loss[(tiles, 3)](
        seen,
        weight,
        target,
        row_weight,
        losses,
        by_output,
        slope,
        n_rows,
        n_features,
        n_outputs,
        n_frozen,
        seen.stride(0),
        seen.stride(1),
        weight.stride(0),
        target.stride(0) if groups > 1 else 0,
        target.stride(1),
        row_weight.stride(0) if groups > 1 else 0,
        by_output.stride(0),
        slope.stride(0),
        KIND=kind.value,
        FEATURES=16,
        OUTPUTS=columns,
        ROWS=16,
    )
    triton_heads.head_gradient[(triton.cdiv(n_features, 16), 3)](
        seen,
        by_output,
        by_weight,
        n_rows,
        n_features,
        n_outputs,
        seen.stride(0),
        seen.stride(1),
        by_output.stride(0),
        by_weight.stride(0),
        FEATURES=16,
        OUTPUTS=columns,
        ROWS=16,
    )
    leaves = [tensor.double().requires_grad_() for tensor in (seen, weight)]
    outputs = leaves[1].mT @ leaves[0]
    expected = function(outputs, target.double(), row_weight.double())
    gradients = torch.autograd.grad(expected.sum(), [outputs, *leaves])
    assert relative_error(losses.sum(dim=1), expected.detach()) <= TOLERANCE
    assert relative_error(by_output, gradients[0]) <= TOLERANCE
    assert relative_error(slope, gradients[1][:, n_frozen:-1]) <= TOLERANCE
    assert relative_error(by_weight, gradients[2]) <= TOLERANCE
    assert grad[:, :4].isnan().all()
