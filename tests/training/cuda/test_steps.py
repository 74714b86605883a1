"""Training steps on a device against torch autograd, candidate by candidate."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from opgrow import Block, Layer, OperatorSet
from opgrow.network import Linear
from opgrow.rows.memory import MemoryRows
from opgrow.rows.problem import Problem
from opgrow.training.candidates import Candidates, Shape
from opgrow.training.reference import ReferenceTrainer
from opgrow.training.settings import TuningSettings

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

from opgrow.growth.cuda_engine import CudaEngine
from opgrow.training.cuda import heads, passes
from opgrow.training.cuda.model import Model
from opgrow.training.cuda.steps import DeviceSteps

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
N_ROWS, N_INPUTS, N_OUTPUTS = 11, 4, 3
DEEP = [
    [OperatorSet("gaussian", "maximum", "tanh"), OperatorSet("exponential", "correlation2", "sigmoid")],
    [OperatorSet("harmonic", "correlation1", "elu"), OperatorSet("multiplication", "sum", "softplus")],
]
SINGLE = [[OperatorSet("dog", "sum", "inverse_absolute")]]


def rows(n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, N_INPUTS)).astype(np.float32)
    target = np.eye(N_OUTPUTS, dtype=np.float32)[rng.integers(0, N_OUTPUTS, n)]
    weight = rng.uniform(0.5, 1.5, n).astype(np.float32)
    return MemoryRows(x, np.zeros((n, 0), np.float32), target, weight)


def part_of(data):
    return CudaEngine(DEVICE).rows(Problem(data.x, data.target, data.weight))


def modules(sets, head_set=None, n_frozen=0, seed=0):
    torch.manual_seed(seed)

    def drawn(low, high, *shape):
        return torch.empty(shape).uniform_(low, high).numpy()

    layers, width = [], N_INPUTS
    for layer_sets in sets:
        blocks = [Block(width, 2 + i, operator_set) for i, operator_set in enumerate(layer_sets)]
        for block in blocks:
            block.weight[:] = drawn(-1, 1, *block.weight.shape)
        for block in blocks:
            block.bias[:] = drawn(-0.3, 0.3, block.n_neurons)
            block.norm.scale[:] = drawn(0.5, 1.5, block.n_neurons)
        layers.append(Layer(blocks))
        width = layers[-1].n_neurons
    n_features = width + n_frozen
    if head_set is not None:
        head = Block(n_features, N_OUTPUTS, head_set, norm=None)
        head.weight[:] = drawn(-1, 1, n_features, N_OUTPUTS)
        return layers, head
    head, bound = Linear(n_features, N_OUTPUTS), n_features**-0.5
    head.weight[:] = drawn(-bound, bound, N_OUTPUTS, n_features).T
    head.bias[:] = drawn(-bound, bound, N_OUTPUTS)
    return layers, head


def flat(sets, head_set=None, n_frozen=0, seed=5):
    layers, head = modules(sets, head_set, n_frozen, seed)
    shape = Shape(layers, head, n_frozen)
    return shape, torch.from_numpy(shape.flatten(layers, head))


def rates(*values):
    return torch.tensor(values, dtype=torch.float64, device=DEVICE)


def gradients(shape, theta, data, settings):
    """What one batch of all rows gives: Adam's first moments after a step are a tenth of the gradient."""
    candidates = Candidates([shape], theta[None].numpy(), [settings.dropout])
    trainer = ReferenceTrainer(candidates, data, settings, "loss")
    [loss], _ = trainer.epoch(np.array([0.01]), np.random.default_rng(1))
    state = trainer.state()
    return torch.from_numpy(state["first"][0]), torch.from_numpy(state["theta"][0]), loss


@pytest.mark.parametrize("is_small", [True, False], ids=["small", "large"])
@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
@pytest.mark.parametrize(
    ("sets", "head_set"),
    [
        (DEEP, None),
        (SINGLE, OperatorSet("gaussian", "correlation1", "sigmoid")),
        (SINGLE, OperatorSet("multiplication", "sum", "tanh")),
        (SINGLE, OperatorSet("harmonic", "maximum", "elu")),
    ],
)
def test_a_step_is_that_of_autograd(sets, head_set, loss, is_small, monkeypatch):
    if not is_small:
        monkeypatch.setattr(passes, "_FEW_VALUES", 0)
        monkeypatch.setattr(heads, "_FEW_OUTPUTS", 0)
    data, settings = rows(), TuningSettings(loss=loss, batch_size=64, weight_decay=0.01)
    shape, theta = flat(sets, head_set)
    expected, _, wanted_loss = gradients(shape, theta, data, settings)
    trainer = DeviceSteps(Model([shape], theta[None].to(DEVICE)), part_of(data), settings, 1, graphs=False)
    actual = trainer.epoch(rates(0.01), 1)
    assert float(actual[0]) == pytest.approx(wanted_loss, rel=1e-4)
    scale = float(expected.abs().max())
    torch.testing.assert_close(trainer.first[0].cpu(), expected, rtol=1e-3, atol=5e-4 * scale)


