"""What double precision says of a fitted network, and how far from it single precision may be.

Two programs that compute the same network in single precision differ by roundings, and each CPU rounds in its
own order. Both are right if they are as near to double precision as roundings allow. How near that is depends
on the network and the row: each weight is moved by up to the spacing of single precision, at random, and the
answers show what such changes do. All estimators and their ONNX files stayed within 4 times as much.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import torch

EPSILON = 2.0**-23
DRAWS = 8
ALLOWANCE = 16
#: Of a probability, of the targets' scale or of what is predicted: a test that forgives more says nothing.
MOST = 0.05


class InDouble:
    """A network that torch computes in double precision."""

    def __init__(self, network: Any) -> None:
        self.network, self.module = network, network.to_torch().double()

    def outputs(self, x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.module(torch.from_numpy(x.astype(np.float64))).numpy()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


def in_double_precision(estimator: Any) -> Any:
    """The same fitted estimator with a network that torch computes in double precision."""
    twin = copy(estimator)
    twin.network_ = InDouble(estimator.network_)
    return twin


def answers(estimator: Any, x: np.ndarray) -> np.ndarray:
    """Class probabilities, or target values with one column for each target."""
    if hasattr(estimator, "classes_"):
        return estimator.predict_proba(x)
    values = estimator.predict(x)
    return values.reshape(len(x), -1)


def exact_answers(estimator: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Answers of double precision, and how far from each of them single precision may be."""
    x = x.astype(np.float64)
    exact = answers(in_double_precision(estimator), x)
    mean, scale = estimator.network_.output_mean, estimator.network_.output_scale
    units = np.ones(exact.shape[1]) if scale is None else scale
    centre = np.zeros(exact.shape[1]) if mean is None else mean
    change = np.full(len(x), EPSILON)
    generator = torch.Generator().manual_seed(0)
    for _ in range(DRAWS):
        moved = in_double_precision(estimator)
        _round(moved.network_.module, generator)
        change = np.maximum(change, (np.abs(answers(moved, x) - exact) / units).max(axis=1))
    tolerance = ALLOWANCE * change
    size = np.maximum(1, (np.abs(exact - centre) / units).max(axis=1))
    assert (tolerance < MOST * size).all(), "single precision cannot compute this network"
    return exact, tolerance[:, None] * units


def assert_as_double_precision_says(estimator: Any, x: np.ndarray, *programs: np.ndarray) -> None:
    """Each of some programs' answers is as near to double precision as single precision can be."""
    exact, tolerance = exact_answers(estimator, x)
    for values in programs:
        last_digit = np.spacing(np.abs(values)).astype(np.float64)
        distance = np.abs(values.astype(np.float64) - exact)
        assert (distance <= tolerance + last_digit).all(), (distance / (tolerance + last_digit)).max()


def assert_labels_of_double_precision(estimator: Any, x: np.ndarray, *programs: np.ndarray) -> None:
    """Each of some programs' labels is the most probable class, or one that roundings cannot tell from it."""
    exact, tolerance = exact_answers(estimator, x)
    for labels in programs:
        codes = np.searchsorted(estimator.classes_, labels)
        np.testing.assert_array_equal(estimator.classes_[codes], labels)
        behind = exact.max(axis=1) - exact[np.arange(len(x)), codes]
        assert (behind <= 2 * tolerance[:, 0]).all(), behind.max()


def _round(module: Any, generator: torch.Generator) -> None:
    """Move what the library keeps in single precision; constants of inputs and outputs are double."""
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if name.startswith(("layers", "head")) and tensor.is_floating_point():
                noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
                tensor.mul_(1 + EPSILON * (2 * noise - 1))
