"""The shape of what ``Explanation.data`` returns, for pages and programs that draw it.

Everything is plain: dictionaries with text as keys, lists, text, numbers, booleans and None, as JSON has
them; what is not finite is None. ``version`` rises when a key changes its meaning or goes; new keys may
come without that. Numbers of columns, outputs, neurons and rows count from 0.

``format``, ``version``
    "opgrow.explanation" and 1.
``model``
    ``estimator`` (name of the class), ``task`` ("classification" or "regression"), ``topology``
    ("8-40-2"), ``parameters``, ``members`` (networks of an average), ``layers`` (how many), ``classes``
    (texts, or None).
``words``
    By the name of a view, the sentence that says what it is and is not.
``outputs``
    What is explained, one or several numbers made of the raw outputs of the network. Of each: ``name``,
    ``unit`` and ``mix``, with which it is ``sum(mix[k] * raw[k])``. Units: "log-odds" (two classes: one
    output, positive for the second class), "logit" (of each class, minus the mean of all classes),
    "margin" (two classes and squared error: second minus first), "share" (squared error: each class),
    "target" (regression).
``columns``
    The columns as the user has them. Of each: ``name``; ``kind``, "number", "date" or "levels";
    ``inputs``, the range ``[start, stop]`` of the inputs of the network that are made of it; and a grid
    of ``G`` values that it may take: ``grid`` (numbers in increasing order; days since 1970 or hours for
    "date"; None for levels and for gaps), ``labels`` (texts) and ``encoded`` (G lists of stop - start
    numbers: what the inputs become). A "number" or "date" whose gaps are marked has "<missing>" as its
    last value. ``counts`` are the rows of the background at each level, or in the bins between ``edges``
    (None for levels). ``whole`` says that all values of a number are whole; ``low`` and ``high`` are its
    range in the background.
``background``
    ``rows``, how many rows averages are taken over, and ``source``, "X" or "training sample".
``importance``
    The columns, the most important first: ``column``; ``size``, the mean size of its contributions over
    ``rows`` rows, summed over the outputs; ``by_output``.
``responses``
    Of the most important columns: ``column``; ``view``, "exact" or "averaged"; ``mean``, for each output
    the G means over the background; ``low`` and ``high``, between which the curves of four rows out of
    five are once they are shifted to the same level; ``interplay``, from 0 (the curve is the same for
    every row) to 1; ``probability``, for each class its mean probability at the G values, or None.
``pairs``
    The pairs of important columns that do most together: two ``columns``; ``view``, "averaged"; two lists
    of ``places`` on their grids; ``values``, for each output a list of means for each place of the first;
    ``joint``, what of these is not the sum of a curve of each column; ``size``, the standard deviation of
    that, summed over the outputs.
``neurons``
    The neurons that the head reads, the most important first, as many as were asked for. Of each:
    ``neuron`` (its number among all of ``neurons_in_all``), ``layer``, ``block``, ``member`` (all from
    1), ``operators`` ("gaussian/sum/tanh"), ``nodal``, ``pool``, ``activation`` with ``nodal_formula``
    and ``activation_formula``; ``weights`` (what one unit of the neuron adds to each output; None where
    the head has operators), ``size`` (the standard deviation of what it adds, summed over the outputs)
    and ``adds`` (for each output, 0.1, 0.5 and 0.9 quantiles of what it adds, relative to the mean);
    ``view``:

    - "exact": what the activation is applied to is ``bias`` plus all curves and maps. Each of ``curves``
      has a ``column`` and its G ``values``; each of ``maps`` has two ``columns``, two lists of ``places``
      on their grids, a list of ``values`` for each place of the first, and ``fixed``, which maps the
      number of a third column to the position on its grid where it stays, for products of three.
      ``left_out`` counts curves and maps that are too small to be listed.
    - "maximum": the activation is applied to ``bias`` plus the largest of the curves.
    - "scaled": the sum of bias and curves is divided by the length of all such sums of the block.
    - "averaged": the values of ``curves`` are means of what the neuron hands on; there are no maps.

    ``activated``: ``sum`` (values that the activation is applied to, increasing) and ``value`` (what the
    neuron hands on there), or None for neurons that are scaled together with others; ``counts`` and
    ``edges``: the histogram of these sums.
``rows``
    One row's way, for each row that was asked for: ``row``; ``values`` (texts, one per column) and
    ``encoded`` (the inputs of the network); ``raw``, ``outputs``, ``prediction`` (text),
    ``probabilities`` (or None); ``base`` and ``columns``: for each output the mean over the background,
    and a contribution for each column, which add up to ``outputs``; ``method``, "exact" or "sampled", and
    ``errors``, standard errors of sampled contributions (or None); ``neurons``: ``base``, ``values`` (for
    each output, one for each of all neurons, in the order of their numbers), ``limit`` (what the limits
    of a regression cut off; mostly 0), which add up to ``outputs``, and ``view``, "exact" or, where the
    head has operators, "paths"; ``curves``: for each of ``responses``, for each output, G values as that
    column alone moves; ``sentences``; ``changes``, the nearest ones that change the predicted class:
    ``columns``, ``labels``, ``encoded`` (for each column), ``prediction``, ``distance`` and ``sentence``.
``formula``
    ``text``, ``latex`` and ``digits`` of a small network; None where it is too long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["FORMAT", "VERSION", "WORDS", "Digits", "curve", "exactly", "plain"]

FORMAT, VERSION = "opgrow.explanation", 1
#: Significant digits of numbers: sums of hundreds of them are right to 1e-5.
_DIGITS = 9

#: What each view is and is not.
WORDS = {
    "exact": "Exact: these curves and maps add up, with a constant, to the number that the neuron's "
    "activation is applied to; for an output, they add up to the output itself.",
    "maximum": "Exact: the neuron's activation is applied to the largest of these curves, plus a constant.",
    "scaled": "Exact up to a factor: the sum of these curves is divided by the length of all "
    "sums of its block in the same row before the activation is applied.",
    "averaged": "Averaged: the mean over rows of the data in which this column alone is replaced. Single "
    "rows may behave otherwise, as far as the column acts together with others.",
    "local": "Local: this row alone, with all other columns left as they are. Other rows have other curves.",
    "columns": "Contributions of columns are Shapley values: what replacing average values by the row's "
    "own changes, averaged over all orders of the columns. They add up to the output exactly; "
    "how a joint effect is divided among columns is a convention.",
    "sampled": "The orders of the columns are a sample: contributions still add up exactly, and each has "
    "the standard error that is shown.",
    "neurons": "Exact: what a neuron adds is its value times its weights in the head, relative to the "
    "mean over the data.",
    "paths": "The head has operators of its own, so that neurons do not simply add up: contributions "
    "are averaged over orders of the neurons. They add up to the output exactly.",
}


@dataclass(frozen=True)
class Digits:
    """Numbers that have so many significant digits, and not the usual ones."""

    values: Any
    digits: int


def curve(values: Any) -> Digits:
    """Numbers that are drawn, and not added up."""
    return Digits(values, 5)


def exactly(values: Any) -> Digits:
    """Numbers that a network is to compute with."""
    return Digits(values, 17)


def plain(value: Any, digits: int = _DIGITS) -> Any:
    """Arrays, tuples and numbers of numpy as JSON has them; what is not finite becomes None."""
    if isinstance(value, Digits):
        return plain(value.values, value.digits)
    if isinstance(value, dict):
        return {str(key): plain(item, digits) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), digits)
    if isinstance(value, list | tuple):
        return [plain(item, digits) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item(), digits)
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value
