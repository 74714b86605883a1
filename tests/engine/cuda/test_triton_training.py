"""The kernels of a training step on a GPU against plain torch in double precision, and its optimiser.

They are launched as `opgrow.training.cuda` launches them, but with small tiles, and interpreted where
there is no GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from torch.nn import functional

from opgrow import OperatorSet
from opgrow.operators import registered

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

import triton

from opgrow.engine.cuda import triton_adam, triton_training
from tests.engine.cuda.tensors import DEVICE, relative_error, uniform

# The interpreter computes with numpy, which warns about what lies beyond the edge of a tile and is not kept.
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")

TOLERANCE = 1e-5
OPERATORS = [OperatorSet("dog", "sum", name).activation_operator for name in registered("activation")]
ACTIVATIONS = [operator for operator in OPERATORS if operator.code is not None]
MAXIMUM = 3 * triton_training.POOL_UNIT.value
#: Added to a variance in every batch norm of a network.
EPSILON = 1e-8


# --- what happens to a neuron's values over a batch ---


@dataclass
class Layer:
    """Two candidates of two blocks, whose neurons have all activations, in an order for each candidate."""

    n_rows: int
    n_parts: int = 1
    norm: bool = True
    maximum: bool = False
    drop: float | tuple[float, float] = 0.0  # of both candidates, or of each
    rows: int = 0  # of a tile; by default, all
    step: int = 3
    salt: int = 77
    widths: tuple[int, int] = (5, 3)
    n_inputs: int = 2
    taken: int = 40
    sums: torch.Tensor = field(init=False)

    def __post_init__(self):
        width, offset, places = sum(self.widths), 4, []
        for d in self.widths:
            offset += self.n_inputs * d
            places += [(offset + i, d, self.n_inputs) for i in range(d)]
            offset += 3 * d if self.norm else d
        self.places = torch.tensor(places, dtype=torch.int32, device=DEVICE)
        self.theta = uniform(2, offset + 5, seed=1)
        codes = torch.tensor([operator.code for operator in ACTIVATIONS])
        self.activations = torch.stack([codes, codes.roll(3)])
        assert self.activations.shape == (2, width)
        # Every second neuron takes the maximum of its inputs.
        self.is_maximum = (torch.arange(2 * width).reshape(2, width) % 2 == 0) & self.maximum
        self.codes = (self.activations + MAXIMUM * self.is_maximum).int().to(DEVICE)
        self.parts = uniform(self.n_parts, 2, width, self.n_rows, seed=2) * 3
        self.index_parts = torch.arange(self.parts.numel(), dtype=torch.int32, device=DEVICE).view_as(
            self.parts
        )
        self.grad = uniform(2, width, self.n_rows, seed=3)
        shape = self.grad.shape
        self.pre, self.normal, self.by_pool = (torch.full(shape, torch.nan, device=DEVICE) for _ in range(3))
        self.index = torch.full(shape, -1, dtype=torch.int32, device=DEVICE)
        # Inside the features that a head sees, for a batch of a window.
        self.features = torch.full((2, width + 3, self.n_rows + 4), torch.nan, device=DEVICE)
        self.out = self.features[:, 2:-1, 3:-1]
        self.variance = torch.full((2, width), torch.nan, device=DEVICE)
        self.sums = torch.zeros(3, 2, width, dtype=torch.float64, device=DEVICE)
        self.base = torch.tensor([self.taken], device=DEVICE)
        self.drops = torch.tensor(self.drop, device=DEVICE).expand(2).contiguous()
        self.grad_theta = torch.full_like(self.theta, torch.nan)
        self.rows = self.rows or triton.next_power_of_2(self.n_rows)

    def forward(self):
        width = self.grad.shape[1]
        share = self.n_rows if self.norm else self.rows
        triton_training.finish_forward[(width, 2, triton.cdiv(self.n_rows, share))](
            self.parts,
            self.index_parts if self.maximum else self.parts,
            self.index if self.maximum else self.parts,
            self.theta,
            self.places,
            self.codes,
            self.pre,
            self.normal,
            self.out,
            self.variance,
            self.sums,
            self.base,
            self.step,
            self.salt,
            self.drops,
            self.n_rows,
            width,
            self.n_parts,
            self.parts.stride(0),
            self.theta.stride(0),
            self.out.stride(0),
            self.out.stride(1),
            share,
            NORM=self.norm,
            INDEX=self.maximum,
            DROP=bool(self.drops.any()),
            ROWS=self.rows,
            PARTS=triton.next_power_of_2(self.n_parts),
            SINGLE=self.n_rows <= self.rows,
        )
        return self

    def backward(self):
        width = self.grad.shape[1]
        triton_training.finish_backward[(width, 2)](
            self.grad,
            self.by_pool,
            self.pre,
            self.normal,
            self.variance,
            self.theta,
            self.grad_theta,
            self.places,
            self.codes,
            self.base,
            self.step,
            self.salt,
            self.drops,
            self.n_rows,
            width,
            self.theta.stride(0),
            self.grad.stride(0),
            NORM=self.norm,
            DROP=bool(self.drops.any()),
            ROWS=self.rows,
        )
        return self

    def pooled(self):
        """The parts put together, (K, width, n) in double precision."""
        parts = self.parts.double()
        is_maximum = self.is_maximum[:, :, None].to(DEVICE)
        return torch.where(is_maximum, parts.amax(dim=0), parts.sum(dim=0))

    def expected(self, keep=1.0):
        """What is handed on, its gradients by pooled values and by theta; ``keep`` are dropout's factors."""
        pooled = self.pooled().requires_grad_()
        theta = self.theta.double().requires_grad_()
        place, size, _ = self.places.long().T
        pre = pooled + theta[:, place, None]
        by_code = {operator.code: operator.function for operator in ACTIVATIONS}
        rows = zip(self.activations.flatten().tolist(), pre.flatten(0, 1), strict=True)
        out = torch.stack([by_code[code](row) for code, row in rows])
        self.activated = out.detach().view_as(pre)
        if self.norm:
            scale, shift = (theta[:, place + times * size].flatten() for times in (1, 2))
            if self.n_rows > 1:
                out = functional.batch_norm(out.T, None, None, scale, shift, training=True, eps=EPSILON).T
            else:  # which batch_norm refuses
                out = (out - out) * scale[:, None] + shift[:, None]
        out = out.view_as(pre) * keep
        gradients = torch.autograd.grad((out * self.grad).sum(), (pooled, theta))
        return [out.detach(), *gradients]

    def has_gradient(self):
        """Which parameters belong to neurons and not to their weights."""
        mask = torch.zeros(self.theta.shape[1], dtype=torch.bool, device=DEVICE)
        place, size, _ = self.places.long().T
        for times in range(3 if self.norm else 1):
            mask[place + times * size] = True
        return mask


