"""The engine as a torch function against plain torch in double precision, for every operator set."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from opgrow import OperatorSet
from opgrow.engine import features as kernels
from opgrow.engine import reference
from opgrow.engine.differentiable import features
from opgrow.operators import library

pytestmark = pytest.mark.cpu

TOLERANCE = 1e-4
SETS = sorted({*library("paper"), *library("pygop")})
NODALS = sorted({s.nodal for s in SETS})
POOLS = ("sum", "correlation1", "correlation2", "maximum")


def problem(n_rows, n_inputs, n_neurons, seed=0):
    """Inputs whose features are well-conditioned: of ordinary size, whatever the number of inputs."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return torch.rand(shape, generator=generator) * 2 - 1

    x = uniform(n_rows, n_inputs) * 1.5
    weight = uniform(n_inputs, n_neurons) * min(1.5, 6 / n_inputs**0.5)
    return x, weight, uniform(n_neurons), uniform(n_rows, n_neurons)


def with_gradients(function, operator_set, x, weight, bias, slope):
    """Features, and the gradients of their product with ``slope`` by x, weight and bias."""
    leaves = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
    out = function(*leaves, operator_set)
    return [out.detach(), *torch.autograd.grad((out * slope).sum(), leaves)]


def relative_error(actual, expected):
    actual, expected = (np.asarray(a, np.float64) for a in (actual, expected))
    assert actual.shape == expected.shape
    scale = np.abs(expected).max()
    return np.abs(actual - expected).max() / (scale if scale > 0 else 1)


def assert_agrees(operator_set, n_rows, n_inputs, n_neurons, seed=0):
    data = problem(n_rows, n_inputs, n_neurons, seed)
    actual = with_gradients(features, operator_set, *data)
    assert all(tensor.dtype == torch.float32 for tensor in actual)
    expected = with_gradients(reference.features, operator_set, *(tensor.double() for tensor in data))
    for name, f, w in zip(("features", "by x", "by weight", "by bias"), actual, expected, strict=True):
        assert relative_error(f, w) <= TOLERANCE, (str(operator_set), name, relative_error(f, w))


@pytest.mark.parametrize(
    "shape",
    [(45, 7, 5), (1, 5, 3), (33, 1, 2), (32, 2, 1), (64, 12, 4), (45, 3, 1)],
    ids=lambda shape: "x".join(map(str, shape)),
)
def test_every_operator_set_equals_the_reference(shape):
    for operator_set in SETS:
        assert_agrees(operator_set, *shape)


@pytest.mark.parametrize("nodal", NODALS)
@pytest.mark.parametrize("pool", POOLS)
def test_many_rows_are_computed_in_chunks(nodal, pool):
    assert_agrees(OperatorSet(nodal, pool, "tanh"), 2 * 4096 + 45, 6, 3)


@pytest.mark.parametrize("pool", POOLS)
def test_many_inputs_equal_the_reference(pool):
    assert_agrees(OperatorSet("harmonic", pool, "sigmoid"), 45, 301, 4)


@settings(max_examples=60, deadline=None)
@given(
    operator_set=st.sampled_from(SETS),
    n_rows=st.integers(1, 100),
    n_inputs=st.integers(1, 20),
    n_neurons=st.integers(1, 9),
    seed=st.integers(0, 2**31),
)
def test_any_shape_equals_the_reference(operator_set, n_rows, n_inputs, n_neurons, seed):
    x, weight, bias, _ = problem(n_rows, n_inputs, n_neurons, seed)
    actual = features(x, weight, bias, operator_set).double()
    expected = reference.features(x.double(), weight.double(), bias.double(), operator_set)
    # A single feature may be a difference of large numbers; they are what rounding is measured against.
    z = operator_set.nodal_operator.function(x[:, :, None].double(), weight[None].double()).abs()
    scale = 1 + float(operator_set.pool_operator.function(z).abs().max())
    assert float((actual - expected).abs().max()) <= TOLERANCE * scale


@pytest.mark.parametrize("n_threads", [1, 2])
def test_compiled_features_equal_features(n_threads):
    x, weight, bias, _ = problem(4096 + 45, 5, 3)
    arrays = [tensor.numpy() for tensor in (x, weight, bias)]
    for operator_set in SETS[::7]:
        actual = kernels.compiled_features(*arrays, operator_set, n_threads)
        with torch.no_grad():
            expected = features(x, weight, bias, operator_set).numpy()
        np.testing.assert_array_equal(actual, expected, err_msg=str(operator_set))