def test_candidates_of_one_run_do_not_disturb_each_other():
    """Different operators and weights side by side give what each gives alone; one at rest stays."""
    sets = [
        OperatorSet("gaussian", "maximum", "tanh"),
        OperatorSet("gaussian", "sum", "relu"),
        OperatorSet("multiplication", "sum", "sigmoid"),
        OperatorSet("harmonic", "correlation2", "elu"),
    ]
    data, settings = rows(), TuningSettings(batch_size=64)
    shapes, thetas = zip(*(flat([[s]], seed=i) for i, s in enumerate(sets)), strict=True)
    start = torch.stack(thetas)
    together = Model(shapes, start.to(DEVICE))
    DeviceSteps(together, part_of(data), settings, 1, graphs=False).epoch(rates(0.01, 0.01, 0.01, 0.0), 1)
    for i in range(3):
        alone = Model([shapes[i]], start[i : i + 1].to(DEVICE))
        DeviceSteps(alone, part_of(data), settings, 1, graphs=False).epoch(rates(0.01), 1)
        torch.testing.assert_close(together.theta[i], alone.theta[0], rtol=1e-5, atol=1e-6)
    assert torch.equal(together.theta[3].cpu(), start[3])


def test_a_candidate_with_gradients_that_are_not_finite_is_skipped_and_counted():
    data, settings = rows(), TuningSettings(batch_size=64)
    shape, theta = flat(SINGLE)
    broken = theta.clone()
    broken[-1] = np.nan
    model = Model([shape, shape], torch.stack([broken, theta]).to(DEVICE))
    trainer = DeviceSteps(model, part_of(data), settings, 1, graphs=False)
    trainer.epoch(rates(0.01, 0.01), 1)
    assert trainer.skipped.tolist() == [1, 0]
    assert torch.equal(model.theta[0, :-1].cpu(), broken[:-1])
    assert not torch.equal(model.theta[1].cpu(), theta)


def frozen_part(n, seed, n_frozen=2):
    """Rows with features of an accepted block of their own, as data and on the device."""
    data, part = rows(n, seed), part_of(rows(n, seed))
    block = Block(N_INPUTS, n_frozen, OperatorSet("multiplication", "sum", "tanh"))
    block.weight[:] = np.random.default_rng(seed).uniform(-1, 1, block.weight.shape)
    part.accept(block)
    frozen = part.first(n).accepted.T.cpu().contiguous().numpy()
    return MemoryRows(data.x, frozen, data.target, data.weight), part


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
@pytest.mark.parametrize("is_small", [True, False], ids=["small", "large"])
def test_candidates_with_rows_and_frozen_features_of_their_own(loss, is_small, monkeypatch):
    """A batch of all rows, each candidate's own, gives what plain torch gives for each candidate alone."""
    if not is_small:
        monkeypatch.setattr(passes, "_FEW_VALUES", 0)
        monkeypatch.setattr(heads, "_FEW_OUTPUTS", 0)
    sets = [
        OperatorSet("harmonic", "maximum", "elu"),
        OperatorSet("dog", "sum", "sigmoid"),
        OperatorSet("exponential", "correlation1", "tanh"),
    ]
    settings = TuningSettings(loss=loss, batch_size=64, weight_decay=0.01)
    shapes, thetas = zip(*(flat([[s]], n_frozen=2, seed=i) for i, s in enumerate(sets)), strict=True)
    datas, parts = zip(*(frozen_part(N_ROWS, 10 + i) for i in range(3)), strict=True)
    model = Model(shapes, torch.stack(thetas).to(DEVICE))
    trainer = DeviceSteps(model, parts, settings, 1, graphs=False)
    losses = trainer.epoch(rates(0.01, 0.01, 0.01), 1)
    for i in range(3):
        expected, _, wanted_loss = gradients(shapes[i], thetas[i], datas[i], settings)
        assert float(losses[i]) == pytest.approx(wanted_loss, rel=1e-4)
        scale = float(expected.abs().max())
        torch.testing.assert_close(trainer.first[i].cpu(), expected, rtol=1e-3, atol=5e-4 * scale)