def assert_agrees(layer, keep=1.0):
    out, by_pool, by_theta = layer.expected(keep)
    mask = layer.has_gradient()
    assert relative_error(layer.out, out) <= TOLERANCE
    # A neuron with little variance has large gradients, whose rounding is that neuron's alone.
    for actual, wanted in zip(layer.by_pool.flatten(0, 1), by_pool.flatten(0, 1), strict=True):
        assert relative_error(actual, wanted) <= 1e-4
    assert relative_error(layer.by_pool, by_pool) <= TOLERANCE
    assert relative_error(layer.grad_theta[:, mask], by_theta[:, mask]) <= TOLERANCE
    assert layer.grad_theta[:, ~mask].isnan().all()
    inside = torch.zeros_like(layer.features, dtype=torch.bool)
    inside[:, 2:-1, 3:-1] = True
    assert layer.features[~inside].isnan().all()


def test_all_built_in_activations_are_walked_over():
    assert sorted(operator.code for operator in ACTIVATIONS) == list(range(8))


@pytest.mark.parametrize("norm", [True, False], ids=["norm", "no norm"])
@pytest.mark.parametrize("n_parts", [1, 3], ids=["one part", "three parts"])
@pytest.mark.parametrize("rows", [8, 4], ids=["one pass", "two passes"])
def test_every_activation_with_and_without_batch_norm(norm, n_parts, rows):
    assert_agrees(Layer(6, n_parts, norm, rows=rows).forward().backward())


