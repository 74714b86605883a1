"""A confusion matrix as a heat map: counts are printed where there is room, or shown on hovering."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..network.drawing.svg import COLOURS, picture, shortened, text, title

__all__ = ["confusion_matrix"]

_SIDE = 460
_LABELLED = 30  # classes whose names are written
_LABEL = 16
_RIGHT, _WRONG = COLOURS[0], COLOURS[1]


def confusion_matrix(counts: np.ndarray, labels: Sequence[str]) -> str:
    """Counts (true, predicted); colours say which share of its row a cell holds. Empty cells stay empty."""
    n = len(labels)
    cell = min(48.0, max(3.0, _SIDE / n))
    named = n <= _LABELLED
    short = [shortened(label, _LABEL) for label in labels]
    left = (max(len(label) for label in short) * 6.8 if named else 0) + 34
    slanted = named and max(len(label) for label in short) * 6.8 > cell - 4
    top = (max(len(label) for label in short) * 4.4 + 26 if slanted else 18 if named else 4) + 22
    side = n * cell
    parts = [
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{side:.1f}" height="{side:.1f}" fill="none" '
        'stroke="currentColor" stroke-opacity="0.3"/>',
        text(left + side / 2, 14, "predicted", "middle"),
        f'<text x="14" y="{top + side / 2:.1f}" text-anchor="middle" fill="currentColor" '
        f'transform="rotate(-90 14 {top + side / 2:.1f})">true</text>',
    ]
    for i, label in enumerate(short if named else ()):
        middle = (i + 0.5) * cell
        parts.append(text(left - 6, top + middle + 4, label, "end"))
        x, y = left + middle, top - 6
        turn = f' transform="rotate(-40 {x:.1f} {y:.1f})"' if slanted else ""
        parts.append(text(x, y, label, "start" if slanted else "middle", turn))
    for row, column in zip(*np.nonzero(counts), strict=True):
        count, share = int(counts[row, column]), counts[row, column] / counts[row].sum()
        x, y = left + column * cell, top + row * cell
        words = f"true {labels[row]}, predicted {labels[column]}: {count} ({100 * share:.1f} %)"
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell:.1f}" height="{cell:.1f}" '
            f'fill="{_RIGHT if row == column else _WRONG}" fill-opacity="{0.1 + 0.55 * share:.2f}">'
            f"{title(words)}</rect>"
        )
        if cell >= 8 + 7 * len(str(count)):
            more = ' pointer-events="none"'
            parts.append(text(x + cell / 2, y + cell / 2 + 4, str(count), "middle", more))
    width = left + side + (max(len(label) for label in short) * 5.2 if slanted else 10)
    style = f"width: {width:.0f}px; max-width: 100%; min-width: {min(width, 340):.0f}px; height: auto"
    return picture(round(width), round(top + side + 8), parts, style)
