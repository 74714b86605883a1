"""Oracles in double precision: plain torch, and its automatic derivatives."""

from __future__ import annotations

import numpy as np
import torch

from opgrow.engine import reference
from opgrow.engine.blocks import ACTIVATIONS, NODALS, POOLS
from opgrow.operators import OperatorSet

CODES = [
    (nodal, pool, activation)
    for nodal in range(len(NODALS))
    for pool in range(len(POOLS))
    for activation in range(len(ACTIVATIONS))
]


def operator_set(codes) -> OperatorSet:
    return OperatorSet(NODALS[codes[0]], POOLS[codes[1]], ACTIVATIONS[codes[2]])


def name_of(codes) -> str:
    return str(operator_set(codes))


def problem(n_rows, n_inputs, n_neurons, seed=0):
    """Inputs, weights, biases and slopes of ordinary size, whatever the number of inputs."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.5, 1.5, (n_rows, n_inputs))
    bound = min(1.5, 6 / n_inputs**0.5)
    arrays = x, rng.uniform(-bound, bound, (n_inputs, n_neurons)), rng.uniform(-1, 1, n_neurons)
    return tuple(a.astype(np.float32) for a in (*arrays, rng.uniform(-1, 1, (n_rows, n_neurons))))


def features(codes, x, weight, bias):
    tensors = (torch.from_numpy(a).double() for a in (x, weight, bias))
    return reference.features(*tensors, operator_set(codes)).numpy()


def gradients(codes, x, weight, bias, slope):
    leaves = [torch.from_numpy(a).double().requires_grad_() for a in (x, weight, bias)]
    out = (reference.features(*leaves, operator_set(codes)) * torch.from_numpy(slope).double()).sum()
    return [g.numpy() for g in torch.autograd.grad(out, leaves)]


def relative_error(actual, expected):
    assert actual.shape == expected.shape
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-30)  # below, float32 has no digits left
    return float(np.abs(actual - expected).max(initial=0.0)) / scale