@pytest.mark.parametrize("norm", [True, False], ids=["norm", "no norm"])
def test_a_batch_of_one_row(norm):
    layer = Layer(1, norm=norm).forward().backward()
    out, by_pool, by_theta = layer.expected()
    mask = layer.has_gradient()
    torch.testing.assert_close(layer.out.double(), out, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(layer.by_pool.double(), by_pool, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(layer.grad_theta[:, mask].double(), by_theta[:, mask], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [30.0, 1e-4])
def test_activations_of_large_and_of_small_values(size):
    layer = Layer(8, norm=False)
    layer.parts *= size / 3
    layer.theta *= size
    layer.forward().backward()
    out, by_pool, _ = layer.expected()
    torch.testing.assert_close(layer.out.double(), out, rtol=1e-5, atol=1e-12)
    torch.testing.assert_close(layer.by_pool.double(), by_pool, rtol=1e-5, atol=1e-7)


def test_results_may_take_the_place_of_the_first_part():
    layer = Layer(6, 2, norm=False, rows=4)
    wanted = layer.expected()[0]
    layer.pre = layer.out = layer.parts[0]
    layer.forward()
    assert relative_error(layer.out, wanted) <= TOLERANCE


@pytest.mark.parametrize("rows", [8, 4], ids=["one pass", "two passes"])
def test_statistics_of_batches_are_gathered(rows):
    layer = Layer(6, rows=rows).forward()
    first = layer.sums.clone()
    layer.expected()
    variance, mean = torch.var_mean(layer.activated, dim=2, correction=0)
    assert relative_error(layer.variance, variance) <= TOLERANCE
    assert relative_error(first, torch.stack([mean, mean.square(), variance])) <= TOLERANCE
    layer.forward()
    assert torch.equal(layer.sums, 2 * first)


def test_a_neuron_that_never_fires_hands_on_its_shift():
    relu = next(operator.code for operator in ACTIVATIONS if operator.name == "relu")
    layer = Layer(6)
    layer.activations[:] = layer.codes[:] = relu
    layer.parts -= 9
    layer.forward().backward()
    place, size, _ = layer.places.long().T
    assert torch.equal(layer.out, layer.theta[:, place + 2 * size, None].expand_as(layer.out))
    assert (layer.by_pool == 0).all()


@pytest.mark.parametrize("norm", [True, False], ids=["norm", "no norm"])
@pytest.mark.parametrize("rows", [8, 4], ids=["one pass", "two passes"])
def test_maxima_of_parts_come_with_their_index(norm, rows):
    layer = Layer(6, 3, norm, maximum=True, rows=rows).forward().backward()
    assert_agrees(layer)
    best = layer.parts.argmax(dim=0, keepdim=True)
    wanted = layer.index_parts.gather(0, best)[0]
    assert torch.equal(layer.index[layer.is_maximum], wanted[layer.is_maximum])
    assert (layer.index[~layer.is_maximum] == -1).all()


def test_equal_maxima_of_parts_go_to_the_first_part():
    layer = Layer(6, 3, maximum=True)
    layer.parts[1:] = layer.parts[1]
    layer.forward()
    later = layer.parts[1] > layer.parts[0]
    wanted = torch.where(later, layer.index_parts[1], layer.index_parts[0])
    assert torch.equal(layer.index[layer.is_maximum], wanted[layer.is_maximum])


def factors(layer):
    """By what dropout has multiplied the values of a layer: out / out without dropout."""
    plain = Layer(**{name: getattr(layer, name) for name in ("n_rows", "n_parts", "rows")}).forward()
    return layer.out / plain.out


@pytest.mark.parametrize("drop", [0.2, 0.5])
def test_dropout_leaves_out_its_share_and_scales_the_rest(drop):
    layer = Layer(500, drop=drop).forward()
    actual = factors(layer)[0]
    dropped = actual == 0
    torch.testing.assert_close(actual[~dropped], torch.full_like(actual[~dropped], 1 / (1 - drop)))
    # Four standard deviations of 4,000 draws.
    assert abs(float(dropped.float().mean()) - drop) < 4 * (drop * (1 - drop) / 4000) ** 0.5
    same = (dropped[:, None] == dropped[None]).float().mean(dim=2)
    assert float(same.fill_diagonal_(0).max()) < 0.85


@pytest.mark.parametrize("rows", [8, 4], ids=["one pass", "two passes"])
def test_dropout_of_the_way_back_is_that_of_the_way_forth(rows):
    layer = Layer(6, 2, drop=0.4, rows=rows).forward().backward()
    keep = torch.where(layer.out == 0, 0.0, 1 / (1 - 0.4)).double()
    assert 0 < float((keep == 0).float().mean()) < 1
    assert_agrees(layer, keep)


def test_each_candidate_has_its_own_dropout():
    layer = Layer(6, drop=(0.0, 0.6)).forward().backward()
    keep = torch.where(layer.out == 0, 0.0, 1 / (1 - 0.6)).double()
    keep[0] = 1.0
    assert (layer.out[0] != 0).all()
    assert 0 < float((keep[1] == 0).float().mean()) < 1
    assert_agrees(layer, keep)


def test_dropout_does_not_depend_on_tiles():
    whole, tiled = (Layer(6, drop=0.4, rows=rows).forward() for rows in (8, 2))
    assert torch.equal(whole.out == 0, tiled.out == 0)


def test_dropout_differs_between_steps_and_layers_and_repeats_with_their_numbers():
    def dropped(**numbers):
        return Layer(16, drop=0.5, **numbers).forward().out == 0

    first = dropped()
    assert torch.equal(first, dropped())
    assert torch.equal(first, dropped(taken=42, step=1))
    for numbers in ({"step": 4}, {"taken": 56}, {"salt": 1_000_080}):
        assert 0.25 < float((first == dropped(**numbers)).float().mean()) < 0.75, numbers


# --- Adam ---

BLOCK = 4


@dataclass
class Optimiser:
    """Parameters of three candidates, each with a learning rate of its own, and each with its decay."""

    size: int = 11
    rates: tuple[float, ...] = (0.01, 0.003, 0.05)
    is_large: bool = True  # whether gradients are checked before

    def __post_init__(self):
        k = len(self.rates)
        self.theta = uniform(k, self.size, seed=6)
        self.start = self.theta.clone()
        self.first, self.second = (torch.zeros_like(self.theta) for _ in range(2))
        # Biases have none.
        self.decay = torch.tensor([0.0, 0.1, 0.02], device=DEVICE).repeat(self.size)[: self.size]
        self.rate = torch.tensor(self.rates, dtype=torch.float64, device=DEVICE)
        self.active = torch.ones(k, dtype=torch.int32, device=DEVICE)
        self.skipped = torch.zeros(k, dtype=torch.int32, device=DEVICE)
        self.taken = torch.zeros(1, dtype=torch.int64, device=DEVICE)

    def step(self, grad, number=0):
        k, size = self.theta.shape
        n_checks, checks = size, grad
        if self.is_large:
            n_checks = triton.cdiv(size, BLOCK)
            checks = torch.full((k, n_checks), torch.nan, device=DEVICE)
            triton_adam.check_sums[(n_checks, k)](grad, checks, size, grad.stride(0), BLOCK=BLOCK)
        triton_adam.adam[(triton.cdiv(size, BLOCK), k)](
            self.theta,
            grad,
            self.first,
            self.second,
            self.decay,
            checks,
            self.skipped,
            self.active,
            self.rate,
            self.taken,
            number,
            size,
            grad.stride(0),
            n_checks,
            BLOCK=BLOCK,
            SUMS=triton.next_power_of_2(n_checks),
        )

    def state(self):
        return [tensor.clone() for tensor in (self.theta, self.first, self.second)]


def gradients(n_steps, seed=7):
    """Of sizes from 1e-6 to 1, as the parameters of a network have them."""
    sizes = torch.logspace(-6, 0, 11, device=DEVICE)
    return [uniform(3, 11, seed=seed + i) * sizes for i in range(n_steps)]


def torch_adam(optimiser, candidate, grads):
    """A candidate's parameters after torch's own Adam in double precision."""
    leaves = [value.double().requires_grad_() for value in optimiser.start[candidate]]
    groups = [{"params": [p], "weight_decay": float(d)} for p, d in zip(leaves, optimiser.decay, strict=True)]
    adam = torch.optim.Adam(groups, lr=optimiser.rates[candidate], eps=1e-7)
    for grad in grads:
        for leaf, value in zip(leaves, grad[candidate], strict=True):
            leaf.grad = value.double()
        adam.step()
    return torch.stack([leaf.detach() for leaf in leaves])


def assert_steps_agree(optimiser, candidate, grads):
    wanted = torch_adam(optimiser, candidate, grads) - optimiser.start[candidate].double()
    actual = optimiser.theta[candidate].double() - optimiser.start[candidate].double()
    # Against the length of the way, and not against the parameters, which hardly move.
    torch.testing.assert_close(actual, wanted, rtol=2e-5, atol=2e-7)


def test_adam_equals_that_of_torch():
    optimiser, grads = Optimiser(), gradients(6)
    for number, grad in enumerate(grads):
        optimiser.step(grad, number % 4)
        # Steps of a window are numbered, and those taken are counted when it is over.
        if number == 3:
            optimiser.taken += 4
    for candidate in range(3):
        assert_steps_agree(optimiser, candidate, grads)
    assert not optimiser.skipped.any()


def test_adam_after_many_steps():
    optimiser, (grad,) = Optimiser(), gradients(1)
    optimiser.taken += 100_000
    optimiser.step(grad)
    wanted = 0.1 * (grad + optimiser.decay * optimiser.start).double()
    size = optimiser.rate[:, None] * wanted / ((wanted / 0.1).square() * 0.001).sqrt().add(1e-7)
    actual = (optimiser.start - optimiser.theta).double()
    torch.testing.assert_close(actual, size, rtol=2e-5, atol=2e-7)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("place", [0, 6, 10])
@pytest.mark.parametrize("is_large", [True, False], ids=["large", "small"])
def test_a_candidate_without_a_finite_gradient_is_skipped_and_the_others_go_on(value, place, is_large):
    optimiser, grads = Optimiser(is_large=is_large), gradients(3)
    grads[1][1, place] = value
    optimiser.step(grads[0], 0)
    before = optimiser.state()
    optimiser.step(grads[1], 1)
    for old, new in zip(before, optimiser.state(), strict=True):
        assert torch.equal(new[1], old[1])
    assert optimiser.skipped.tolist() == [0, 1, 0]
    optimiser.step(grads[2], 2)
    assert optimiser.theta.isfinite().all()
    assert not torch.equal(optimiser.theta[1], before[0][1])
    assert optimiser.skipped.tolist() == [0, 1, 0]
    for candidate in (0, 2):
        assert_steps_agree(optimiser, candidate, grads)


@pytest.mark.parametrize("is_large", [True, False], ids=["large", "small"])
def test_large_finite_gradients_are_not_skipped(is_large):
    optimiser = Optimiser(is_large=is_large)
    optimiser.step(torch.full((3, 11), 1e18, device=DEVICE))
    assert not optimiser.skipped.any()
    assert optimiser.theta.isfinite().all()


def test_candidates_at_rest_stay():
    optimiser, grads = Optimiser(), gradients(2)
    optimiser.active[1] = 0
    for number, grad in enumerate(grads):
        optimiser.step(grad, number)
    assert torch.equal(optimiser.theta[1], optimiser.start[1])
    assert not optimiser.first[1].any()
    assert not optimiser.second[1].any()
    for candidate in (0, 2):
        assert_steps_agree(optimiser, candidate, grads)


def test_candidates_at_rest_skip_nothing():
    optimiser, (grad,) = Optimiser(), gradients(1)
    optimiser.active[1] = 0
    grad[1, 3] = torch.nan
    optimiser.step(grad)
    assert torch.equal(optimiser.theta[1], optimiser.start[1])
    assert optimiser.skipped.tolist() == [0, 0, 0]
