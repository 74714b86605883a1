"""The figures of a study, as in the paper: chosen operators, curves of growth, accuracy against size."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ..report.charts import Line, Point, bars, lines, scatter
from .runs import DONE
from .study import Finished
from .tables import median_run

__all__ = ["accuracy_against_parameters", "curves_csv", "growth_curves", "operator_shares", "steps_of"]

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


_CURVE = ("dataset", "split", "model", "step", "kind", "layer", "block", "accepted", "loss", "score")


def curves_csv(results: Sequence[Finished], models: Sequence[str]) -> str:
    """The curves of some models, of the run with the median accuracy on each data set: a line an epoch."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CURVE)
    for dataset, model in dict.fromkeys((run.dataset, run.model) for run, _ in results):
        runs = [
            dict(result, split=run.split)
            for run, result in results
            if (run.dataset, run.model, result["status"]) == (dataset, model, DONE) and model in models
        ]
        for middle in median_run(runs):
            for number, step in enumerate(middle.get("steps", []), 1):
                place = [number, step["kind"], step["layer"], step["block"], int(step["accepted"])]
                for loss, score in step["curve"]:
                    writer.writerow([dataset, middle["split"], model, *place, f"{loss:.5g}", f"{score:.5g}"])
    return text.getvalue()


def steps_of(rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """A run as `growth_curves` takes it, from the lines of one data set and model."""
    steps: dict[str, dict[str, Any]] = {}
    for row in rows:
        place = {name: row[name] for name in ("kind", "layer", "block")}
        step = steps.setdefault(row["step"], {**place, "accepted": row["accepted"] == "1", "curve": []})
        step["curve"].append([float(row["loss"]), float(row["score"])])
    return {"steps": list(steps.values())}


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
