"""Small charts as SVG text: points, lines and stacked bars, for pages that need no network and no library.

Text and axes take the colour of the page (``currentColor``), so a chart fits light and dark pages. Every mark
has a title, which browsers show when the pointer rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

__all__ = ["COLOURS", "Line", "Point", "bars", "lines", "scatter"]

#: Colours that most people can tell apart (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7f7f")
_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 48


@dataclass(frozen=True)
class Point:
    """A point of a scatter chart; points of one series have one colour."""

    x: float
    y: float
    label: str
    series: str


@dataclass(frozen=True)
class Line:
    """A line through (x, y) pairs."""

    points: Sequence[tuple[float, float]]
    label: str
    series: str
    dashed: bool = False


class _Axis:
    """From values to pixels, linear or logarithmic, with ticks at round numbers."""

    def __init__(self, values: Sequence[float], start: float, end: float, log: bool) -> None:
        finite = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
        low, high = (min(finite), max(finite)) if finite else (1.0, 10.0)
        if log:
            low, high = math.log10(low), math.log10(high)
        margin = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
        self.low, self.high, self.start, self.end, self.log = low - margin, high + margin, start, end, log

    def at(self, value: float) -> float:
        place = math.log10(value) if self.log else value
        return self.start + (place - self.low) / (self.high - self.low) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        return math.isfinite(value) and (value > 0 or not self.log)

    def ticks(self) -> list[float]:
        if self.log:
            powers = range(math.ceil(self.low), math.floor(self.high) + 1)
            if len(powers) >= 2:
                return [10.0**power for power in powers]
            near = range(math.floor(self.low), math.ceil(self.high) + 1)
            every = [factor * 10.0**power for power in near for factor in (1, 2, 5)]
            return [tick for tick in every if self.low <= math.log10(tick) <= self.high]
        raw = (self.high - self.low) / 5
        size = 10.0 ** math.floor(math.log10(raw))
        step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= raw)
        first = math.ceil(self.low / step)
        return [step * i for i in range(first, math.floor(self.high / step) + 1)]


def scatter(points: Sequence[Point], x_label: str, y_label: str, *, log_x: bool = False) -> str:
    """Points by series; those that are not finite are left out."""
    x, y = _axes([p.x for p in points], [p.y for p in points], log_x)
    colours = _colours(p.series for p in points)
    marks = [
        f'<circle cx="{x.at(p.x):.1f}" cy="{y.at(p.y):.1f}" r="5" fill="{colours[p.series]}" '
        f'fill-opacity="0.8">{_title(f"{p.label}: {_short(p.x)}, {_short(p.y)}")}</circle>'
        for p in points
        if x.holds(p.x) and y.holds(p.y)
    ]
    return _chart([*_frame(x, y, x_label, y_label), *marks], colours)


def lines(given: Sequence[Line], x_label: str, y_label: str) -> str:
    """Lines by series; a gap stays where a value is not finite."""
    x, y = _axes([p[0] for line in given for p in line.points], [p[1] for line in given for p in line.points])
    colours = _colours(line.series for line in given)
    marks = []
    for line in given:
        path, pen_down = [], False
        for px, py in line.points:
            if not (x.holds(px) and y.holds(py)):
                pen_down = False
                continue
            path.append(f"{'L' if pen_down else 'M'}{x.at(px):.1f} {y.at(py):.1f}")
            pen_down = True
        dash = ' stroke-dasharray="6 4"' if line.dashed else ""
        marks.append(
            f'<path d="{" ".join(path)}" fill="none" stroke="{colours[line.series]}" stroke-width="2"{dash}>'
            f"{_title(line.label)}</path>"
        )
    return _chart([*_frame(x, y, x_label, y_label), *marks], colours)


def bars(shares: Mapping[str, Mapping[str, float]], y_label: str) -> str:
    """A bar for each name, stacked from its parts; parts of one name have one colour."""
    colours = _colours(part for parts in shares.values() for part in parts)
    totals = [sum(parts.values()) for parts in shares.values()]
    y = _Axis([0.0, *totals], _HEIGHT - _BOTTOM, _TOP, log=False)
    y.low = 0.0
    room = (_WIDTH - _LEFT - _RIGHT) / max(len(shares), 1)
    marks = _y_axis(y, y_label)
    for number, (name, parts) in enumerate(shares.items()):
        left, below = _LEFT + room * (number + 0.15), 0.0
        for part, share in parts.items():
            top, bottom = y.at(below + share), y.at(below)
            marks.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{0.7 * room:.1f}" height="{bottom - top:.1f}" '
                f'fill="{colours[part]}">{_title(f"{name}, {part}: {_short(share)}")}</rect>'
            )
            below += share
        marks.append(_text(left + 0.35 * room, _HEIGHT - _BOTTOM + 18, name, "middle"))
    return _chart(marks, colours)


def _axes(xs: Sequence[float], ys: Sequence[float], log_x: bool = False) -> tuple[_Axis, _Axis]:
    x = _Axis(xs, _LEFT, _WIDTH - _RIGHT, log_x)
    return x, _Axis(ys, _HEIGHT - _BOTTOM, _TOP, log=False)


def _frame(x: _Axis, y: _Axis, x_label: str, y_label: str) -> list[str]:
    parts = _y_axis(y, y_label)
    for tick in x.ticks():
        parts.append(_text(x.at(tick), _HEIGHT - _BOTTOM + 18, _short(tick), "middle"))
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, x_label, "middle"))
    return parts


def _y_axis(y: _Axis, label: str) -> list[str]:
    parts = []
    for tick in y.ticks():
        at = y.at(tick)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="currentColor" '
            'stroke-opacity="0.15"/>'
        )
        parts.append(_text(_LEFT - 8, at + 4, _short(tick), "end"))
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    parts.append(
        f'<text x="16" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 16 {middle:.1f})" '
        f'fill="currentColor" font-size="13">{escape(label)}</text>'
    )
    return parts


def _chart(marks: Sequence[str], colours: Mapping[str, str]) -> str:
    legend, per_row = [], 4
    for number, (name, colour) in enumerate(colours.items()):
        left = _LEFT + (number % per_row) * (_WIDTH - _LEFT - _RIGHT) / per_row
        top = _HEIGHT + 18 * (number // per_row)
        legend.append(f'<rect x="{left:.1f}" y="{top}" width="12" height="12" fill="{colour}"/>')
        legend.append(_text(left + 18, top + 11, name, "start"))
    height = _HEIGHT + 18 * -(-len(colours) // per_row) + 6
    body = "\n".join([*marks, *legend])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12">\n{body}\n</svg>'
    )


def _colours(series: Iterable[str]) -> dict[str, str]:
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(series))}


def _text(x: float, y: float, text: str, anchor: str) -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} fill="currentColor">{escape(text)}</text>'


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _short(value: float) -> str:
    if value and (abs(value) >= 1e6 or abs(value) < 1e-3):
        return f"{value:.1e}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
