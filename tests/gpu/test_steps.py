"""Training steps on a device against torch autograd, candidate by candidate."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from opgrow import Block, Layer, OperatorSet
from opgrow.backends import Problem
from opgrow.engines import ReferenceEngine, Shape, TuningData, TuningSettings
from opgrow.network import Linear

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

from opgrow.gpu.backend import DeviceBackend
from opgrow.gpu.model import Model
from opgrow.gpu.steps import Trainer

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
    return TuningData(x, np.zeros((n, 0), np.float32), target, weight)


def part_of(data):
    return DeviceBackend(DEVICE).part(Problem(data.x, data.target, data.weight))


def modules(sets, head_set=None, n_frozen=0, seed=0):
    rng = np.random.default_rng(seed)
    layers, width = [], N_INPUTS
    for layer_sets in sets:
        blocks = [Block(width, 2 + i, operator_set) for i, operator_set in enumerate(layer_sets)]
        for block in blocks:
            block.weight[:] = rng.uniform(-1, 1, block.weight.shape)
            block.bias[:] = rng.uniform(-0.3, 0.3, block.n_neurons)
            block.norm.scale[:] = rng.uniform(0.5, 1.5, block.n_neurons)
        layers.append(Layer(blocks))
        width = layers[-1].n_neurons
    n_features = width + n_frozen
    head = Linear(n_features, N_OUTPUTS)
    if head_set is not None:
        head = Block(n_features, N_OUTPUTS, head_set, norm=None)
    bound = 1 / np.sqrt(n_features) if head_set is None else 1.0
    head.weight[:] = rng.uniform(-bound, bound, head.weight.shape)
    return layers, head


def flat(sets, head_set=None, n_frozen=0, seed=5):
    layers, head = modules(sets, head_set, n_frozen, seed)
    shape = Shape(layers, head, n_frozen)
    return shape, torch.from_numpy(shape.flatten(layers, head))


def rates(*values):
    return torch.tensor(values, dtype=torch.float64, device=DEVICE)


def gradients(shape, theta, data, settings):
    """What one batch of all rows gives: Adam's first moments after a step are a tenth of the gradient."""
    engine = ReferenceEngine(shape, theta.clone(), data.tensors(), settings)
    loss, _ = engine.epoch(np.arange(len(data.x)), 0.01, 1)
    first = torch.zeros_like(theta)
    for parameter, state in engine.optimizer.state.items():
        at = (parameter.data_ptr() - engine.theta.data_ptr()) // 4
        first[at : at + parameter.numel()] = state["exp_avg"].reshape(-1)
    return first, engine.theta, loss


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
def test_a_step_is_that_of_autograd(sets, head_set, loss):
    data, settings = rows(), TuningSettings(loss=loss, batch_size=64, weight_decay=0.01)
    shape, theta = flat(sets, head_set)
    wanted, _, wanted_loss = gradients(shape, theta, data, settings)
    trainer = Trainer(Model([shape], theta[None].to(DEVICE)), part_of(data), settings, 1, graphs=False)
    found = trainer.epoch(rates(0.01))
    assert float(found[0]) == pytest.approx(wanted_loss, rel=1e-4)
    scale = float(wanted.abs().max())
    torch.testing.assert_close(trainer.first[0].cpu(), wanted, rtol=1e-3, atol=5e-4 * scale)


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
    Trainer(together, part_of(data), settings, 1, graphs=False).epoch(rates(0.01, 0.01, 0.01, 0.0))
    for i in range(3):
        alone = Model([shapes[i]], start[i : i + 1].to(DEVICE))
        Trainer(alone, part_of(data), settings, 1, graphs=False).epoch(rates(0.01))
        torch.testing.assert_close(together.theta[i], alone.theta[0], rtol=1e-5, atol=1e-6)
    assert torch.equal(together.theta[3].cpu(), start[3])


def test_a_candidate_with_gradients_that_are_not_finite_is_skipped_and_counted():
    data, settings = rows(), TuningSettings(batch_size=64)
    shape, theta = flat(SINGLE)
    broken = theta.clone()
    broken[-1] = np.nan
    model = Model([shape, shape], torch.stack([broken, theta]).to(DEVICE))
    trainer = Trainer(model, part_of(data), settings, 1, graphs=False)
    trainer.epoch(rates(0.01, 0.01))
    assert trainer.skipped.tolist() == [1, 0]
    assert torch.equal(model.theta[0, :-1].cpu(), broken[:-1])
    assert not torch.equal(model.theta[1].cpu(), theta)


@pytest.mark.parametrize(("n_rows", "batch_size"), [(23, 5), (40, 1), (7, 100), (64, 8)])
def test_every_row_takes_part_in_an_epoch(n_rows, batch_size):
    data = rows(n_rows)
    shape, theta = flat(SINGLE)
    settings = TuningSettings(batch_size=batch_size)
    trainer = Trainer(Model([shape], theta[None].to(DEVICE)), part_of(data), settings, 1, graphs=False)
    seen = torch.cat([order for _, order in trainer._windows()]).cpu()
    assert trainer.batch <= batch_size
    assert len(seen) % (trainer.batch * trainer.steps) == 0
    assert set(seen.tolist()) == set(range(n_rows))
    counts = torch.bincount(seen)
    assert counts.max() - counts.min() <= 1


def test_the_same_seed_gives_the_same_parameters_and_another_one_does_not():
    data, settings = rows(20), TuningSettings(batch_size=10, dropout=0.3, input_dropout=0.1)
    shape, theta = flat(SINGLE)
    found = []
    for seed in (1, 1, 2):
        model = Model([shape], theta[None].to(DEVICE).clone())
        Trainer(model, part_of(data), settings, seed).epoch(rates(0.01))
        found.append(model.theta.clone())
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.skipif(DEVICE.type != "cuda", reason="CUDA graphs need a GPU")
def test_a_recorded_epoch_is_the_same_as_an_eager_one():
    data, settings = rows(200), TuningSettings(batch_size=10, dropout=0.2)
    shape, theta = flat(DEEP)
    found = []
    for graphs in (False, True):
        model = Model([shape], theta[None].to(DEVICE).clone())
        trainer = Trainer(model, part_of(data), settings, 1, graphs=graphs)
        losses = [float(trainer.epoch(rates(0.01))[0]) for _ in range(3)]
        found.append((model.theta.clone(), losses))
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
