"""The figures of a study, as in the paper: chosen operators, curves of growth, accuracy against size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ..report.charts import Line, Point, bars, lines, scatter
from .runs import DONE
from .study import Finished

__all__ = ["accuracy_against_parameters", "growth_curves", "operator_shares"]

_KINDS = ("nodal operators", "pool operators", "activations")


def operator_shares(results: Sequence[Finished], models: Sequence[str]) -> dict[str, str]:
    """For each kind of operator a chart of its share among the neurons that each model has grown."""
    counts: dict[str, dict[str, dict[str, float]]] = {kind: {} for kind in _KINDS}
    for model in models:
        blocks = [
            block
            for run, result in results
            if run.model == model and result["status"] == DONE
            for block in result.get("operators", [])
        ]
        total = sum(block["neurons"] for block in blocks)
        for place, kind in enumerate(_KINDS):
            shares: dict[str, float] = defaultdict(float)
            for block in blocks:
                shares[block["set"].split("/")[place]] += 100 * block["neurons"] / total
            if shares:
                counts[kind][model] = dict(sorted(shares.items()))
    return {kind: bars(shares, "neurons (%)") for kind, shares in counts.items() if shares}


def growth_curves(result: Mapping[str, Any], place: int = 0, name: str = "training loss") -> str | None:
    """A figure over the epochs of all growth steps of a run, the final fine-tuning dashed.

    Parameters
    ----------
    place : of the figure in each epoch of a step's curve: 0 the training loss, 1 the score that decides
    name : of the figure
    """
    curves, epoch = [], 0
    for step in result.get("steps", []):
        points = [(epoch + i, figures[place]) for i, figures in enumerate(step["curve"], 1)]
        if not points:
            continue
        epoch += len(points)
        fine = step["kind"] == "fine-tune"
        series = "fine-tuning" if fine else f"layer {step['layer']}"
        remark = "" if step["accepted"] else ", not kept"
        label = "fine-tuning" if fine else f"layer {step['layer']}, block {step['block']}{remark}"
        curves.append(Line(points, label, series, dashed=fine))
    return lines(curves, "epoch", name) if curves else None


def accuracy_against_parameters(rows: Sequence[dict[str, Any]], methods: Sequence[str]) -> str | None:
    """A point for each model of a dataset whose parameters are known; our methods have their own colour."""
    points = [
        Point(
            row["parameters"],
            100 * row["accuracy"],
            row["model"],
            "methods" if row["model"] in methods else "peers",
        )
        for row in rows
        if row["parameters"] is not None and row["accuracy"] is not None
    ]
    return scatter(points, "parameters", "test accuracy (%)", log_x=True) if points else None
