"""What a fit would do and how much memory it would take, from the sizes of its data, before it starts.

A fit holds the data once more in single precision, and for each network that grows at the time what
`opgrow.growth.footprints` says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..common.reservations import TOTAL_BYTES
from ..growth.devices import choose_device
from ..growth.footprints import DOUBLE, SINGLE, Footprint, Sizes
from ..growth.settings import GrowthSettings
from ..rows.preparation import _CHUNK_ELEMENTS
from ..rows.problem import Problem
from .base import GrowingEstimator, NetworkSize
from .fit.data import MIN_VALIDATION_ROWS
from .parameters import check_common

__all__ = ["Plan", "plan_fit"]


@dataclass(frozen=True)
class Plan:
    """What a fit would do.

    Attributes
    ----------
    n_rows, n_held : rows that the first network is trained on, and validated with
    n_inputs, n_outputs : columns of the inputs, and classes or targets
    n_networks, side_by_side : how many networks are grown, and how many of them at the same time
    distills : whether a further network may learn from them and take their place
    n_parameters : of the largest network that could come of it
    device : where it grows
    data : bytes of the inputs in single precision and of the targets
    growth : bytes that growth takes beside these, at its peak
    """

    n_rows: int
    n_held: int
    n_inputs: int
    n_outputs: int
    n_networks: int
    side_by_side: int
    distills: bool
    n_parameters: int
    device: str
    data: int
    growth: int


def plan_fit(
    estimator: GrowingEstimator[Any],
    n_rows: int,
    n_features: int,
    n_outputs: int,
    n_held: int | None = None,
) -> Plan:
    """What ``estimator.fit`` would do with data of these sizes; an eval_set has ``n_held`` rows."""
    check_common(estimator)
    settings: GrowthSettings = estimator._settings(is_classifier(estimator))
    settings = replace(settings, max_parameters=estimator.max_parameters)
    n_networks = estimator._n_networks(n_rows)
    division = _division(estimator.validation_fraction, n_rows, n_networks, n_held)
    side_by_side = min(n_networks, settings.n_threads)
    n_threads = -(-settings.n_threads // side_by_side)
    sizes = Sizes(*division, n_features, n_outputs, n_threads)
    device = choose_device(estimator.device, n_rows * n_features)
    first = estimator._member(settings, 0, n_networks, sizes.n_rows)[-1]
    member = estimator._complete(first, _shapes(sizes))
    footprint = _footprint(estimator, member)
    of_each = footprint.n_parameters(n_features, n_outputs)
    largest = n_networks * (of_each - n_outputs) + n_outputs
    students = estimator._students(settings, NetworkSize(n_features, n_outputs, largest))
    if students:
        largest = _footprint(estimator, students[-1][-1]).n_parameters(n_features, n_outputs)
    if settings.max_parameters is not None:
        largest = min(largest, settings.max_parameters)
    target_bytes = SINGLE if is_classifier(estimator) else 2 * DOUBLE
    side_by_side = side_by_side if device == "cpu" else 1
    growth = _growth_bytes(footprint, sizes, side_by_side) if device == "cpu" else 0
    return Plan(
        n_rows=sizes.n_rows,
        n_held=sizes.n_held,
        n_inputs=sizes.n_inputs,
        n_outputs=sizes.n_outputs,
        n_networks=n_networks,
        side_by_side=side_by_side,
        distills=bool(students),
        n_parameters=largest,
        device=device,
        data=n_rows * (n_features * SINGLE + n_outputs * target_bytes),
        growth=growth + _preparation_bytes(n_rows, max(n_features, n_outputs), n_networks),
    )


def _footprint(estimator: GrowingEstimator[Any], settings: GrowthSettings) -> Footprint[Any, Any]:
    return estimator._method.growth.footprint(estimator._method, settings)


def _growth_bytes(footprint: Footprint[Any, Any], sizes: Sizes, side_by_side: int) -> int:
    """Bytes of networks that grow side by side, which share what searches may cache."""
    too_many = side_by_side * footprint.cached_bytes(sizes) - TOTAL_BYTES
    return side_by_side * footprint.n_bytes(sizes) - max(0, too_many)


def _preparation_bytes(n_rows: int, n_columns: int, n_networks: int) -> int:
    """Weights, codes and the rows of each division; and a chunk of rows in double precision."""
    chunk = min(n_rows * n_columns, max(n_columns, _CHUNK_ELEMENTS))
    return n_rows * DOUBLE * (3 + n_networks) + 3 * DOUBLE * chunk


def _division(fraction: float, n_rows: int, n_networks: int, n_held: int | None) -> tuple[int, int]:
    """Rows of the first network for training and for validation."""
    if n_held is not None:
        return n_rows, n_held
    if fraction == 0:
        return n_rows, 0
    held = int(fraction * n_rows + 0.5) if n_networks == 1 else -(-n_rows // max(2, round(1 / fraction)))
    return (n_rows - held, held) if held >= MIN_VALIDATION_ROWS else (n_rows, 0)


def _shapes(sizes: Sizes) -> Problem:
    """A problem of these sizes that takes no memory."""
    zero = np.zeros((), np.float32)
    rows, columns = sizes.n_rows, (sizes.n_inputs, sizes.n_outputs)
    x, target = (np.broadcast_to(zero, (rows, n)) for n in columns)
    return Problem(x, target, np.broadcast_to(zero, (rows,)))
