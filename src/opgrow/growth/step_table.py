"""Growth steps as rows of a table, for the terminal and for reports."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .events import GrowthStep

__all__ = ["N_CANDIDATES", "STEP_COLUMNS", "left_out", "percentage", "short_number", "step_cells"]

#: Candidates of each search that a model file keeps, best first.
N_CANDIDATES = 5
#: The columns of a table of growth steps.
STEP_COLUMNS = (
    *("layer", "block", "operators", "neurons", "score", "gain", "kept"),
    *("parameters", "search s", "tuning s"),
)


def step_cells(step: GrowthStep) -> tuple[str, ...]:
    """What a table says about a step, in the order of `STEP_COLUMNS`."""
    operators = {"layer": "(whole layer)", "fine-tune": "(fine-tuning)"}.get(step.kind, "")
    if step.operator_set is not None:
        head = "" if step.head_operators is None else f"\nhead {step.head_operators}"
        operators = f"{step.operator_set}{head}".replace("/", " / ")
    return (
        "all" if step.kind == "fine-tune" else str(step.layer),
        f"pass {step.block}" if step.kind == "search" else str(step.block or ""),
        operators,
        str(step.n_neurons or ""),
        short_number(step.score.value),
        "" if step.improvement is None else percentage(step.improvement),
        "yes" if step.accepted else "no",
        f"{step.n_parameters:,}",
        f"{step.search_seconds:.2f}" if step.kind in ("block", "search") else "",
        "" if step.kind in ("layer", "search") else f"{step.tuning_seconds:.2f}",
    )


def left_out(history: Iterable[GrowthStep]) -> list[str]:
    """A sentence on what was not finite in all steps; none if everything was."""
    steps = list(history)
    counts = (
        (sum(step.invalid_candidates for step in steps), "candidate", "candidates"),
        (sum(step.skipped_batches for step in steps), "batch", "batches"),
        (sum(step.invalid_epochs for step in steps), "epoch", "epochs"),
    )
    parts = [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]
    return [f"Left out, because they were not finite: {', '.join(parts)}."] if parts else []


def short_number(value: float) -> str:
    """A number in a few digits."""
    return f"{value:.4g}"


def percentage(ratio: float) -> str:
    """A ratio as a percentage with its sign."""
    return f"{100 * ratio:+.1f} %" if math.isfinite(ratio) else f"{ratio:+}"
