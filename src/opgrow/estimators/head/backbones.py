"""Backbones: modules of torch and transformers of scikit-learn, which give features of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _num_samples, check_is_fitted

from ...common.extras import loaded_torch
from ...rows.preparation import as_array

__all__ = ["check_backbone", "is_module", "needs_fit", "opened"]


def is_module(backbone: Any) -> bool:
    """Whether a backbone is a module of torch; whoever has one has imported torch."""
    torch = loaded_torch()
    return torch is not None and isinstance(backbone, torch.nn.Module)


def check_backbone(backbone: Any) -> None:
    """Refuse what gives no features."""
    transforms = hasattr(backbone, "transform") and not isinstance(backbone, type)
    if not is_module(backbone) and not transforms:
        raise ValueError(
            "backbone must be a torch.nn.Module or a transformer of scikit-learn with the method transform, "
            f"got {backbone!r}"
        )


def needs_fit(backbone: Any) -> bool:
    """Whether a backbone is a transformer that has not been fitted."""
    if is_module(backbone) or not hasattr(backbone, "fit"):
        return False
    try:
        check_is_fitted(backbone)
    except NotFittedError:
        return True
    return False


@contextmanager
def opened(backbone: Any) -> Iterator[Callable[[Any], np.ndarray]]:
    """A function from a batch of rows to their features (n, p), while the backbone is frozen."""
    if not is_module(backbone):
        yield lambda rows: _matrix(backbone.transform(_no_tensor(rows)), rows)
        return
    from .modules import evaluating, module_features

    with evaluating(backbone):
        yield lambda rows: _matrix(module_features(backbone, rows), rows)


def _no_tensor(rows: Any) -> Any:
    """A tensor as an array; everything else as a transformer may want it."""
    return as_array(rows) if hasattr(rows, "detach") else rows


def _matrix(features: Any, rows: Any) -> np.ndarray:
    """Features as a matrix of finite numbers, one row for each row."""
    array = features.toarray() if sparse.issparse(features) else np.asarray(features)
    n_rows = _num_samples(rows)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"the features of the backbone have to be numbers, and are {array.dtype}")
    if not array.ndim or len(array) != n_rows:
        raise ValueError(f"the backbone returns features of shape {array.shape} for {n_rows} rows")
    array = array.reshape(n_rows, -1)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype.itemsize <= 2 else np.float64)
    if not np.isfinite(array).all():
        raise ValueError("the features of the backbone have NaN or infinity")
    return array
