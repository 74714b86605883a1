"""How much memory a fit needs, from the sizes of its data and its settings, before it starts.

A fit holds the targets and one standardised copy of the inputs for each network that grows at the time, the
features of the layer that is growing, and what the work on them takes: sums over chunks of rows, whose size
is bounded, and arrays with a row for every sample, whose size is not. Each function below adds up the arrays
that one family of methods has at the moment when it has most of them, for a network that grows as far as it
may. One that ends earlier takes less. All of it is for the host; a GPU's memory is filled as far as it goes,
and rows that do not fit stream through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from ..common.reservations import TOTAL_BYTES
from ..growth.devices import choose_device
from ..growth.loop import GrowthSettings, Method
from ..growth.methods.bls import BroadSettings
from ..growth.methods.hemlgop import BlockSettings
from ..growth.methods.pln import PLNSettings
from ..growth.methods.pop import POPMethod, POPSettings
from ..growth.search import SHORTLIST
from ..rows.preparation import _CHUNK_ELEMENTS
from ..rows.problem import Problem
from ..rows.search_sums import CACHE_BYTES, chunks
from .base import NetworkSize
from .fit_data import MIN_VALIDATION_ROWS
from .parameters import check_common

__all__ = ["Plan", "Sizes", "growth_bytes", "n_parameters", "plan_fit"]

SINGLE, DOUBLE = 4, 8


@dataclass(frozen=True)
class Sizes:
    """Rows to train on and to validate with (0: none), inputs, outputs, and threads within one network."""

    n_rows: int
    n_held: int
    n_inputs: int
    n_outputs: int
    n_threads: int

    @property
    def n_all(self) -> int:
        return self.n_rows + self.n_held

    @property
    def n_scored(self) -> int:
        return self.n_held or self.n_rows


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
    estimator: Any,
    n_rows: int,
    n_features: int,
    n_outputs: int,
    classification: bool,
    n_held: int | None = None,
) -> Plan:
    """What ``estimator.fit`` would do with data of these sizes; ``n_held`` rows are given for validation."""
    check_common(estimator)
    settings = replace(estimator._settings(classification), max_parameters=estimator.max_parameters)
    n_networks = estimator._n_networks(n_rows)
    train, held = _division(estimator.validation_fraction, n_rows, n_networks, n_held)
    device = choose_device(estimator.device, n_rows * n_features)
    side_by_side = min(n_networks, settings.n_threads) if device == "cpu" else 1
    within = settings.n_threads if n_networks == 1 else 1
    sizes = Sizes(train, held, n_features, n_outputs, within)
    member = estimator._complete(estimator._member(settings, 0, n_networks), _shapes(sizes))
    each = growth_bytes(member, estimator._method, sizes)
    # Networks side by side share what searches may keep.
    kept = search_cache(member, sizes)
    growth = side_by_side * each - max(0, side_by_side * kept - TOTAL_BYTES)
    largest = (
        n_networks * (n_parameters(member, estimator._method, n_features, n_outputs) - n_outputs) + n_outputs
    )
    student = estimator._student(settings, NetworkSize(n_features, n_outputs, largest))
    if student is not None:
        largest = n_parameters(student, estimator._method, n_features, n_outputs)
    if settings.max_parameters is not None:
        largest = min(largest, settings.max_parameters)
    if device != "cpu":
        growth = 0
    codes_and_weights = n_rows * DOUBLE * (3 + n_networks)  # weights, codes, and rows of each division
    columns = max(n_features, n_outputs)
    converted = (
        3 * DOUBLE * min(n_rows * columns, max(columns, _CHUNK_ELEMENTS))
    )  # a chunk in double precision
    targets = n_rows * n_outputs * (SINGLE if classification else 2 * DOUBLE)
    return Plan(
        train,
        held,
        n_features,
        n_outputs,
        n_networks,
        side_by_side,
        student is not None,
        largest,
        str(device),
        n_rows * n_features * SINGLE + targets,
        growth + codes_and_weights + converted,
    )


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


# --- bytes of one network ---


def _problem(sizes: Sizes) -> int:
    """The standardised inputs and targets of a network, and the weights."""
    return SINGLE * sizes.n_all * (sizes.n_inputs + sizes.n_outputs + 1)


def _sums(sizes: Sizes, columns: int) -> int:
    """Sums over chunks of rows in double precision: a chunk and a product in each thread, and the results."""
    rows = chunks(sizes.n_rows, 2 * columns)[0].stop
    chunk = DOUBLE * rows * (columns + sizes.n_outputs)
    return sizes.n_threads * 2 * chunk + (sizes.n_threads + 3) * DOUBLE * columns**2


def _scored(sizes: Sizes, width: int, moments_of: int) -> int:
    """A pass with the whole state: statistics of new features over the training rows, outputs of the scored.

    The statistics need the features in single and three arrays in double precision; the outputs the features
    below the head twice, as they are joined, and for the score the outputs and four arrays in double
    precision.
    """
    statistics = sizes.n_rows * moments_of * (SINGLE + 3 * DOUBLE)
    outputs = sizes.n_scored * (2 * SINGLE * width + sizes.n_outputs * (SINGLE + 4 * DOUBLE))
    return max(statistics, outputs)


@singledispatch
def growth_bytes(settings: GrowthSettings, method: Method, sizes: Sizes) -> int:
    """Most bytes that the growth of one network has at a time."""
    raise NotImplementedError(f"nothing is known of the memory of {type(settings).__name__}")


@growth_bytes.register
def _(settings: BlockSettings, method: Method, sizes: Sizes) -> int:
    width, first, later = _block_sizes(settings)
    # Features are joined with those of a new block, so that they are there twice; of a layer below, once.
    features = SINGLE * sizes.n_all * width * (2 + (settings.max_layers > 1))
    searches = (_search(settings, sizes, 0, first), _search(settings, sizes, width - later, later))
    return _problem(sizes) + features + max(*searches, _scored(sizes, width, first))


def search_cache(settings: Any, sizes: Sizes) -> int:
    """Bytes of candidates' features that the search of a network may keep; 0 where they are too many."""
    if not isinstance(settings, BlockSettings):
        return 0
    of_blocks = (SINGLE * _n_candidates(settings) * m * sizes.n_rows for m in _block_sizes(settings)[1:])
    return max((size for size in of_blocks if size <= CACHE_BYTES), default=0)


