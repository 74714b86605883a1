"""The GPU's pooled operators against plain torch in double precision, interpreted where there is no GPU.

The interpreter needs tens of microseconds for every operation of every program, so shapes are as small as
what they are to show allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from opgrow import OperatorSet
from opgrow.engine import reference
from opgrow.operators import registered

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

from opgrow.engine.cuda import pools as cuda

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TOLERANCE = 1e-5


def operator_set(nodal, pool):
    return OperatorSet(nodal, pool, "identity")


NODALS = [name for name in registered("nodal") if operator_set(name, "sum").codes]
POOLS = [name for name in registered("pool") if operator_set("dog", name).codes]
PAIRS = [(nodal, pool) for nodal in NODALS for pool in POOLS]


@dataclass
class Problem:
    """Inputs (1 or G, D, N), weights (G, D, d) and a gradient by the pooled values (G, d, N)."""

    x: torch.Tensor
    weight: torch.Tensor
    grad: torch.Tensor


def problem(groups, n_inputs, n_neurons, n_rows, shared=False, seed=0):
    """Inputs whose pooled values are of ordinary size, whatever the number of inputs."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return (torch.rand(shape, generator=generator) * 2 - 1).to(DEVICE)

    return Problem(
        uniform(1 if shared else groups, n_inputs, n_rows) * 1.5,
        uniform(groups, n_inputs, n_neurons) * min(1.5, 6 / n_inputs**0.5),
        uniform(groups, n_neurons, n_rows),
    )


def computed(nodal, pool, p):
    """Pooled values, and the gradients by weights and by inputs."""
    nodal, pool, _ = operator_set(nodal, pool).codes
    where = cuda.largest_index(nodal, p.x, p.weight) if pool == cuda.MAXIMUM.value else None
    gradients = cuda.Gradients(nodal, pool, p.x, p.weight, p.grad, where)
    return [cuda.pooled(nodal, pool, p.x, p.weight), gradients.by_weight(), gradients.by_input()]


def expected(nodal, pool, p):
    """The same in double precision, by automatic differentiation, group after group."""
    results = []
    for x, weight, grad in zip(p.x.expand(len(p.weight), -1, -1), p.weight, p.grad, strict=True):
        x, weight = (tensor.double().requires_grad_() for tensor in (x, weight))
        out = reference.pooled(x.T, weight, operator_set(nodal, pool)).T
        gradients = torch.autograd.grad((out * grad).sum(), (weight, x))
        results.append([out.detach(), *gradients])
    return [torch.stack(tensors) for tensors in zip(*results, strict=True)]


def relative_error(actual, wanted):
    assert actual.shape == wanted.shape
    scale = float(wanted.abs().max())
    return float((actual - wanted).abs().max()) / (scale or 1.0)


def assert_agrees(nodal, pool, p):
    names = ("pooled", "by weight", "by input")
    for name, f, w in zip(names, computed(nodal, pool, p), expected(nodal, pool, p), strict=True):
        assert f.dtype == torch.float32
        assert relative_error(f, w) <= TOLERANCE, (nodal, pool, name, relative_error(f, w))


def test_all_built_in_operators_are_walked_over():
    assert (len(NODALS), len(POOLS)) == (8, 4)


@pytest.mark.parametrize(("nodal", "pool"), PAIRS)
def test_every_pair_of_operators_equals_the_reference(nodal, pool):
    assert_agrees(nodal, pool, problem(2, 5, 3, 4))


@pytest.mark.parametrize(
    "shape",
    [(1, 4, 2, 1), (1, 1, 2, 2), (1, 2, 1, 2)],
    ids=["one row", "one input", "two inputs and one neuron"],
)
def test_shapes_that_fill_no_tile_equal_the_reference(shape):
    for nodal, pool in PAIRS:
        assert_agrees(nodal, pool, problem(*shape))


