"""Shapley values of groups of inputs: what each contributes to the outputs of any function, exactly in sum.

The value of a set of groups is the mean of the function over background rows whose inputs in these groups are
replaced by those of the row that is explained (Lundberg and Lee, 2017; "interventional"). A contribution is
what a group changes when it is replaced, averaged over all orders of the groups. On the way from a background
row to the explained row, one group after the other, differences add up to the difference of the two outputs,
in any order and with any sample of orders. So contributions add up to the output minus the mean of the
background whatever the number of samples; that only decides how precisely the sum is divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

__all__ = ["Attribution", "attribute"]

#: Rows (n, inputs) to outputs (n, outputs), both in double precision.
Function = Callable[[np.ndarray], np.ndarray]
#: Numbers in a chunk of rows that a function computes at once.
_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Attribution:
    """Contributions of groups to the outputs for one row.

    Attributes
    ----------
    base : array (outputs,), the mean over the background
    values : array (groups, outputs), which add up to the output minus the base
    errors : standard errors of sampled values (groups, outputs), or None where all orders were taken
    """

    base: np.ndarray
    values: np.ndarray
    errors: np.ndarray | None = None

    @property
    def method(self) -> str:
        return "exact" if self.errors is None else "sampled"


def attribute(
    function: Function,
    row: np.ndarray,
    background: np.ndarray,
    groups: Sequence[slice],
    budget: int,
    rng: np.random.Generator,
) -> Attribution:
    """Contributions of groups of inputs.

    Parameters
    ----------
    function : rows to outputs
    row : array (inputs,)
    background : array (n, inputs)
    groups : slices of the inputs; inputs in none of them are the row's own
    budget : rows that the function may compute, about; at least two orders are taken for each background row
    rng : for the sample of orders
    """
    own = np.ones(len(row), bool)
    for group in groups:
        own[group] = False
    background = np.where(own, row, background)
    if 2 ** len(groups) * len(background) <= budget:
        return _all_orders(function, row, background, groups)
    times = max(1, budget // (2 * len(background) * (len(groups) + 1)))
    return _sampled_orders(function, row, background, groups, times, rng)


def _all_orders(
    function: Function, row: np.ndarray, background: np.ndarray, groups: Sequence[slice]
) -> Attribution:
    """By the values of all sets of groups."""
    d, n = len(groups), len(background)
    part = max(1, _CHUNK // (n * len(row)))
    means = []
    for sets in _chunks(np.arange(2**d), part):
        rows = np.repeat(background[None], len(sets), axis=0)
        for number, group in enumerate(groups):
            rows[(sets >> number & 1).astype(bool), :, group] = row[group]
        means.append(function(rows.reshape(-1, len(row))).reshape(len(sets), n, -1).mean(axis=1))
    value = np.concatenate(means)
    sets = np.arange(2**d)
    size = np.array([int(one).bit_count() for one in sets])
    contributions = np.empty((d, value.shape[1]))
    for number in range(d):
        without = sets[(sets >> number & 1) == 0]
        weight = np.array([1 / (d * comb(d - 1, k)) for k in size[without]])
        contributions[number] = weight @ (value[without | 1 << number] - value[without])
    return Attribution(value[0], contributions)


def _sampled_orders(
    function: Function,
    row: np.ndarray,
    background: np.ndarray,
    groups: Sequence[slice],
    times: int,
    rng: np.random.Generator,
) -> Attribution:
    """By orders at random, each of them forwards and backwards, ``times`` from each background row."""
    d, part = len(groups), max(1, _CHUNK // (2 * (len(groups) + 1) * len(row)))
    starts = np.tile(np.arange(len(background)), times)
    gains, bases = [], []
    for some in _chunks(starts, part):
        order = np.argsort(rng.random((len(some), d)), axis=1)
        both = np.stack([order, order[:, ::-1]], axis=1).reshape(-1, d)  # (paths, groups)
        place = np.argsort(both, axis=1)
        rows = np.repeat(np.repeat(background[some], 2, axis=0)[:, None], d + 1, axis=1)
        for number, group in enumerate(groups):
            replaced = np.arange(d + 1) > place[:, number, None]
            rows[:, :, group] = np.where(replaced[..., None], row[group], rows[:, :, group])
        outputs = function(rows.reshape(-1, len(row))).reshape(len(both), d + 1, -1)
        steps = np.take_along_axis(np.diff(outputs, axis=1), place[..., None], axis=1)
        gains.append(steps.reshape(len(some), 2, d, -1).mean(axis=1))
        bases.append(outputs[::2, 0])
    gain = np.concatenate(gains)
    base = np.concatenate(bases).mean(axis=0)
    return Attribution(
        base, gain.mean(axis=0), _errors(gain.reshape(times, len(background), *gain.shape[1:]))
    )


def _errors(gain: np.ndarray) -> np.ndarray:
    """Standard errors of the means of gains (times, background rows, groups, outputs).

    The background is what it is: only the orders are a sample. If there is one of them for each row, how much
    orders differ is not told from how much rows do, and errors are too large rather than too small.
    """
    times, n = gain.shape[:2]
    if times > 1:
        return np.sqrt(gain.var(axis=0, ddof=1).mean(axis=0) / (n * times))
    return gain[0].std(axis=0, ddof=min(1, n - 1)) / np.sqrt(n)


def _chunks(values: np.ndarray, size: int) -> Iterator[np.ndarray]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