def test_some_of_the_candidates_go_on_with_their_rows():
    shape, theta = flat(SINGLE, n_frozen=2)
    _, parts = zip(*(frozen_part(N_ROWS, 10 + i) for i in range(3)), strict=True)
    settings = TuningSettings(batch_size=64)
    whole = Model([shape] * 3, theta.repeat(3, 1).to(DEVICE))
    trainer = DeviceSteps(whole, parts, settings, 1, graphs=False)
    trainer.epoch(rates(0.01, 0.01, 0.01), 1)
    places = torch.tensor([0, 2], device=DEVICE)
    few = Model([shape] * 2, whole.theta[places])
    fewer = trainer.with_candidates(few, places)
    trainer.epoch(rates(0.01, 0.0, 0.01), 2)
    fewer.epoch(rates(0.01, 0.01), 2)
    # One batch of all rows: another order only rounds differently.
    torch.testing.assert_close(few.theta, whole.theta[places], rtol=1e-4, atol=1e-5)
    assert int(fewer.taken) == int(trainer.taken) == 2


def test_candidates_need_as_many_parts():
    shape, theta = flat(SINGLE)
    model = Model([shape] * 3, theta.repeat(3, 1).to(DEVICE))
    with pytest.raises(ValueError, match="3 candidates need rows of their own for each, got 2 parts"):
        DeviceSteps(model, [part_of(rows())] * 2, TuningSettings(), 1)


def test_the_rows_of_the_largest_part_decide_on_the_steps():
    """Every candidate goes through all its rows, and through some twice if it has fewer."""
    shape, theta = flat(SINGLE)
    sizes = (23, 21, 24)
    parts = [part_of(rows(n, seed=n)) for n in sizes]
    model = Model([shape] * 3, theta.repeat(3, 1).to(DEVICE))
    trainer = DeviceSteps(model, parts, TuningSettings(batch_size=5), 1, graphs=False)
    staged = trainer.staging
    seen = [[] for _ in sizes]
    for _ in staged.windows(3):
        staged.stage()
        staged.at += staged.window
        for i, part in enumerate(parts):
            order = staged.order[i].long()[int(staged.at) - staged.window : int(staged.at)]
            seen[i] += order.tolist()
            assert torch.equal(staged.x[i], part.inputs[:, order])
            assert torch.equal(staged.target[i], part.source.target[:, order])
            assert torch.equal(staged.weight[i, 0], part.source.weight[order])
    assert [len(set(numbers)) for numbers in seen] == list(sizes)
    assert {len(numbers) for numbers in seen} == {5 * trainer.batch}
    assert seen[0][:21] != seen[1][:21]


def test_rows_of_their_own_that_do_not_fit_come_in_chunks():
    """As many chunks for every candidate, and with each of them its rows, targets and frozen features."""
    shape, theta = flat(SINGLE, n_frozen=2)
    datas, parts = zip(*(frozen_part(n, n) for n in (300, 290)), strict=True)
    for part in parts:
        part.inputs, part.stored = None, [None]
        part.budget.share = 4e-5
    model = Model([shape] * 2, theta.repeat(2, 1).to(DEVICE))
    trainer = DeviceSteps(model, parts, TuningSettings(batch_size=10), 1, graphs=False)
    staged = trainer.staging
    assert staged.n_chunks > 1
    seen = [set(), set()]
    for _ in staged.windows(3):
        staged.stage()
        staged.at += staged.window
        for i, data in enumerate(datas):
            numbers = (staged.x[i, 0].cpu()[:, None] == torch.from_numpy(data.x[:, 0])).int().argmax(dim=1)
            seen[i] |= set(numbers.tolist())
            assert torch.equal(staged.x[i].T.cpu(), torch.from_numpy(data.x)[numbers])
            assert torch.equal(staged.target[i].T.cpu(), torch.from_numpy(data.target)[numbers])
            expected = torch.from_numpy(data.accepted)[numbers]
            torch.testing.assert_close(staged.features[i, :2].T.cpu(), expected, rtol=1e-5, atol=1e-6)
    # Windows need not fill chunks: a few rows may have to wait for another epoch.
    assert all(len(numbers) > 0.9 * len(data.x) for numbers, data in zip(seen, datas, strict=True))


