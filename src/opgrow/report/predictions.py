"""How good predictions are, as parts of a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..common.places import evenly
from ..network.drawing.svg import counted
from .charts import Point, scatter
from .html import cards, figure, paragraph, table
from .matrix import confusion_matrix
from .quality import ClassQuality, NumberQuality

__all__ = ["class_parts", "number_parts"]

_MANY_CLASSES = 12  # from here on, the most frequent mistakes are listed
_MISTAKES = 10
_POINTS = 1000
_TARGETS = 6
#: A row is far off beyond so many times the distance of these quantiles from the median.
_QUANTILES, _FAR = (0.02, 0.5, 0.98), 3.0


def class_parts(quality: ClassQuality, labels: Sequence[str]) -> list[str]:
    """Scores, confusion matrix, calibration and the figures of each class."""
    scores = quality.scores
    n_rows = int(quality.support.sum())
    shown = [
        (_percent(scores["accuracy"]), "accuracy"),
        (_percent(scores["balanced_accuracy"]), "balanced accuracy"),
        (f"{scores['macro_f1']:.3f}", "macro F1"),
        (f"{scores['log_loss']:.3f}", "log loss"),
        (f"{scores['calibration_error']:.3f}", "calibration error"),
    ]
    always = f"Always saying the most frequent class would reach {_percent(scores['most_frequent'])}."
    return [
        cards(shown),
        paragraph(f"{n_rows:,} rows. {always}"),
        '<div class="pair">',
        figure(
            "confusion",
            confusion_matrix(quality.confusion, labels),
            "Counts of true and predicted classes; the stronger the colour, the larger the share of its row.",
        ),
        figure(
            "calibration",
            _reliability(quality),
            "How often predictions are right, against how sure they are; larger dots stand for more rows. "
            "Below the line, the model is too sure.",
        ),
        "<div>",
        "<h3>Classes</h3>",
        table(
            "classes",
            ("class", "precision", "recall", "F1", "rows"),
            [
                (label, *(f"{value:.3f}" for value in row), f"{support:,}")
                for label, *row, support in zip(
                    labels, quality.precision, quality.recall, quality.f1, quality.support, strict=True
                )
            ],
        ),
        "</div>",
        "</div>",
        *_mistakes(quality, labels),
    ]


def _reliability(quality: ClassQuality) -> str:
    count, sure, accuracy = quality.bins
    points = [
        Point(s, a, f"{n} rows (confidence, accuracy)", "", 3 + 9 * float(np.sqrt(n / count.max())))
        for n, s, a in zip(count.tolist(), sure.tolist(), accuracy.tolist(), strict=True)
        if n
    ]
    return scatter(points, "confidence", "accuracy", diagonal=True, limits=(0.0, 1.0))


def _mistakes(quality: ClassQuality, labels: Sequence[str]) -> list[str]:
    """Of many classes, those that are mistaken most often."""
    wrong = quality.confusion * (1 - np.eye(len(labels), dtype=np.int64))
    if len(labels) < _MANY_CLASSES or not wrong.any():
        return []
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MISTAKES]
    pairs = [divmod(int(i), len(labels)) for i in order]
    rows = [
        (labels[t], labels[p], f"{wrong[t, p]}", _percent(wrong[t, p] / quality.support[t]))
        for t, p in pairs
        if wrong[t, p]
    ]
    head = ("true", "predicted", "rows", "of the class")
    return ["<h3>Most frequent mistakes</h3>", table("mistakes", head, rows, words=(1,))]


def number_parts(quality: NumberQuality, targets: Sequence[str]) -> list[str]:
    """Scores, and predicted against true values."""
    scores, n_rows = quality.scores, len(quality.values)
    shown = [
        (f"{scores['r2']:.3f}", "R2"),
        (_figure(scores["rmse"]), "RMSE"),
        (_figure(scores["mae"]), "MAE"),
    ]
    mean = f" Figures are means over {len(targets)} targets." if len(targets) > 1 else ""
    parts = [cards(shown), paragraph(f"{n_rows:,} rows.{mean}")]
    if len(targets) > 1:
        rows = [
            (name, f"{scores['r2']:.3f}", _figure(scores["rmse"]), _figure(scores["mae"]))
            for name, scores in zip(targets, quality.by_target, strict=True)
        ]
        parts.append(table("targets", ("target", "R2", "RMSE", "MAE"), rows))
    parts.append('<div class="pair">')
    for i, name in enumerate(targets[:_TARGETS]):
        chart, words = _scatter(quality, i)
        caption = f"{name}: predicted against true values; on the line they are equal. {words}"
        parts.append(figure(f"scatter-{i + 1}", chart, caption.strip()))
    parts.append("</div>")
    if len(targets) > _TARGETS:
        parts.append(paragraph(f"Charts of the first {_TARGETS} of {len(targets)} targets.", "note"))
    return parts


def _scatter(quality: NumberQuality, target: int) -> tuple[str, str]:
    """The chart of a target, and what its caption has to say about it.

    A few rows that lie far from all others are left out: they would press the others together.
    """
    true, predicted = quality.values[:, target], quality.predicted[:, target]
    both = np.concatenate([true, predicted])
    low, middle, high = np.quantile(both, _QUANTILES)
    reach = _FAR * np.array([low - middle, high - middle])
    near = ((both >= middle + reach[0]) & (both <= middle + reach[1])).reshape(2, -1).all(axis=0)
    if not near.any():
        near[:] = True
    there = np.flatnonzero(near)
    rows = there[evenly(len(there), _POINTS)]
    points = [Point(true[i], predicted[i], f"row {i}", "", 3) for i in rows]
    words = []
    if len(there) > _POINTS:
        words.append(f"{_POINTS:,} of {len(true):,} rows are drawn.")
    far = len(true) - len(there)
    if far:
        words.append(f"{counted(far, 'row')} far off {'is' if far == 1 else 'are'} not drawn.")
    return scatter(points, "true", "predicted", diagonal=True), " ".join(words)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _figure(value: float) -> str:
    return f"{value:.4g}"
