"""An explanation as plain data; `shape` says what the keys mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...common.places import evenly
from .columns import Axis
from .context import Context
from .formula import short_formula
from .pairs import Pair
from .portraits import Map, Portrait
from .responses import Response
from .shape import FORMAT, VERSION, WORDS, curve, exactly, plain
from .views import Views

__all__ = ["explanation_data"]

#: Pairs of columns, and places of each column on a map of a neuron.
_PAIRS, _MAP = 3, 17
#: What the formulas of operators are written with.
_SYMBOLS = {"y": "y", "w": "w", "minus_w": "-w", "clip": "", "end": ""}


def explanation_data(
    explanation: Views,
    context: Context,
    source: str,
    rows: Sequence[int],
    n_columns: int,
    n_neurons: int,
) -> dict[str, Any]:
    """What `Explanation.data` returns."""
    subject, estimator = context.subject, explanation.estimator
    order = explanation.order
    shown = order[:n_columns]
    return plain(
        {
            "format": FORMAT,
            "version": VERSION,
            "model": {
                "estimator": type(estimator).__name__,
                "task": "regression" if subject.classes is None else "classification",
                "topology": subject.network.topology(),
                "parameters": subject.network.n_parameters(),
                "members": len(subject.network.members or (1,)),
                "layers": len(subject.network.layers),
                "classes": subject.classes,
            },
            "words": WORDS,
            "outputs": [{"name": q.name, "unit": q.unit, "mix": q.mix} for q in subject.quantities],
            "columns": [_column(axis) for axis in context.axes],
            "background": {"rows": len(context.background), "source": source},
            "importance": [
                {
                    "column": j,
                    "size": explanation.importance[j].sum(),
                    "by_output": explanation.importance[j],
                    "rows": len(explanation.importance_rows),
                }
                for j in order
            ],
            "responses": [_response(explanation.response(j)) for j in shown],
            "pairs": [_pair(one) for one in explanation.pairs(_PAIRS)],
            "neurons_in_all": len(context.neurons),
            "neurons": [_neuron(one) for one in explanation.neurons(n_neurons)],
            "rows": [explanation.row(number).data(shown) for number in rows],
            "formula": short_formula(estimator),
        }
    )


def _column(axis: Axis) -> dict[str, Any]:
    return {
        "name": axis.name,
        "kind": axis.kind,
        "inputs": [axis.start, axis.stop],
        "grid": exactly(axis.grid),
        "labels": axis.labels,
        "encoded": exactly(axis.encoded),
        "counts": axis.counts,
        "edges": axis.edges,
        "whole": axis.whole,
        "low": axis.low,
        "high": axis.high,
    }


def _response(one: Response) -> dict[str, Any]:
    return {
        "column": one.column,
        "view": one.view,
        "mean": curve(one.mean.T),
        "low": curve(one.low.T),
        "high": curve(one.high.T),
        "interplay": one.interplay,
        "probability": None if one.probability is None else curve(one.probability.T),
    }


def _pair(one: Pair) -> dict[str, Any]:
    return {
        "columns": one.columns,
        "view": "averaged",
        "places": one.places,
        "values": curve(np.moveaxis(one.values, 2, 0)),
        "joint": curve(np.moveaxis(one.joint, 2, 0)),
        "size": one.size,
    }


def _neuron(one: Portrait) -> dict[str, Any]:
    neuron, operators = one.neuron, one.neuron.operators
    nodal, _, activation = operators.operators
    activated = None
    if one.sums is not None and one.handed_on is not None:
        activated = {"sum": curve(one.sums), "value": curve(one.handed_on)}
    return {
        "neuron": neuron.number,
        "layer": neuron.layer,
        "block": neuron.block,
        "member": neuron.member,
        "operators": str(operators),
        "nodal": operators.nodal,
        "pool": operators.pool,
        "activation": operators.activation,
        "nodal_formula": None if nodal.text is None else nodal.text.format(**_SYMBOLS),
        "activation_formula": None if activation.text is None else activation.text.format(x="x"),
        "weights": one.weights,
        "size": one.size,
        "adds": one.adds,
        "view": neuron.view,
        "bias": neuron.bias,
        "curves": [{"column": c.column, "values": curve(c.values), "size": c.size} for c in one.curves],
        "maps": [_map(one) for one in one.maps],
        "left_out": one.left_out,
        "activated": activated,
        "counts": one.counts,
        "edges": one.edges,
    }


def _map(one: Map) -> dict[str, Any]:
    """Of a fine grid, some places."""
    places = [evenly(n, _MAP) for n in one.values.shape]
    return {
        "columns": one.columns,
        "places": places,
        "values": curve(one.values[np.ix_(*places)]),
        "size": one.size,
        "fixed": one.fixed,
    }
