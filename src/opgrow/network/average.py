"""Averages of networks that are grown separately: how rows are divided among them, and how they become one.

Each network holds back different rows to decide its growth, so that together they learn from all of them.
The mean of networks below a linear head is itself such a network, with all their blocks side by side: it is
saved, exported and read like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from ..engine.native import native
from .blocks import Layer, Linear
from .network import Network

__all__ = ["average", "fold_rows", "member_outputs", "rows_between"]


def fold_rows(
    n_rows: int, n_networks: int, fraction: float, codes: np.ndarray | None, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows for training and for validation of each network, stratified by class codes where they are given.

    Networks hold back the folds of a division into equal parts, as near to ``fraction`` as such parts can be;
    when there are more networks than folds, the rows are divided anew. A row that is alone in its class is
    never held back.
    """
    n_folds = max(2, round(1 / fraction))
    divisions: list[tuple[np.ndarray, np.ndarray]] = []
    fold = np.empty(n_rows, np.int64)
    for number in range(n_networks):
        if number % n_folds == 0:
            fold = _assign_folds(n_rows, n_folds, codes, rng)
        held = fold == number % n_folds
        divisions.append((np.flatnonzero(~held), np.flatnonzero(held)))
    return divisions


def _assign_folds(
    n_rows: int, n_folds: int, codes: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """The fold of each row, -1 for those of all trainings; classes are dealt out one after the other."""
    order = rng.permutation(n_rows)
    fold = np.full(n_rows, -1)
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
        alone = np.bincount(codes) == 1
        order = order[~alone[codes[order]]]
    fold[order] = np.arange(len(order)) % n_folds
    return fold


def rows_between(x: np.ndarray, n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows at random places between pairs of rows, and for each the row that it lies nearest to.

    What a student says there shows whether it has understood its teacher or learned its answers by heart.
    """
    first, second = (rng.permutation(len(x))[:n_rows] for _ in range(2))
    step = rng.uniform(0.0, 0.5, (len(first), 1)).astype(x.dtype)
    # Halves, because the difference of the largest numbers overflows.
    return x[first] + 2 * step * (x[second] / 2 - x[first] / 2), first


def average(networks: Sequence[Network]) -> Network:
    """The network whose outputs are the mean of the outputs of several, which stand side by side in it."""
    members = [[len(layer) for layer in network.layers] for network in networks]
    depth = max(map(len, members))
    layers = [
        Layer([deepcopy(block) for n in networks if level < len(n.layers) for block in n.layers[level]])
        for level in range(depth)
    ]
    merged = Network(networks[0].n_inputs, networks[0].n_outputs, layers, members=members)
    heads = [network.head for network in networks]
    assert isinstance(merged.head, Linear)
    merged.head.weight[:] = np.concatenate([head.weight.astype(np.float64) for head in heads]) / len(heads)
    merged.head.bias[:] = np.mean([head.bias for head in heads], axis=0, dtype=np.float64)
    limits = [(network.head_low, network.head_high) for network in networks]
    if not any(low is None or high is None for low, high in limits):
        merged.head_low, merged.head_high = (np.concatenate(parts) for parts in zip(*limits, strict=True))
    return merged


def member_outputs(network: Network, biases: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What each network of an average says of rows (n, inputs): (networks, n, outputs) in float64.

    ``biases`` (networks, outputs) are those of their heads, of which the average has but the mean. Limits
    of features and constants of the outputs are applied, limits of outputs are not.
    """
    assert network.members is not None
    assert isinstance(network.head, Linear)
    features, weight = network.read_by_head(x), network.head.weight.astype(np.float64)
    outputs, start = np.empty((len(biases), len(x), network.n_outputs)), 0
    for number, width in enumerate(network.member_widths()):
        part = slice(start, start + width)
        outputs[number] = native().multiply(features[:, part].astype(np.float64), weight[part] * len(biases))
        start += width
    outputs += biases[:, None]
    if network.output_mean is None or network.output_scale is None:
        return outputs
    return outputs * network.output_scale + network.output_mean
