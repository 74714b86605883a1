"""What a page draws of an explanation: its importance, responses and neurons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...growth.model import GrownModel
from ...rows.tables import Table
from ..explanation.explanation import Explanation, explain, explain_rows
from .table import Values, values_of

__all__ = ["explained"]

#: Columns times parameters: above, an explanation takes longer than anybody waits for a report.
_MOST_WORK = 3_000_000
_COLUMNS, _NEURONS, _MOST_OUTPUTS = 16, 9, 12
#: Of each column: what is drawn.
_DRAWN = ("name", "kind", "grid", "labels")
_PARTS = ("words", "background", "neurons_in_all", "formula")


def explained(
    estimator: GrownModel, X: Any, names: Sequence[str], target: str | None
) -> dict[str, Any] | None:
    """An explanation as plain data; None where it would take long, or there are no rows to explain by.

    ``names`` are those of the network's inputs, for models without a table.
    """
    n_columns = estimator.network_.n_inputs if estimator.table_ is None else estimator.table_.n_features_in_
    outputs = max(1, estimator.network_.n_outputs / _MOST_OUTPUTS)
    if n_columns * estimator.network_.n_parameters() * outputs > _MOST_WORK:
        return None
    explanation = _by_own_rows(estimator, target) if X is None else explain(estimator, X, target=target)
    if explanation is None:
        return None
    data = explanation.data((), _COLUMNS, _NEURONS)
    columns = [{key: column[key] for key in _DRAWN} for column in data["columns"]]
    if estimator.table_ is None:
        for column, name in zip(columns, names, strict=True):
            column["name"] = str(name)
    drawn = _drawn(data)
    columns = [column if j in drawn else {"name": column["name"]} for j, column in enumerate(columns)]
    several = data["model"]["members"] > 1
    n_outputs = len(data["outputs"])
    shown = {
        "outputs": [{"name": output["name"]} for output in data["outputs"]],
        "importance": [{key: one[key] for key in ("column", "size", "rows")} for one in data["importance"]],
        "responses": [_means(response, n_outputs) for response in data["responses"]],
        "pairs": [_pair(pair) for pair in data["pairs"]],
        "neurons": [_neuron(neuron) for neuron in data["neurons"]],
    }
    parts = {key: data[key] for key in _PARTS}
    result: dict[str, Any] = _rounded({"columns": columns, "several": several} | parts | shown)
    return result


def _pair(pair: dict[str, Any]) -> dict[str, Any]:
    """What a pair of columns does together, of the output that this changes most."""
    joint = [np.array(values, float) for values in pair["joint"]]
    output = int(np.argmax([np.nan_to_num(np.abs(values)).max(initial=0.0) for values in joint]))
    return {
        "columns": pair["columns"],
        "places": pair["places"],
        "joint": pair["joint"][output],
        "output": output,
    }


def _neuron(neuron: dict[str, Any]) -> dict[str, Any]:
    """What a page draws of a neuron; of what it adds, the outputs that it changes most."""
    changes = {key: value for key, value in neuron.items() if key not in ("weights", "bias", "size", "adds")}
    order = sorted(range(len(neuron["adds"] or ())), key=lambda q: -_span(neuron["adds"][q]))
    return changes | {"adds": [[q, *neuron["adds"][q]] for q in order[:2]]}


def _span(quantiles: Sequence[float | None]) -> float:
    low, high = quantiles[0], quantiles[-1]
    return 0.0 if low is None or high is None else high - low


def _means(response: dict[str, Any], n_outputs: int) -> dict[str, Any]:
    """The mean responses that a page draws: probabilities where there are some, of not too many classes."""
    shown = n_outputs <= _MOST_OUTPUTS
    probability = response["probability"]
    mean = response["mean"] if probability is None else None
    return {
        "column": response["column"],
        "mean": mean if shown else None,
        "probability": probability if shown else None,
    }


def _rounded(value: Any) -> Any:
    """Numbers with as many digits as can be seen."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _by_own_rows(estimator: GrownModel, target: str | None) -> Explanation | None:
    """An explanation by the rows that the model keeps, if it does."""
    values: Values | None = values_of(estimator, None, None)
    if values is None:
        return None
    if estimator.table_ is None:
        return explain_rows(estimator, np.stack(values.columns, axis=1).astype(np.float64), target=target)
    names = [column.name for column in estimator.table_.columns_]
    return explain(estimator, Table(dict(zip(names, values.columns, strict=True))), target=target)


def _drawn(data: dict[str, Any]) -> set[int]:
    """The columns of which there is a curve or a map."""
    used = {response["column"] for response in data["responses"]}
    for pair in data["pairs"]:
        used |= set(pair["columns"])
    for neuron in data["neurons"]:
        used |= {curve["column"] for curve in neuron["curves"]}
        used |= {column for one in neuron["maps"] for column in one["columns"]}
    return used