@pytest.mark.parametrize(
    ("nodal", "pool", "by_weight", "by_input"),
    [
        *(("gaussian", pool, (1, 17, 17, 2), (1, 9, 1, 33)) for pool in POOLS),
        ("multiplication", "maximum", (1, 65, 9, 32), (1, 17, 32, 33)),
    ],
)
def test_the_last_tile_of_a_gradient_is_cut_at_the_edge(nodal, pool, by_weight, by_input):
    """Small tiles for few terms and large ones for many; gaussian is not 0 where an input is."""
    codes = operator_set(nodal, pool).codes[:2]
    for shape, function, place in (
        (by_weight, cuda.Gradients.by_weight, 1),
        (by_input, cuda.Gradients.by_input, 2),
    ):
        p = problem(*shape)
        where = cuda.largest_index(codes[0], p.x, p.weight) if pool == "maximum" else None
        actual = function(cuda.Gradients(*codes, p.x, p.weight, p.grad, where))
        assert relative_error(actual, expected(nodal, pool, p)[place]) <= TOLERANCE, function.__name__


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize(("n_neurons", "n_rows"), [(17, 31), (17, 33), (9, 65), (17, 130), (5, 1030)])
def test_the_last_tile_of_rows_and_neurons_is_cut_at_the_edge(pool, n_neurons, n_rows):
    p = problem(1, 3, n_neurons, n_rows)
    actual = cuda.pooled(*operator_set("harmonic", pool).codes[:2], p.x, p.weight)
    assert relative_error(actual, expected("harmonic", pool, p)[0]) <= TOLERANCE


@pytest.mark.parametrize("nodal", NODALS)
def test_long_sums_over_inputs_are_cut_into_parts(nodal):
    p = problem(1, 35, 2, 3)
    assert cuda.count_parts(p.x, p.weight) == 2
    for pool in POOLS:
        codes = operator_set(nodal, pool).codes[:2]
        wanted = expected(nodal, pool, p)[0]
        assert relative_error(cuda.pooled(*codes, p.x, p.weight), wanted) <= TOLERANCE, pool


@pytest.mark.parametrize("pool", POOLS)
def test_pools_do_not_depend_on_how_many_parts_there_are(pool):
    """Neighbours in a correlation lie in different parts, however short these are."""
    p = problem(1, 5, 2, 3)
    nodal, code, _ = operator_set("dog", pool).codes
    wanted = expected("dog", pool, p)[0]
    for n_parts in (1, 2, 3, 5):
        out = torch.full((n_parts, *p.grad.shape), torch.nan, device=DEVICE)
        cuda.pool_parts(nodal, code, p.x, p.weight, out)
        actual = out.amax(dim=0) if pool == "maximum" else out.sum(dim=0)
        assert relative_error(actual, wanted) <= TOLERANCE, n_parts


@pytest.mark.parametrize(
    ("nodal", "pool"), [("exponential", "sum"), *(("quadratic", pool) for pool in POOLS if pool != "sum")]
)
def test_long_sums_over_rows_and_neurons_are_cut_into_parts(nodal, pool):
    for shape in ((1, 3, 1, 35), (1, 3, 35, 1)):
        assert_agrees(nodal, pool, problem(*shape))


@pytest.mark.parametrize("nodal", NODALS)
def test_parts_add_up_to_the_sum_even_where_one_matrix_product_does_it_all(nodal):
    p = problem(2, 4, 3, 2)
    code = operator_set(nodal, "sum").codes[0]
    out = torch.full((3, *p.grad.shape), torch.nan, device=DEVICE)
    cuda.pool_parts(code, cuda.SUM.value, p.x, p.weight, out)
    assert relative_error(out.sum(dim=0), expected(nodal, "sum", p)[0]) <= TOLERANCE


