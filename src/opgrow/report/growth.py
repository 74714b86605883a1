"""How a network grew, as parts of a page: its steps, the candidates of its searches, the curves of tuning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from statistics import median

from ..growth.events import GrowthStep
from ..growth.step_table import N_CANDIDATES, STEP_COLUMNS, left_out, step_cells
from ..network.drawing.neurons import spaced
from ..network.drawing.svg import short
from .charts import Line, Point, lines, scatter
from .html import details, figure, paragraph, table

__all__ = ["growth_parts"]

#: Candidates of a search that are listed, and of each search of very many.
_SHOWN, _FEW, _MANY = 10, 3, 30
_ONLY_FIVE = f"A model that was loaded from a file knows the {N_CANDIDATES} best candidates of each search."


def growth_parts(history: Sequence[GrowthStep], criterion: str, student: bool = False) -> list[str]:
    """All about the steps of an estimator's history.

    ``criterion`` is what decided; ``student`` says that the last network learned from the others.
    """
    if not history:
        return [paragraph("There is no history of its growth.", "note")]
    networks = [list(steps) for _, steps in groupby(history, lambda step: step.member)]
    listed = _SHOWN if sum(bool(step.candidates) for step in history) <= _MANY else _FEW
    better = "more" if history[0].score.higher_is_better else "less"
    parts = [
        paragraph(
            f"{_summary(history, networks, student)} The score is the {_worded(criterion)} ({better} is "
            "better) on validation rows or, where none were held back, on the training rows; the gain is "
            "relative."
        ),
        *(paragraph(text, "note") for text in left_out(history)),
        details("Score against size", [_score_chart(networks, criterion)]),
    ]
    if len(networks) == 1:
        return [*parts, *_network_parts(networks[0], criterion, "", listed)]
    for steps in networks:
        number = steps[0].member
        name = f"network {number}"
        if student and number == networks[-1][0].member:
            name += ", which learned from the others"
        accepted = [step for step in steps if step.accepted]
        score = f": score {short(accepted[-1].score.value)}" if accepted else ""
        inner = _network_parts(steps, criterion, f"-{number}", listed)
        parts.append(details(f"{name}{score}, {len(steps)} steps", inner))
    return parts


def _summary(history: Sequence[GrowthStep], networks: Sequence[Sequence[GrowthStep]], student: bool) -> str:
    seconds = sum(step.search_seconds + step.tuning_seconds for step in history)
    n_accepted = sum(step.accepted for step in history)
    text = f"{len(history)} steps, of which {n_accepted} were kept; {seconds:.1f} s of search and tuning."
    if len(networks) == 1:
        return text
    if not student:
        return f"{len(networks)} networks were grown apart and averaged. {text}"
    if len(networks) == 2:
        return f"A network was grown, and a smaller one learned from it. {text}"
    return f"{len(networks) - 1} networks were grown apart, and one learned from their average. {text}"


def _worded(criterion: str) -> str:
    return {"brier": "Brier score"}.get(criterion, criterion)


def _network_parts(steps: Sequence[GrowthStep], criterion: str, suffix: str, listed: int) -> list[str]:
    rows = [step_cells(step) for step in steps]
    grown = table(
        f"growth{suffix}", STEP_COLUMNS, rows, words=(1, 2, 6), dimmed=[not step.accepted for step in steps]
    )
    return [grown, *_curves(steps, criterion, suffix), *_searches(steps, suffix, listed)]


def _score_chart(networks: Sequence[Sequence[GrowthStep]], criterion: str) -> str:
    points = []
    for steps in networks:
        lost = {step.layer for step in steps if step.kind == "layer" and not step.accepted}
        for step in steps:
            # A layer is the score of its last block, and fine-tuning that did not help that of the layers.
            if step.kind == "layer" or (step.kind == "fine-tune" and not step.accepted):
                continue
            network = f"network {step.member}, " if len(networks) > 1 else ""
            series = "kept" if step.accepted else "not kept"
            if step.accepted and step.layer in lost and step.kind != "fine-tune":
                series = "its layer was not kept"
            points.append(Point(step.n_parameters, step.score.value, f"{network}{_place(step)}", series))
    shown = _in_sight(points)
    caption = "What each step came to: the score against the size of the network with the new part."
    if len(shown) < len(points):
        caption += f" {len(points) - len(shown)} of {len(points)} are far off and not drawn."
    return figure("steps", scatter(shown, "parameters", _worded(criterion)), caption, "narrow")


def _in_sight(points: Sequence[Point]) -> list[Point]:
    """Without the points that lie so far off that the others would fall together."""
    finite = [point for point in points if math.isfinite(point.y)]
    accepted = [point.y for point in finite if point.series == "kept"]
    if not accepted:
        return finite
    middle, reach = median(accepted), max(accepted) - min(accepted)
    far = 5 * max(reach, 0.2 * abs(middle))
    return [point for point in finite if abs(point.y - middle) <= far]


def _place(step: GrowthStep) -> str:
    if step.kind == "fine-tune":
        return "fine-tuning"
    part = f"pass {step.block}" if step.kind == "search" else f"block {step.block}"
    operators = "" if step.operator_set is None else f", {spaced(step.operator_set)}"
    return f"layer {step.layer}, {part}{operators}"


# --- curves of tuning ---


def _curves(steps: Sequence[GrowthStep], criterion: str, suffix: str) -> list[str]:
    tuned = [step for step in steps if step.curve]
    if not tuned:
        if any(step.tuning_seconds > 0 for step in steps):
            text = (
                "The curves of tuning are not here: a model file does not keep them. A report that is "
                "written right after fit has them."
            )
        else:
            text = "There are no tuning curves: nothing was tuned step by step."
        return [paragraph(text, "note")]
    training: list[Line] = []
    validation: list[Line] = []
    epoch = 0
    for step in tuned:
        fine = step.kind == "fine-tune"
        series = "fine-tuning" if fine else f"layer {step.layer}"
        label = _place(step)
        if not step.accepted:
            series, label = "not kept", f"{label}, not kept"
        marked = next((i for i, e in enumerate(step.curve) if e.number == step.best_epoch), None)
        remark = f"epoch {step.best_epoch} was the best"
        for values, chart in (
            ([e.train_loss for e in step.curve], training),
            ([e.score.value for e in step.curve], validation),
        ):
            points = [(epoch + i, value) for i, value in enumerate(values, 1)]
            chart.append(Line(points, label, series, fine, marked, remark))
        epoch += len(step.curve)
    return [
        '<div class="pair">',
        figure(f"training{suffix}", lines(training, "epoch", "training loss"), "Training, epoch by epoch."),
        figure(
            f"validation{suffix}",
            lines(validation, "epoch", _worded(criterion)),
            "The score meanwhile. A dot marks the epoch that was kept. If there is no dot, the starting "
            "point was kept. Fine-tuning is dashed.",
        ),
        "</div>",
    ]


# --- candidates of searches ---


def _searches(steps: Sequence[GrowthStep], suffix: str, listed: int) -> list[str]:
    searched = [step for step in steps if step.candidates]
    if not searched:
        return [paragraph("No operator sets were searched: this method has given ones.", "note")]
    parts = ["<h3>Candidates</h3>"]
    if max(len(step.candidates) for step in searched) <= N_CANDIDATES:
        parts.append(paragraph(_ONLY_FIVE, "note"))
    for number, step in enumerate(searched, 1):
        n = len(step.candidates)
        invalid = f", {step.invalid_candidates} invalid" if step.invalid_candidates else ""
        shown = f", the best {listed} below" if n > listed else ""
        summary = f"{_place(step)}: {n} scored{invalid}{shown}"
        parts.append(details(summary, [_candidates(step, f"candidates{suffix}-{number}", listed)]))
    return parts


def _candidates(step: GrowthStep, name: str, listed: int) -> str:
    paired = any(candidate.head_operators is not None for candidate in step.candidates)
    head = ["", "operators", *(["head"] if paired else []), "weight range", "ridge", "score", "loss", "taken"]
    rows, taken = [], False
    for rank, candidate in enumerate(step.candidates[:listed], 1):
        same = (candidate.operator_set, candidate.head_operators) == (step.operator_set, step.head_operators)
        rows.append(
            [
                str(rank),
                spaced(candidate.operator_set),
                *([spaced(candidate.head_operators or "")] if paired else []),
                f"±{candidate.weight_range:g}",
                f"{candidate.ridge:g}",
                f"{candidate.score:.4g}",
                f"{candidate.loss:.4g}",
                "yes" if same and not taken else "",
            ]
        )
        taken = taken or same
    return table(name, head, rows, words=(1, 2) if paired else (1,))
