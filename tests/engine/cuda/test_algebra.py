"""A device's operations on matrices against the host's, both on the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from opgrow.engine.cuda.algebra import DeviceAlgebra
from opgrow.engine.dispatch import HostAlgebra, algebra_of
from opgrow.engine.search import SolvedCandidates

HOST, DEVICE = HostAlgebra(), DeviceAlgebra()


def normal(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape)


def both(name, *arguments):
    """What host and device make of the same arguments, as lists of arrays."""
    tensors = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
    results = getattr(HOST, name)(*arguments), getattr(DEVICE, name)(*tensors)
    return [[np.asarray(part) for part in (r if isinstance(r, tuple) else (r,))] for r in results]


def test_arrays_are_the_engines_and_tensors_torchs():
    assert isinstance(algebra_of(np.zeros(1)), HostAlgebra)
    assert isinstance(algebra_of(torch.zeros(1)), DeviceAlgebra)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("product", (normal(4, 3, 5), normal(5, 2))),
        ("product", (normal(3, 4), normal(2, 4, 3).swapaxes(0, 1)[:, 0])),
        ("whiten", (normal(3, 4, 9) @ normal(3, 4, 9).swapaxes(1, 2), 0.1)),
        ("whiten", (np.stack([np.eye(3), -np.eye(3), np.full((3, 3), np.nan)]), 0.1)),
        ("whiten", (np.zeros((2, 0, 0)), 0.1)),
        ("sums", (normal(3, 4, 5),)),
        ("squares", (normal(3, 4, 5),)),
        ("finite", (np.array([1.0, np.nan, np.inf]),)),
        ("where", (np.array([True, False]), np.array([1.0, 2.0]), 3.0)),
        ("single", (normal(3, 4),)),
        ("double", (normal(3, 4).astype(np.float32),)),
    ],
)
def test_host_and_device_agree(name, arguments):
    host, device = both(name, *arguments)
    for one, other in zip(host, device, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loo", [True, False])
@pytest.mark.parametrize("p", [0, 4])
def test_host_and_device_score_candidates_alike(p, loo):
    k, m, n, c = 3, 5, 70, 2
    rng = np.random.default_rng(0)
    shapes = (k, m), (k, m), (p, k, m), (k, m, m), (k, m, c), (p,), (c,), (p, c)
    arrays = [0.2 * rng.normal(size=shape).astype(np.float32) for shape in shapes]
    arrays[3] = np.tril(arrays[3])
    solved = SolvedCandidates(*arrays, 0.1 * np.tril(rng.normal(size=(p, p))), float(n))
    tensors = {name: torch.from_numpy(a) for name, a in vars(solved).items() if isinstance(a, np.ndarray)}
    rows = [rng.normal(size=shape).astype(np.float32) for shape in ((k, m, n), (n, p), (n, c))]
    rows.append(rng.uniform(0.5, 1.5, n).astype(np.float32))
    expected = HOST.scores(solved, loo, *rows)
    actual = DEVICE.scores(replace(solved, **tensors), loo, *(torch.from_numpy(a) for a in rows))
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4)