@pytest.mark.parametrize("nodal", NODALS)
@pytest.mark.parametrize(
    "shape", [(5, 3, 5), (1, 2, 3), (2, 1, 1), (4, 17, 33)], ids=lambda shape: "x".join(map(str, shape))
)
def test_all_pools_at_once_equal_the_reference(nodal, shape):
    p = problem(1, *shape)
    together = cuda.all_pools(operator_set(nodal, "sum").codes[0], p.x[0], p.weight[0])
    for pool in POOLS:
        actual, wanted = together[operator_set(nodal, pool).codes[1]], expected(nodal, pool, p)[0][0]
        # Searches do without relative accuracy near 0.
        torch.testing.assert_close(
            actual.double(), wanted, rtol=0, atol=TOLERANCE * max(1, wanted.abs().max())
        )


def embedded(tensor, before, after):
    """A view with the same values inside a larger tensor of NaN or -1, which no result may depend on."""
    sizes = [b + size + a for b, size, a in zip(before, tensor.shape, after, strict=True)]
    other = torch.nan if tensor.is_floating_point() else -1
    whole = torch.full(sizes, other, dtype=tensor.dtype, device=tensor.device)
    view = whole[tuple(slice(b, b + size) for b, size in zip(before, tensor.shape, strict=True))]
    view.copy_(tensor)
    return view


@pytest.mark.parametrize(
    ("nodal", "pool", "shared"),
    [*((nodal, pool, True) for nodal, pool in PAIRS), *(("dog", pool, False) for pool in POOLS)],
)
def test_views_of_a_training_step_are_read_and_written_in_place(nodal, pool, shared):
    """Rows of a window, parameters inside the rows of theta, and a run of candidates and of neurons.

    All candidates share the inputs of the first layer, and each has its own of the next.
    """
    p = problem(2, 4, 2, 2, shared)
    groups, n_inputs, n_neurons = p.weight.shape
    theta = embedded(p.weight.flatten(1), (1, 3), (1, 2))
    strided = Problem(
        embedded(p.x, (0, 2, 3), (1, 1, 4)),
        theta.unflatten(1, (n_inputs, n_neurons)),
        embedded(p.grad, (1, 1, 0), (1, 2, 0)),
    )
    assert not any(tensor.is_contiguous() for tensor in vars(strided).values())
    codes = operator_set(nodal, pool).codes[:2]
    wanted = expected(nodal, pool, p)
    where = None
    if pool == "maximum":
        index = torch.full((1, groups, n_neurons, 2), -1, dtype=torch.int32, device=DEVICE)
        where = embedded(index, (0, 1, 1, 0), (0, 1, 2, 0))
    out = embedded(torch.empty(1, groups, n_neurons, 2, device=DEVICE), (0, 1, 1, 0), (0, 1, 2, 0))
    cuda.pool_parts(*codes, strided.x, strided.weight, out, where)
    assert relative_error(out[0], wanted[0]) <= TOLERANCE
    where = None if where is None else where[0]
    by_theta = torch.full((groups, 3 + p.weight[0].numel()), torch.nan, device=DEVICE)
    by_weight = by_theta[:, 3:].unflatten(1, (n_inputs, n_neurons))
    gradients = cuda.Gradients(*codes, strided.x, strided.weight, strided.grad, where)
    gradients.by_weight(by_weight)
    assert relative_error(by_weight, wanted[1]) <= TOLERANCE
    assert by_theta[:, :3].isnan().all()
    by_input = embedded(torch.empty(groups, n_inputs, 2, device=DEVICE), (1, 1, 0), (0, 1, 0))
    gradients.by_input(by_input)
    assert relative_error(by_input, wanted[2]) <= TOLERANCE


def test_nothing_outside_of_a_view_is_written():
    p = problem(2, 4, 3, 5)
    for pool in POOLS:
        nodal, code, _ = operator_set("gaussian", pool).codes
        whole = torch.full((1, 4, 6, 7), torch.nan, device=DEVICE)
        cuda.pool_parts(nodal, code, p.x, p.weight, whole[:, 1:3, 2:5, 1:6])
        assert whole[:, 1:3, 2:5, 1:6].isfinite().all()
        assert int(whole.isnan().sum()) == whole.numel() - p.grad.numel()


