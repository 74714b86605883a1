"""Explanations as pieces of HTML, which notebooks show: no script, and SVG in the colours of the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...network.drawing.svg import COLOURS, GREY, picture, shades, shortened, text, title
from ..html import escape
from .columns import Axis
from .html_tables import html_bar, html_table
from .shape import WORDS
from .views import Views

__all__ = ["explanation_html", "response_picture"]

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 280.0, 190.0, 44.0, 22.0, 34.0
#: Curves in a picture, columns that have one, and rows of tables, at most.
_CURVES, _COLUMNS, _ROWS = 5, 6, 10


def explanation_html(explanation: Views) -> str:
    """The importance of the columns, and the responses to the most important ones."""
    sizes, order = explanation.importance.sum(axis=1), explanation.order
    shown = explanation.outputs[:_CURVES]
    marks = [f'<span style="color:{colour}">■</span> ' for colour in shades(len(shown))]
    legend = ", ".join(mark + escape(name) for mark, name in zip(marks, shown, strict=True))
    legend += ", …" if len(explanation.outputs) > _CURVES else ""
    rows = [
        (explanation.columns[j], html_bar(sizes[j] / max(sizes.max(), 1e-300), COLOURS[0]), f"{sizes[j]:.3g}")
        for j in order[:_ROWS]
    ]
    view = explanation.response(order[0]).view
    pictures = "".join(
        f'<div style="width:18em">{response_picture(explanation, j)}</div>' for j in order[:_COLUMNS]
    )
    return (
        f"<div><p><b>{escape(type(explanation.estimator).__name__)}</b>: {legend}</p>"
        f"{html_table(('column', '', 'mean size of contributions'), rows, bars=1)}"
        f'<p style="font-size:0.9em">{escape(WORDS[view])}</p>'
        f'<div style="display:flex;flex-wrap:wrap;gap:0.5em">{pictures}</div></div>'
    )


def response_picture(explanation: Views, column: int) -> str:
    """How the first outputs follow a column, over the histogram of the data, as SVG."""
    one, axis = explanation.response(column), explanation.axis(column)
    shown = np.arange(len(axis.labels)) if axis.grid is None else np.flatnonzero(~np.isnan(axis.grid))
    at = np.arange(len(shown)) + 0.5 if axis.grid is None else axis.grid[shown]
    n = min(_CURVES, one.mean.shape[1])
    low, high = float(one.low[shown, :n].min()), float(one.high[shown, :n].max())
    low, high = min(low, float(one.mean[shown, :n].min())), max(high, float(one.mean[shown, :n].max()))
    left, right = (0.0, float(len(shown))) if axis.grid is None else (float(at[0]), float(at[-1]))
    x = _scaled(left, right, _LEFT, _WIDTH - 8)
    y = _scaled(low, high, _HEIGHT - _BOTTOM, _TOP + 4)
    parts = [text(_LEFT, 14, shortened(f"{axis.name} ({one.view})", 34)), *_histogram(axis, len(shown))]
    for value in (low, high):
        parts.append(text(_LEFT - 4, float(y(np.array(value))) + 4, f"{value:.3g}", "end"))
    for i, colour in zip(range(n), shades(n), strict=True):
        name = explanation.outputs[i]
        if axis.grid is None:
            for place, mean, bottom, top in zip(
                x(at), y(one.mean[shown, i]), y(one.low[shown, i]), y(one.high[shown, i]), strict=True
            ):
                line = f'x1="{place:.1f}" x2="{place:.1f}" y1="{bottom:.1f}" y2="{top:.1f}"'
                parts.append(f'<line {line} stroke="{colour}" stroke-opacity="0.5"/>')
                parts.append(f'<circle cx="{place:.1f}" cy="{mean:.1f}" r="4" fill="{colour}"/>')
            continue
        edges = [*zip(x(at), y(one.low[shown, i]), strict=True)]
        edges += zip(x(at)[::-1], y(one.high[shown, i])[::-1], strict=True)
        parts.append(f'<path d="M{_path(edges)}Z" fill="{colour}" fill-opacity="0.15"/>')
        line = _path(list(zip(x(at), y(one.mean[shown, i]), strict=True)))
        parts.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2">{title(name)}</path>')
    return picture(_WIDTH, _HEIGHT, [*parts, *_ticks(axis, shown, x)])


def _scaled(low: float, high: float, start: float, end: float) -> Callable[[np.ndarray], np.ndarray]:
    """From values to pixels."""
    return lambda values: start + (np.asarray(values) - low) / ((high - low) or 1.0) * (end - start)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _histogram(axis: Axis, n_levels: int) -> list[str]:
    """Bars at the bottom."""
    counts = axis.counts[:n_levels] if axis.edges is None else axis.counts[: len(axis.edges) - 1]
    width = (_WIDTH - 8 - _LEFT) / len(counts)
    bars = []
    for i, count in enumerate(counts.tolist()):
        height = 40 * count / max(1, counts.max())
        where = f'x="{_LEFT + i * width:.1f}" y="{_HEIGHT - _BOTTOM - height:.1f}"'
        size = f'width="{0.9 * width:.1f}" height="{height:.1f}"'
        bars.append(f'<rect {where} {size} fill="{GREY}" fill-opacity="0.25"/>')
    return bars


def _ticks(axis: Axis, shown: np.ndarray, x: Callable[[np.ndarray], np.ndarray]) -> list[str]:
    """The labels below: the first and last value of numbers, and of levels as many as there is room for."""
    below = _HEIGHT - _BOTTOM + 16
    if axis.grid is None:
        room = max(1, int(40 / len(shown)))
        places = x(shown + 0.5).tolist()
        return [
            text(place, below + 12 * (i % 2), shortened(axis.labels[i], max(4, room)), "middle")
            for i, place in enumerate(places)
            if len(shown) <= 10 or i % 2 == 0
        ]
    first, last = int(shown[0]), int(shown[-1])
    ends = x(axis.grid[[first, last]]).tolist()
    return [
        text(ends[0], below, shortened(axis.labels[first], 16)),
        text(ends[1], below, shortened(axis.labels[last], 16), "end"),
    ]
