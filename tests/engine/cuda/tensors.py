"""Tensors for the tests of kernels, and how far two of them are apart."""

from __future__ import annotations

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def uniform(*shape, seed=0):
    """Values between -1 and 1."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator) * 2 - 1).to(DEVICE)


def relative_error(values, exact):
    """The largest difference from values in double precision, relative to the largest of these."""
    assert values.shape == exact.shape
    scale = float(exact.abs().max())
    return float((values.double() - exact).abs().max()) / (scale or 1.0)
