"""Figures of docs/results/speed.md and gpu.md: what `opgrow bench speed --json` and `rows --json` printed."""

from __future__ import annotations

import json
from typing import Any

from opgrow.bench.speed import Row

from .marks import RESULTS, Figures, markdown_table

__all__ = ["figures"]

#: Files of results/speed, which are also the names of tables, "speed-" in front.
_FILES = ("cpu", "cpu-against-9700977", "cpu-against-9700977-avx2", "gpu", "gpu-rows", "gpu-rows-4gib")


def figures() -> Figures:
    """What each command printed, and the numbers that sentences repeat."""
    runs = {name: json.loads((RESULTS / "speed" / f"{name}.json").read_text()) for name in _FILES}
    tables = {f"speed-{name}": _printed(run) for name, run in runs.items()}
    rows = {name: [Row(**one) for one in run["measurements"]] for name, run in runs.items()}
    mnist = [json.loads(line) for line in (RESULTS / "speed" / "gpu-mnist.jsonl").read_text().splitlines()]
    tables["speed-gpu-mnist"] = _fits(mnist)
    values = {f"speed-{name}-commit": run["commit"] for name, run in runs.items()}
    (predict,) = _named(rows["cpu-against-9700977"], "predict, 100,000 rows")
    values["speed-predict-ratio"] = f"{predict.value / predict.peers['MLPClassifier((200, 200))']:.2f}"
    default = [fit for fit in mnist if "fine_tune_epochs=20" in fit["command"]]
    values["speed-gpu-cold"] = f"{max(fit['fit_seconds'] for fit in mnist):.0f}"
    values["speed-gpu-mnist"] = f"{max(fit['fit_seconds'] for fit in default):.0f}"
    values["speed-gpu-mnist-accuracy"] = f"{100 * min(fit['accuracy'] for fit in default):.1f}"
    return Figures(tables, values | _of_cpu(rows["cpu"]) | _of_gpu(rows["gpu"], rows["gpu-rows"]))


def _printed(run: dict[str, Any]) -> str:
    lines = [f"$ {run['command']}", *(Row(**one).text() for one in run["measurements"])]
    return "\n".join(["```", *lines, "```"])


def _fits(fits: list[dict[str, Any]]) -> str:
    """Whole fits whose kernels had been compiled before."""
    rows = [
        (
            f"`{fit['command']}`",
            f"{fit['fit_seconds']:.1f}",
            f"{100 * fit['accuracy']:.2f}",
            fit["topology"],
            f"{fit['parameters']:,}",
        )
        for fit in fits
        if fit["kernels_compiled_before"]
    ]
    return markdown_table(("", "seconds", "test accuracy (%)", "network", "parameters"), rows)


def _of_cpu(rows: list[Row]) -> dict[str, str]:
    searches, steps, fits = (_named(rows, start) for start in ("search", "tuning step", "HeMLGOPClassifier"))
    ratios = sorted(next(iter(step.peers.values())) / step.value for step in steps)
    found = {
        "speed-search-small": f"{searches[0].value:.0f}",
        "speed-search-large": f"{searches[1].value:.1f}",
        "speed-step-least": f"{ratios[0]:.0f}",
        "speed-step-most": f"{ratios[-1]:.0f}",
    }
    for fit, name in zip(fits, ("pima", "digits"), strict=True):
        found[f"speed-fit-{name}"] = f"{fit.value:.1f}"
        found[f"speed-mlp-{name}"] = f"{next(iter(fit.peers.values())):.1f}"
    return found


def _of_gpu(rows: list[Row], many: list[Row]) -> dict[str, str]:
    return {
        "speed-gpu-search": f"{_named(rows, 'search')[0].value:.0f}",
        "speed-gpu-seconds": f"{many[-1].value * 1e8 / 1e9:.0f}",
    }


def _named(rows: list[Row], start: str) -> list[Row]:
    return [row for row in rows if row.name.startswith(start)]