def test_each_candidate_leaves_out_its_share_of_the_frozen_features():
    shape, theta = flat(SINGLE, n_frozen=2)
    _, part = frozen_part(400, 1)
    model = Model([shape] * 3, theta.repeat(3, 1).to(DEVICE))
    settings = TuningSettings(batch_size=100, input_dropout=0.25)
    trainer = DeviceSteps(model, part, settings, 1, dropout=[0.0, 0.3, 0.6], graphs=False)
    staged = trainer.staging
    next(iter(staged.windows(1)))
    staged.stage()
    order = staged.order[0].long()
    plain, plain_x = part.first(400).accepted[:, order], part.inputs[:, order]
    for i, drop in enumerate([0.0, 0.3, 0.6]):
        left_out = staged.features[i, :2] == 0
        # Four standard deviations of 800 draws.
        assert abs(float(left_out.float().mean()) - drop) <= 4 * (drop * (1 - drop) / 800) ** 0.5
        torch.testing.assert_close(staged.features[i, :2][~left_out], plain[~left_out] / (1 - drop))
    left_out = staged.x[0] == 0
    assert abs(float(left_out.float().mean()) - 0.25) < 4 * (0.25 * 0.75 / 1600) ** 0.5
    torch.testing.assert_close(staged.x[0][~left_out], plain_x[~left_out] / 0.75)


@pytest.mark.parametrize(("n_rows", "batch_size"), [(23, 5), (40, 1), (7, 100), (64, 8)])
def test_every_row_takes_part_in_an_epoch(n_rows, batch_size):
    data = rows(n_rows)
    shape, theta = flat(SINGLE)
    settings = TuningSettings(batch_size=batch_size)
    trainer = DeviceSteps(Model([shape], theta[None].to(DEVICE)), part_of(data), settings, 1, graphs=False)
    count = sum(1 for _ in trainer.staging.windows(1))
    seen = trainer.staging.order[0, : count * trainer.staging.window].cpu()
    assert trainer.batch <= batch_size
    assert len(seen) % (trainer.batch * trainer.steps) == 0
    assert set(seen.tolist()) == set(range(n_rows))
    counts = torch.bincount(seen)
    assert counts.max() - counts.min() <= 1


def trained(seed, epoch_seed, settings=None, n_epochs=1):
    settings = settings or TuningSettings(batch_size=10, dropout=0.3, input_dropout=0.1)
    shape, theta = flat(SINGLE)
    model = Model([shape], theta[None].to(DEVICE).clone())
    trainer = DeviceSteps(model, part_of(rows(20)), settings, seed)
    for i in range(n_epochs):
        trainer.epoch(rates(0.01), epoch_seed + i)
    return trainer


def test_the_same_seeds_give_the_same_parameters_and_others_do_not():
    same, again, other, other_epoch = (trained(*s).model.theta for s in ((1, 1), (1, 1), (2, 1), (1, 2)))
    assert torch.equal(same, again)
    assert not torch.equal(same, other)
    assert not torch.equal(same, other_epoch)


def test_an_epoch_follows_from_the_state_and_the_seeds():
    whole, first = trained(1, 5, n_epochs=2), trained(1, 5)
    assert sorted(first.state()) == ["first", "second", "skipped", "taken"]
    model = Model(first.model.shapes, first.model.theta.clone())
    resumed = DeviceSteps(model, part_of(rows(20)), first.settings, 1)
    resumed.load(first.state())
    resumed.epoch(rates(0.01), 6)
    assert torch.equal(resumed.model.theta, whole.model.theta)
    for name, values in whole.state().items():
        np.testing.assert_array_equal(resumed.state()[name], values)


@pytest.mark.skipif(DEVICE.type != "cuda", reason="CUDA graphs need a GPU")
def test_a_recorded_epoch_is_the_same_as_an_eager_one():
    data, settings = rows(200), TuningSettings(batch_size=10, dropout=0.2)
    shape, theta = flat(DEEP)
    actual = []
    for graphs in (False, True):
        model = Model([shape], theta[None].to(DEVICE).clone())
        trainer = DeviceSteps(model, part_of(data), settings, 1, graphs=graphs)
        losses = [float(trainer.epoch(rates(0.01), seed)[0]) for seed in range(3)]
        actual.append((model.theta.clone(), losses))
    assert torch.equal(actual[0][0], actual[1][0])
    assert actual[0][1] == actual[1][1]