def _block_sizes(settings: BlockSettings) -> tuple[int, int, int]:
    """Neurons of a layer, of its first block and of a later one."""
    width = max(settings.max_neurons, 1)
    first = min(settings.n_min, width)
    return width, first, min(settings.n_step, max(width - first, 1))


def _n_candidates(settings: BlockSettings) -> int:
    return len(settings.sets) * settings.search.n_draws * len(settings.search.weight_ranges)


def _search(settings: BlockSettings, sizes: Sizes, accepted: int, m: int) -> int:
    """A search for ``m`` neurons beside ``accepted`` ones: its cache, its chunks, and solved candidates."""
    k, outputs, ridges = _n_candidates(settings), sizes.n_outputs, len(settings.search.ridges)
    rows = chunks(sizes.n_rows, k * m)[0].stop
    cached = SINGLE * k * m * sizes.n_rows
    # In each thread: raw features, their scaled copy, and the four pools that they are made from.
    gathering = SINGLE * m * rows * (2 * k + 4)
    # In each thread: features of the shortlist, standardised, without what is known, and uncorrelated.
    scoring = SINGLE * 5 * min(k, SHORTLIST + SHORTLIST // 8) * m * rows
    # Sums and their standardised copies, and for each ridge the projection, the factor and the two heads.
    products = accepted * m + m * m + m * outputs
    solved = DOUBLE * k * ((3 + 2 * ridges) * products + (ridges + 1) * accepted * outputs)
    work = sizes.n_threads * max(gathering, scoring)
    return (cached if cached <= CACHE_BYTES else 0) + work + solved


@growth_bytes.register
def _(settings: POPSettings, method: POPMethod, sizes: Sizes) -> int:
    most, before, below = 0, 0, sizes.n_inputs
    for number, width in enumerate(settings.widths, 1):
        # Inputs of the layer, of which the first one's are those of the problem.
        inputs = SINGLE * sizes.n_all * (below if number > 1 else 0)
        seen = 0
        if method.memory == "output":
            seen = _n_directions(settings, below, sizes)
            most = max(most, inputs + _projecting(below, seen, sizes))
        elif method.memory == "hidden" and number > 1:
            memory = _n_directions(settings, before, sizes)
            most = max(most, inputs + _projecting(before, memory, sizes))
            below += memory
            inputs = SINGLE * sizes.n_all * (below + (before if number > 2 else 0))
        # Features, and a memory that the head sees, are there twice while they are joined.
        features = 2 * SINGLE * sizes.n_all * (width + seen)
        # In each thread the order of the rows and the outputs; and the parameters of all candidates.
        training = sizes.n_threads * (DOUBLE * sizes.n_rows + SINGLE * sizes.n_scored * sizes.n_outputs)
        size = (below + 3) * width + (width + seen + 1) * sizes.n_outputs
        training += SINGLE * size * (len(settings.sets) + 6 * sizes.n_threads)
        most = max(most, inputs + features + max(training, _scored(sizes, width + seen, width)))
        before, below = below, width + seen
    return _problem(sizes) + most


def _n_directions(settings: POPSettings, n_inputs: int, sizes: Sizes) -> int:
    """Directions of a memory: PCA keeps the fewest with nearly all of the energy, at worst all of them."""
    return n_inputs if settings.memory == "pca" else min(n_inputs, sizes.n_outputs)


def _projecting(n_inputs: int, n_directions: int, sizes: Sizes) -> int:
    """A projection takes a standardised copy of its inputs; then its products, in double precision thrice."""
    scatter = SINGLE * sizes.n_rows * n_inputs + _sums(sizes, n_inputs)
    return max(scatter, sizes.n_rows * n_directions * (SINGLE + 3 * DOUBLE))


def _pln_width(settings: PLNSettings, n_outputs: int) -> int:
    structured = 2 * n_outputs
    return settings.max_neurons if settings.max_neurons > structured else structured + settings.n_step


@growth_bytes.register
def _(settings: PLNSettings, method: Method, sizes: Sizes) -> int:
    width, structured = _pln_width(settings, sizes.n_outputs), 2 * sizes.n_outputs
    below = width if settings.max_layers > 1 else 0
    # Inputs of the layer, what is carried on, and twice the random neurons and the features: those that are
    # kept and those that are tried.
    columns = below + structured + 2 * (width - structured) + 2 * width
    first = _sums(sizes, min(sizes.n_inputs, sizes.n_rows))
    return _problem(sizes) + max(first, SINGLE * sizes.n_all * columns + _sums(sizes, width))


@growth_bytes.register
def _(settings: BroadSettings, method: Method, sizes: Sizes) -> int:
    width = settings.max_neurons
    # All nodes of before and with the new ones, and the feature nodes alone, joined.
    last = SINGLE * sizes.n_all * 5 * width + _sums(sizes, 2 * width)
    # The sparse autoencoders reproduce the inputs beside a column of ones.
    first = SINGLE * sizes.n_rows * (sizes.n_inputs + 1) + _sums(sizes, sizes.n_inputs + settings.window_size)
    return _problem(sizes) + max(first, last)


# --- parameters of one network ---


@singledispatch
def n_parameters(settings: GrowthSettings, method: Method, n_inputs: int, n_outputs: int) -> int:
    """Parameters of the largest network that a method may grow."""
    raise NotImplementedError(f"nothing is known of the size of {type(settings).__name__}")


@n_parameters.register
def _(settings: BlockSettings, method: Method, n_inputs: int, n_outputs: int) -> int:
    return _stacked([settings.max_neurons] * settings.max_layers, n_inputs, n_outputs)


def _stacked(widths: Sequence[int], n_inputs: int, n_outputs: int) -> int:
    """Layers of neurons with a bias and a batch norm below a head."""
    below, total = n_inputs, 0
    for width in widths:
        total += width * (below + 3)
        below = width
    return total + (below + 1) * n_outputs


@n_parameters.register
def _(settings: POPSettings, method: POPMethod, n_inputs: int, n_outputs: int) -> int:
    below, total = n_inputs, 0
    for number, width in enumerate(settings.widths, 1):
        memory = 0 if method.memory is None else below if settings.memory == "pca" else n_outputs - 1
        if method.memory == "hidden" and number == len(settings.widths):
            memory = 0  # which the next layer would see
        total += (width + memory) * (below + 3)
        below = width + memory
    return total + (below + 1) * n_outputs


@n_parameters.register
def _(settings: PLNSettings, method: Method, n_inputs: int, n_outputs: int) -> int:
    width = _pln_width(settings, n_outputs)
    hidden = n_inputs * width + (settings.max_layers - 1) * width**2
    return hidden + (width + 1) * n_outputs


@n_parameters.register
def _(settings: BroadSettings, method: Method, n_inputs: int, n_outputs: int) -> int:
    width, enhancing = min(settings.n_min, settings.max_neurons), 0
    size = width
    while size > 0:
        enhancing += size * (width + 1)
        size = min(settings.n_step, settings.max_neurons - width)
        width += size
    return width * (n_inputs + 1) + enhancing + (2 * width + 1) * n_outputs