def test_index_of_the_maximum_is_that_of_the_largest_value():
    for nodal in NODALS:
        p = problem(2, 6, 3, 4)
        actual = cuda.largest_index(operator_set(nodal, "maximum").codes[0], p.x, p.weight)
        function = operator_set(nodal, "maximum").nodal_operator.function
        z = function(p.x[:, :, None].double(), p.weight[:, :, :, None].double())
        assert torch.equal(actual.long(), z.argmax(dim=1)), nodal


@pytest.mark.parametrize("nodal", NODALS)
def test_ties_of_the_maximum_go_to_the_first_input(nodal):
    x = torch.tensor([0.4, 0.9, 0.9, 0.4, 0.9], device=DEVICE)[None, :, None].repeat(1, 1, 3)
    weight = torch.tensor([0.3, 0.8, 0.8, 0.3, 0.8], device=DEVICE)[None, :, None].repeat(1, 1, 2)
    p = Problem(x, weight, torch.ones(1, 2, 3, device=DEVICE))
    code = operator_set(nodal, "maximum").codes[0]
    assert torch.equal(cuda.largest_index(code, x, weight), torch.ones(1, 2, 3, device=DEVICE))
    _, by_weight, by_input = computed(nodal, "maximum", p)
    for gradient in (by_weight, by_input):
        assert (gradient[:, 1] != 0).all()
        assert (gradient[:, [0, 2, 3, 4]] == 0).all()
    assert_agrees(nodal, "maximum", p)


@pytest.mark.parametrize("nodal", NODALS)
def test_clamped_arguments_agree_far_outside(nodal):
    """Each value for itself: a gradient is 0 where that of torch's clamp is, which a bound itself is not."""
    codes = operator_set(nodal, "sum").codes[:2]
    x = torch.tensor([-300.0, -20.0, -11.0, -10.0, -5.0, 2.0, 10.0, 12.0, 400.0], device=DEVICE)
    weight = torch.tensor([-2.0, -0.5, 0.0625, 0.5, 2.5], device=DEVICE)
    one = Problem(x[None, None], weight[None, None], torch.ones(1, 5, 9, device=DEVICE))
    # Every pair is an input of one neuron, so that gradients are not added up.
    x, weight = (tensor.reshape(1, -1, 1) for tensor in torch.meshgrid(x, weight, indexing="ij"))
    many = Problem(x, weight, torch.ones(1, 1, 1, device=DEVICE))
    gradients = cuda.Gradients(*codes, x, weight, many.grad, None)
    actual = [cuda.pooled(*codes, one.x, one.weight), gradients.by_weight(), gradients.by_input()]
    wanted = [expected(nodal, "sum", one)[0], *expected(nodal, "sum", many)[1:]]
    for f, w in zip(actual, wanted, strict=True):
        # sin(1000) has three digits fewer than its argument, and exp(10) one digit.
        torch.testing.assert_close(f.double(), w, rtol=1e-4, atol=1e-7)
        assert torch.equal(f == 0, w == 0)


@pytest.mark.parametrize(
    "shape", [(1, 35, 2, 2), (1, 3, 1, 35), (1, 3, 35, 1)], ids=["inputs", "rows", "neurons"]
)
def test_repeated_results_are_the_same_bits(shape):
    """Where sums over inputs, rows or neurons are cut into parts."""
    p = problem(*shape)
    for nodal, pool in (("exponential", "sum"), ("quadratic", "correlation1")):
        first, second = (computed(nodal, pool, p) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True)), (nodal, pool)


@pytest.mark.parametrize("nodal", ["exponential", "harmonic"])
def test_small_arguments_keep_their_relative_accuracy(nodal):
    p = problem(1, 4, 3, 5)
    small = Problem(p.x.abs() * 1e-4, p.weight.abs(), p.grad)
    actual = cuda.pooled(*operator_set(nodal, "sum").codes[:2], small.x, small.weight)
    torch.testing.assert_close(actual.double(), expected(nodal, "sum", small)[0], rtol=1e-5, atol=0)