def test_the_number_of_threads_does_not_change_gradients():
    data = problem(3 * 4096 + 7, 5, 4)
    before = torch.get_num_threads()
    results = []
    try:
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            results.append(with_gradients(features, OperatorSet("dog", "correlation2", "elu"), *data))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_gradient_of_maximum_goes_to_the_first_of_equal_inputs():
    x = torch.tensor([[1.0, 2.0, 2.0]], requires_grad=True)
    weight = torch.ones(3, 1, requires_grad=True)
    out = features(x, weight, torch.zeros(1), OperatorSet("multiplication", "maximum", "relu"))
    by_x, by_weight = torch.autograd.grad(out.sum(), (x, weight))
    assert by_x.tolist() == [[0, 1, 0]]
    assert by_weight.flatten().tolist() == [0, 2, 0]


@pytest.mark.parametrize("nodal", NODALS)
def test_clamped_arguments_agree_far_outside(nodal):
    x = torch.tensor([[-300.0], [-20.0], [-11.0], [-9.0], [2.0], [9.5], [12.0], [23.0], [400.0]])
    weight, bias = torch.tensor([[-2.0, -0.5, 0.4, 1.5]]), torch.zeros(4)
    data = x, weight, bias, torch.linspace(0.5, 1.5, 36).reshape(9, 4)
    operator_set = OperatorSet(nodal, "sum", "inverse_absolute")
    actual = with_gradients(features, operator_set, *data)
    expected = with_gradients(reference.features, operator_set, *(tensor.double() for tensor in data))
    for f, w in zip(actual, expected, strict=True):
        assert f.isfinite().all()
        assert relative_error(f, w) < 2e-4  # sin(600) has three digits fewer than its argument


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_impossible_values_spoil_their_own_row_alone(value):
    x, weight, bias, _ = problem(45, 5, 3)
    for operator_set in SETS[::5]:
        clean = features(x, weight, bias, operator_set)
        spoiled = x.clone()
        spoiled[7, 2] = value
        actual = features(spoiled, weight, bias, operator_set)
        others = np.arange(45) != 7
        np.testing.assert_array_equal(actual[others], clean[others])
        with_gradients(features, operator_set, spoiled, weight, bias, torch.ones(45, 3))


def test_non_contiguous_tensors():
    x, weight, bias, _ = problem(45, 6, 4)
    operator_set = OperatorSet("gaussian", "correlation1", "tanh")
    strided, turned = x[::2, 1::2], weight[1::2].T.contiguous().T
    actual = features(strided, turned, bias, operator_set)
    assert torch.equal(actual, features(strided.contiguous(), turned.contiguous(), bias, operator_set))


def test_gradients_flow_back_from_expanded_tensors():
    x, weight, bias, _ = problem(40, 3, 2)
    weight.requires_grad_()
    operator_set = OperatorSet("exponential", "sum", "sigmoid")
    features(x, weight, bias, operator_set).sum().backward()  # its gradient is one expanded number
    reference_weight = weight.detach().double().requires_grad_()
    reference.features(x.double(), reference_weight, bias.double(), operator_set).sum().backward()
    assert relative_error(weight.grad, reference_weight.grad) <= TOLERANCE


def test_second_derivatives_are_right_or_refused():
    x, weight, bias, _ = problem(5, 3, 2)
    operator_set = OperatorSet("harmonic", "sum", "tanh")

    def penalty(function, *tensors):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        out = function(*leaves, operator_set).square().sum() + leaves[0].square().sum()
        (slope,) = torch.autograd.grad(out, leaves[0], create_graph=True)
        return torch.autograd.grad(slope.square().sum(), leaves[0])[0]

    expected = penalty(reference.features, x.double(), weight.double(), bias.double())
    refused, actual = "", None
    try:
        actual = penalty(features, x, weight, bias)
    except RuntimeError as error:
        refused = str(error)
    assert "twice" in refused if actual is None else relative_error(actual, expected) <= TOLERANCE


def test_double_precision_runs_on_the_reference():
    x, weight, bias, _ = (tensor.double() for tensor in problem(9, 4, 3))
    operator_set = OperatorSet("dog", "correlation2", "softplus")
    actual = features(x, weight, bias, operator_set)
    assert actual.dtype == torch.float64
    assert torch.equal(actual, reference.features(x, weight, bias, operator_set))


def test_reference_in_chunks_equals_the_whole(monkeypatch):
    x, weight, bias, _ = problem(50, 4, 3)
    operator_set = OperatorSet("harmonic", "maximum", "elu")
    whole = reference.features(x, weight, bias, operator_set)
    monkeypatch.setattr(reference, "CHUNK_ELEMENTS", 7 * 12)
    assert torch.equal(reference.features(x, weight, bias, operator_set), whole)
