"""Rows, networks and trainings of them, for the tests of this folder."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import torch

from opgrow import Block, Layer, OperatorSet
from opgrow.growth.engine import NativeEngine
from opgrow.network import Linear
from opgrow.rows.memory import MemoryRows
from opgrow.training.candidates import Candidates
from opgrow.training.draft import Draft
from opgrow.training.native import NativeTrainer
from opgrow.training.reference import ReferenceTrainer
from opgrow.training.settings import TuningSettings
from opgrow.training.train import Training
from tests.networks import as_modules, with_random_parameters

TRAINERS = {"native": NativeTrainer, "reference": ReferenceTrainer}
HARMONIC = OperatorSet("harmonic", "sum", "tanh")
NODALS = ("multiplication", "exponential", "harmonic", "quadratic", "gaussian", "dog")
POOLS = ("sum", "correlation1", "correlation2", "maximum")
ACTIVATIONS = ("sigmoid", "tanh", "relu", "softplus", "inverse_absolute", "elu")


def data(n=40, n_inputs=5, n_frozen=2, n_outputs=3, seed=0, weighted=True, n_threads=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.5, 1.5, (n, n_inputs)).astype(np.float32)
    target = np.eye(n_outputs, dtype=np.float32)[rng.integers(0, n_outputs, n)]
    weight = rng.uniform(0.2, 2, n) if weighted else np.ones(n)
    frozen = rng.normal(size=(n, n_frozen)).astype(np.float32)
    return MemoryRows(x, frozen, target, (weight / weight.mean()).astype(np.float32), n_threads)


def network(sets, n_inputs=5, n_frozen=2, n_outputs=3, seed=0, head_set=None, width=3):
    """Layers with these operator sets (a list for each layer), and a head, with random parameters."""
    layers = []
    for blocks in sets:
        layers.append(Layer([Block(n_inputs, width, s) for s in blocks]))
        n_inputs = layers[-1].n_neurons
    head = Linear(n_frozen + n_inputs, n_outputs)
    if head_set is not None:
        head = Block(n_frozen + n_inputs, n_outputs, head_set, norm=None)
    return with_random_parameters(layers, head, seed)


def well_conditioned(sets, rows, **shape):
    """Whether no neuron is nearly constant, which a batch norm would blow up, or ruled by one row."""
    layers, _ = as_modules(*network(sets, n_inputs=rows.x.shape[1], **shape))
    x = torch.from_numpy(rows.x).double()
    for layer in layers:
        raws = torch.cat([block.double().features(x) for block in layer.blocks], dim=1)
        spread = raws.std(dim=0)
        standard = (raws - raws.mean(dim=0)) / spread.clamp_min(1e-30)
        if (spread < 0.01 * (raws.abs().max(dim=0).values + 0.1)).any() or standard.abs().max() > 5:
            return False
        x = layer.double().train()(x).detach()
    return True


def training_of(
    networks,
    rows,
    settings,
    scored=None,
    seed=0,
    criterion="loss",
    dropouts=None,
    exact=True,
    on_epoch=lambda epoch: None,
    draft=None,
    trainer=None,
):
    """A training of networks, which stay as they are, by the trainer of the host unless another is named."""
    dropouts = [settings.dropout] * len(networks) if dropouts is None else dropouts
    candidates = Candidates.of_networks(deepcopy(networks), rows.n_accepted, dropouts)
    make = NativeEngine().trainer if trainer is None else TRAINERS[trainer]
    return Training(
        make(candidates, rows, settings, criterion),
        candidates,
        rows,
        rows if scored is None else scored,
        settings,
        criterion,
        np.random.default_rng(seed),
        exact,
        on_epoch,
        Draft() if draft is None else draft,
    )


def settings(**changes):
    return TuningSettings(**({"learning_rates": (0.01,), "epochs": (5,)} | changes))
