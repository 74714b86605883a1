"""Everything that the live part of a page knows: the network, its inputs, some rows, and how it grew."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...common.places import evenly
from ...growth.events import GrowthStep
from ...growth.model import GrownModel, criterion_of
from ...network import Network
from ...network.drawing.svg import shades
from .arrays import network_data
from .scripts import lacking
from .table import columns_data, values_of

__all__ = ["MOST_PARAMETERS", "Rows", "as_json", "growth_data", "live_data", "reason_against", "step_data"]

#: A network of more parameters makes a page of more than a megabyte, and moves slowly.
MOST_PARAMETERS = 120_000
_MOST_ROWS, _MOST_LETTERS = 1000, 200_000


@dataclass(frozen=True)
class Rows:
    """The rows of a report: X of the user, the ``matrix`` that the network takes, and what is true of them.

    All are None where no rows were given. ``truth`` are places of classes (n,), or numbers (n, targets).
    ``shown`` says whether the page may contain rows, of these or of those that the model keeps.
    """

    X: Any = None
    matrix: np.ndarray | None = None
    truth: np.ndarray | None = None
    shown: bool = True


def reason_against(estimator: GrownModel) -> str | None:
    """Why a network cannot compute in a page, in a sentence; None where it can."""
    network = estimator.network_
    if network.n_parameters() > MOST_PARAMETERS:
        return (
            f"The network has {network.n_parameters():,} parameters, and a page that can be sent takes "
            f"{MOST_PARAMETERS:,} at most: so it does not compute in this page."
        )
    without = lacking(network)
    if without:
        names = ", ".join(f"the {operator.kind} operator {operator.name!r}" for operator in without)
        return (
            f"The network does not compute in this page, because {names} "
            f"{'was' if len(without) == 1 else 'were'} registered without a form in JavaScript: "
            f"js=... of opgrow.register_{without[0].kind}."
        )
    return None


def live_data(
    estimator: GrownModel, rows: Rows, names: Sequence[str], outputs: Sequence[str]
) -> dict[str, Any]:
    """What the scripts read.

    Parameters
    ----------
    estimator : a fitted estimator
    rows : Rows
    names : of the network's inputs
    outputs : names of the classes or targets
    """
    network = estimator.network_
    values = values_of(estimator, rows.X, rows.matrix)
    n_rows = 0 if values is None or not rows.shown else values.n_rows
    most = _MOST_ROWS
    if values is not None and n_rows:
        few = range(min(n_rows, 50))
        most = int(min(most, _MOST_LETTERS * len(few) / len(as_json(values.rows(few)))))
    places = evenly(n_rows, max(most, 1))
    truth = None
    if rows.truth is not None and n_rows:
        truth = np.asarray(rows.truth)[places].tolist()
    is_classes = hasattr(estimator, "classes_")
    return {
        "network": network_data(network),
        "loss": estimator.loss_ if isinstance(estimator.loss_, str) else "cross_entropy",
        "classes": list(outputs) if is_classes else None,
        "outputs": list(outputs),
        "columns": columns_data(estimator, names, values),
        "inputs": list(names),
        "rows": {
            "values": [] if values is None else values.rows(places.tolist()),
            "truth": truth,
            "numbers": places.tolist(),
            "total": n_rows,
        },
        "parameters": network.n_parameters(),
        "layers": len(network.layers),
        "block_parameters": _block_parameters(network),
    }


def _block_parameters(network: Network) -> list[int]:
    """What the network has fewer parameters without each block, of which the head knows as many weights."""
    seen = [
        {start + i for at, start, stop in network.head_spans() if at == number for i in range(stop - start)}
        for number in range(len(network.layers))
    ]
    counts = []
    for number, layer in enumerate(network.layers):
        column = 0
        for block in layer:
            weights = sum(column + i in seen[number] for i in range(block.n_neurons)) * network.n_outputs
            counts.append(block.n_parameters() + weights)
            column += block.n_neurons
    return counts


def growth_data(estimator: GrownModel) -> dict[str, Any]:
    """How a network has grown, for its replay, and the colours that its operator sets have in drawings."""
    history = estimator.history_ or []
    criterion = criterion_of(estimator, hasattr(estimator, "classes_"))
    network = estimator.network_
    names = dict.fromkeys(str(block.operator_set) for layer in network.layers for block in layer)
    names |= dict.fromkeys(str(step.operator_set) for step in history if step.operator_set is not None)
    return {
        "steps": [step_data(step) for step in history],
        "criterion": {"brier": "Brier score"}.get(criterion, criterion),
        "colours": dict(zip(names, shades(len(names)), strict=True)),
    }


def step_data(step: GrowthStep) -> dict[str, Any]:
    """A step of growth for a replay."""
    return {
        "kind": step.kind,
        "member": step.member,
        "layer": step.layer,
        "block": step.block,
        "accepted": step.accepted,
        "score": step.score.value,
        "parameters": step.n_parameters,
        "operators": None if step.operator_set is None else str(step.operator_set),
        "neurons": step.n_neurons,
        "seconds": round(step.search_seconds + step.tuning_seconds, 3),
    }


def as_json(data: Any) -> str:
    """Data as text that is safe in a page: no markup, and nothing that JSON does not have."""
    text = json.dumps(_plain(data), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, str):
        return data
    return data.item() if isinstance(data, np.generic) else data
