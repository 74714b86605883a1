"""The operator library against formulas written once more in numpy, and the checks of registration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from opgrow import OperatorSet, operator_sets
from opgrow.engine import reference
from opgrow.engine.differentiable import features
from opgrow.operators import (
    PERCEPTRON,
    library,
    register_activation,
    register_nodal,
    register_pool,
    registered,
    unregister,
)


def bounded(x):
    return np.exp(np.minimum(np.maximum(x, -10), 10))


NODALS = {
    "multiplication": lambda y, w: w * y,
    "exponential": lambda y, w: bounded(w * y) - 1,
    "harmonic": lambda y, w: np.sin(w * y),
    "quadratic": lambda y, w: w * y**2,
    "gaussian": lambda y, w: w * bounded(-w * y**2),
    "dog": lambda y, w: w * y * bounded(-w * y**2),
    "pygop_quadratic": lambda y, w: (w * np.clip(y, -10, 10)) ** 2,
    "pygop_dog": lambda y, w: w * y * bounded(-w * np.clip(y, -10, 10) ** 2),
}
POOLS = {
    "sum": lambda z: sum(z),
    "correlation1": lambda z: sum(a * b for a, b in itertools.pairwise(z)),
    "correlation2": lambda z: sum(a * b * c for a, b, c in zip(z, z[1:], z[2:], strict=False)),
    "maximum": max,
}
ACTIVATIONS = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "softplus": lambda x: np.logaddexp(0, -x),
    "inverse_absolute": lambda x: x / (1 + np.abs(x)),
    "elu": lambda x: np.where(x >= 0, x, np.exp(np.minimum(x, 0)) - 1),
    "pygop_softplus": lambda x: np.logaddexp(0, -np.clip(x, -10, 10)),
    "identity": lambda x: x,
}


def brute_force(operator_set, x, weight, bias):
    out = np.empty((len(x), weight.shape[1]))
    for n, i in np.ndindex(out.shape):
        z = [NODALS[operator_set.nodal](x[n, k], weight[k, i]) for k in range(x.shape[1])]
        out[n, i] = ACTIVATIONS[operator_set.activation](POOLS[operator_set.pool](z) + bias[i])
    return out


def test_the_paper_has_144_different_operator_sets():
    sets = operator_sets()
    assert len(sets) == len(set(sets)) == 144
    assert PERCEPTRON in sets


@pytest.mark.parametrize("name", ["paper", "pygop"])
def test_formulas_of_every_operator_set(name):
    rng = np.random.default_rng(1)
    x, weight, bias = rng.normal(size=(3, 5)) * 1.5, rng.uniform(-2, 2, (5, 2)), rng.normal(size=2)
    tensors = [torch.from_numpy(a) for a in (x, weight, bias)]
    for operator_set in library(name):
        actual = reference.features(*tensors, operator_set).numpy()
        expected = brute_force(operator_set, x, weight, bias)
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10, err_msg=str(operator_set))


@pytest.mark.parametrize("nodal", NODALS)
@pytest.mark.parametrize("pool", POOLS)
def test_identity_passes_on_what_is_pooled(nodal, pool):
    rng = np.random.default_rng(2)
    x, weight, bias = rng.normal(size=(6, 5)), rng.uniform(-2, 2, (5, 3)), rng.normal(size=3)
    operator_set = OperatorSet(nodal, pool, "identity")
    expected = brute_force(operator_set, x, weight, bias)
    doubles = [torch.from_numpy(a).requires_grad_() for a in (x, weight, bias)]
    actual = reference.features(*doubles, operator_set)
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-10, atol=1e-10)
    singles = [torch.from_numpy(a.astype(np.float32)).requires_grad_() for a in (x, weight, bias)]
    compiled = features(*singles, operator_set)
    np.testing.assert_allclose(compiled.detach().numpy(), expected, rtol=1e-4, atol=1e-4)
    slope = torch.from_numpy(rng.normal(size=expected.shape))
    for single, double in zip(
        torch.autograd.grad(compiled, singles, slope.float()),
        torch.autograd.grad(actual, doubles, slope),
        strict=True,
    ):
        np.testing.assert_allclose(single.numpy(), double.numpy(), rtol=1e-3, atol=1e-3)


def test_identity_costs_nothing_and_is_built_in_but_searched_by_no_library():
    assert OperatorSet("multiplication", "sum", "identity").flops(5) == 2 * 5 + 1
    assert "identity" in registered("activation")
    assert all(s.activation != "identity" for name in ("paper", "pygop") for s in library(name))
    with pytest.raises(ValueError, match="'identity' is a built-in"):
        unregister("activation", "identity")


@pytest.mark.parametrize("nodal", NODALS)
def test_nodal_operators_stay_finite_for_huge_arguments(nodal):
    y = torch.tensor([-1e6, -100.0, -11.0, 0.0, 11.0, 100.0, 1e6], dtype=torch.float64)[:, None]
    w = torch.tensor([-50.0, -1.0, 0.0, 1.0, 50.0], dtype=torch.float64)[None]
    actual = OperatorSet(nodal, "sum", "relu").nodal_operator.function(y, w)
    assert actual.isfinite().all()
    np.testing.assert_allclose(actual.numpy(), NODALS[nodal](y.numpy(), w.numpy()), rtol=1e-9)


def test_gradients_vanish_beyond_the_clamp():
    y = torch.tensor([[[11.0]], [[9.0]]], dtype=torch.float64, requires_grad=True)
    out = OperatorSet("exponential", "sum", "relu").nodal_operator.function(y, torch.ones(1, 1, 1).double())
    (gradient,) = torch.autograd.grad(out.sum(), y)
    assert gradient[0].item() == 0
    assert gradient[1].item() == pytest.approx(np.exp(9))


def test_softplus_falls_and_is_stable_far_out():
    f = OperatorSet("harmonic", "sum", "softplus").activation_operator.function
    x = torch.tensor([-1e4, 0.0, 1e4], dtype=torch.float64)
    np.testing.assert_allclose(f(x).numpy(), [1e4, np.log(2), 0.0])


def test_elu_is_continuous_at_zero():
    f = OperatorSet("harmonic", "sum", "elu").activation_operator.function
    x = torch.tensor([-1e-9, 0.0, 1e-9, -100.0], dtype=torch.float64)
    np.testing.assert_allclose(f(x).numpy(), [-1e-9, 0.0, 1e-9, -1.0], atol=1e-12)


@pytest.mark.parametrize(
    ("pool", "n_inputs"), [("correlation1", 1), ("correlation2", 1), ("correlation2", 2)]
)
def test_correlations_over_too_few_inputs_are_zero(pool, n_inputs):
    z = torch.randn(4, n_inputs, 3)
    assert torch.equal(OperatorSet("harmonic", pool, "relu").pool_operator.function(z), torch.zeros(4, 3))


def test_gradient_of_maximum_goes_to_the_first_of_equal_inputs():
    z = torch.tensor([[[1.0], [3.0], [3.0], [2.0]]], requires_grad=True)
    pooled = OperatorSet("harmonic", "maximum", "relu").pool_operator.function(z)
    (gradient,) = torch.autograd.grad(pooled.sum(), z)
    assert gradient.flatten().tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("operator_set", "n_inputs", "flops"),
    [
        (("multiplication", "sum", "sigmoid"), 8, 2 * 8 + 2),  # the paper's perceptron
        (("exponential", "sum", "relu"), 5, 5 * 3 + 5 + 2),
        (("harmonic", "correlation1", "relu"), 5, 5 * 2 + 2 * 4 + 2),
        (("quadratic", "correlation2", "relu"), 5, 5 * 2 + 3 * 3 + 2),
        (("gaussian", "maximum", "relu"), 5, 5 * 5 + 4 + 2),
    ],
)
def test_flops_count_every_elementary_operation_once(operator_set, n_inputs, flops):
    assert OperatorSet(*operator_set).flops(n_inputs) == flops


def test_flops_are_never_negative_for_few_inputs():
    assert all(s.flops(n) > 0 for s in operator_sets() for n in (1, 2))


def test_operator_sets_are_values():
    first, second = OperatorSet("dog", "sum", "elu"), OperatorSet("dog", "sum", "elu")
    assert first == second
    assert hash(first) == hash(second)
    assert str(first) == "dog/sum/elu"


@pytest.mark.parametrize(
    "names",
    [("nope", "sum", "relu"), ("dog", "mean", "relu"), ("dog", "sum", "swish"), ("dog", ["sum"], "relu")],
)
def test_unknown_operators_are_refused_with_the_known_ones(names):
    with pytest.raises(ValueError, match="unknown .* operator .* registered are"):
        OperatorSet(*names)


def test_library_by_name_and_by_list():
    assert library() == library("default") == library("paper") == operator_sets()
    pygop = library("pygop")
    assert len(set(pygop)) == 144
    assert {s.nodal for s in pygop} > {"pygop_quadratic", "pygop_dog"}
    given = [("dog", "sum", "elu"), OperatorSet("harmonic", "sum", "elu"), ["dog", "sum", "elu"]]
    assert library(given) == [OperatorSet("dog", "sum", "elu"), OperatorSet("harmonic", "sum", "elu")]


@pytest.mark.parametrize(
    "bad",
    ["nope", [], ["dog"], ["sum"], [("dog", "sum")], [("dog", "sum", "nope")], None, 5, [5], [None]],
)
def test_what_names_no_operators_is_refused(bad):
    with pytest.raises(ValueError, match="operator"):
        library(bad)


@pytest.fixture
def cosine():
    register_nodal("cosine", lambda y, w: torch.cos(w * y), flops=2)
    yield "cosine"
    unregister("nodal", "cosine")


def test_registered_operators_are_used_by_name(cosine):
    assert cosine in registered("nodal")
    operator_set = OperatorSet(cosine, "sum", "relu")
    assert operator_set.codes is None
    assert operator_set.flops(3) == 3 * 2 + 3 + 2
    assert library([(cosine, "sum", "relu")]) == [operator_set]
    x = torch.randn(4, 3)
    actual = reference.features(x, torch.zeros(3, 2), torch.zeros(2), operator_set)
    assert torch.equal(actual, torch.full((4, 2), 3.0))


def test_pools_and_activations_can_be_registered_too():
    register_pool("mean", lambda z: z.mean(dim=1), flops=lambda n: n + 1)
    register_activation("swish", torch.nn.functional.silu, flops=2)
    try:
        operator_set = OperatorSet("multiplication", "mean", "swish")
        x = torch.randn(6, 3, dtype=torch.float64)
        weight = torch.randn(3, 2, dtype=torch.float64)
        actual = reference.features(x, weight, torch.zeros(2), operator_set)
        torch.testing.assert_close(actual, torch.nn.functional.silu(x @ weight / 3))
        assert operator_set.flops(3) == 3 + 4 + 1 + 2
    finally:
        unregister("pool", "mean")
        unregister("activation", "swish")


def test_unregister_forgets_and_keeps_built_in_operators():
    register_activation("swish", torch.nn.functional.silu)
    unregister("activation", "swish")
    assert "swish" not in registered("activation")
    with pytest.raises(ValueError, match="unknown activation"):
        OperatorSet("dog", "sum", "swish")
    with pytest.raises(ValueError, match="built-in"):
        unregister("activation", "relu")
    with pytest.raises(ValueError, match="unknown activation"):
        unregister("activation", "swish")
    for function in (lambda: registered("loss"), lambda: unregister("loss", "mse")):
        with pytest.raises(ValueError, match="kind"):
            function()


def rootless(y, w):
    return torch.sqrt(w * y)


@pytest.mark.parametrize(
    ("register", "function", "message"),
    [
        (register_nodal, lambda y, w: (w * y).sum(dim=2), "returned .* expected a tensor of shape"),
        (register_nodal, lambda y, w: None, "NoneType"),
        (register_nodal, rootless, "non-finite values"),
        (register_nodal, lambda y, w: (w * y).detach(), "not differentiable"),
        (register_nodal, lambda y, w: (w * y).float(), "data type"),
        (register_nodal, lambda y: y, "failed on random input"),
        (register_pool, lambda z: z, "expected a tensor of shape"),
        (register_pool, lambda z: z[:, 1], "failed on random input"),  # needs two inputs
        (register_pool, lambda z: z.sum(dim=1) / 0, "non-finite"),
        (register_activation, lambda x: x.sum(), "expected a tensor of shape"),
        (register_activation, torch.log, "non-finite"),
        (register_activation, lambda x: (x > 0).to(x.dtype), "not differentiable"),
        (register_activation, lambda x: torch.sqrt((0 * x).abs()), "non-finite gradients"),
        (register_activation, lambda x: x.double(), "data type"),
    ],
)
def test_registration_refuses_what_would_fail_later(register, function, message):
    before = [registered(kind) for kind in ("nodal", "pool", "activation")]
    with pytest.raises(ValueError, match=message) as caught:
        register("mine", function)
    assert "'mine'" in str(caught.value)
    assert [registered(kind) for kind in ("nodal", "pool", "activation")] == before


@pytest.mark.parametrize("name", ["", "2fast", "with space", "a/b", "ä", "x" * 65, None, 3])
def test_registration_refuses_bad_names(name):
    with pytest.raises(ValueError, match="name"):
        register_activation(name, torch.tanh)


def test_registration_refuses_names_that_are_taken_and_what_cannot_be_called(cosine):
    with pytest.raises(ValueError, match="already registered"):
        register_nodal(cosine, lambda y, w: w * y)
    with pytest.raises(ValueError, match="already registered"):
        register_pool("sum", lambda z: z.sum(dim=1))
    with pytest.raises(TypeError, match="function"):
        register_pool("mine", 3)
