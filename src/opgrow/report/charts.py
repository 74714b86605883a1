"""Small charts as SVG text: points, lines and stacked bars, for pages that need no network and no library.

Every mark has a title, which browsers show when the pointer rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from ..network.drawing.svg import clean, picture, shades, short, text, title

__all__ = ["Line", "Point", "bars", "lines", "scatter"]

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 48


@dataclass(frozen=True)
class Point:
    """A point of a scatter chart; a series has one colour, and is in the legend if it has a name."""

    x: float
    y: float
    label: str
    series: str
    radius: float = 5.0


@dataclass(frozen=True)
class Line:
    """A line through (x, y) pairs, with a mark on the one whose index is ``marked``."""

    points: Sequence[tuple[float, float]]
    label: str
    series: str
    dashed: bool = False
    marked: int | None = None
    remark: str = ""


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
        step = self._step()
        first = math.ceil(self.low / step)
        return [step * i for i in range(first, math.floor(self.high / step) + 1)]

    def _step(self) -> float:
        raw = (self.high - self.low) / 6
        size = 10.0 ** math.floor(math.log10(raw))
        return next(factor * size for factor in (1, 2, 5, 10) if factor * size >= raw)

    def label(self, tick: float) -> str:
        """A tick in as few characters as tell it from its neighbours."""
        for size, sign in ((1e6, "M"), (1e3, "k")):
            if 1e4 <= abs(tick) < 1e9 and abs(tick) >= size and tick % size == 0:
                return f"{tick / size:,.0f}{sign}"
        words, step = short(tick), math.inf if self.log else self._step()
        if abs(float(words.replace(",", "")) - tick) < 0.1 * step:
            return words
        return f"{tick:,.{max(0, -math.floor(math.log10(step)))}f}"


def scatter(
    points: Sequence[Point],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    diagonal: bool = False,
    limits: tuple[float, ...] = (),
    labelled: bool = False,
) -> str:
    """Points by series; those that are not finite are left out. ``labelled`` writes labels beside them.

    ``diagonal`` gives both axes the same range, with ``limits`` in it, and draws the line of equal values.
    """
    xs, ys = [p.x for p in points], [p.y for p in points]
    both = [*xs, *ys, *limits]
    x, y = _axes(both, both) if diagonal else _axes(xs, ys, log_x)
    colours = _colours(p.series for p in points)
    equal = _diagonal(x, y) if diagonal else []
    marks = [
        f'<circle cx="{x.at(p.x):.1f}" cy="{y.at(p.y):.1f}" r="{p.radius:g}" fill="{colours[p.series]}" '
        f'fill-opacity="0.8">{title(f"{p.label}: {short(p.x)}, {short(p.y)}")}</circle>'
        for p in points
        if x.holds(p.x) and y.holds(p.y)
    ]
    names = _labels(points, x, y) if labelled else []
    return _chart([*_frame(x, y, x_label, y_label), *equal, *marks, *names], colours)


def _labels(points: Sequence[Point], x: _Axis, y: _Axis) -> list[str]:
    """The labels of points, on the side with more room, each below those that it would cover."""
    placed: list[tuple[float, float, float]] = []  # left, right, baseline
    texts = []
    for point in sorted((p for p in points if x.holds(p.x) and y.holds(p.y)), key=lambda p: -p.y):
        at, below, length = x.at(point.x), y.at(point.y) + 4, 6.0 * len(point.label)
        right = at + 9 + length <= _WIDTH
        left = at + 9 if right else at - 9 - length
        while any(left < b and left + length > a and abs(below - c) < 12 for a, b, c in placed):
            below += 2
        placed.append((left, left + length, below))
        texts.append(text(at + 9 if right else at - 9, below, point.label, "start" if right else "end"))
    return texts


def _diagonal(x: _Axis, y: _Axis) -> list[str]:
    low, high = f'x1="{x.start:.1f}" y1="{y.start:.1f}"', f'x2="{x.end:.1f}" y2="{y.end:.1f}"'
    return [f'<line {low} {high} stroke="currentColor" stroke-opacity="0.5" stroke-dasharray="6 4"/>']


def lines(curves: Sequence[Line], x_label: str, y_label: str) -> str:
    """Lines by series; a gap stays where a value is not finite."""
    x, y = _axes(
        [p[0] for line in curves for p in line.points], [p[1] for line in curves for p in line.points]
    )
    colours = _colours(line.series for line in curves)
    marks = []
    for line in curves:
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
            f"{title(line.label)}</path>"
        )
        marks += _marked(line, x, y, colours[line.series])
    return _chart([*_frame(x, y, x_label, y_label), *marks], colours)


def _marked(line: Line, x: _Axis, y: _Axis, colour: str) -> list[str]:
    """The mark of a line's point, with what is to be said about it."""
    if line.marked is None:
        return []
    px, py = line.points[line.marked]
    if not (x.holds(px) and y.holds(py)):
        return []
    words = f"{line.label}: {line.remark}" if line.remark else line.label
    return [
        f'<circle cx="{x.at(px):.1f}" cy="{y.at(py):.1f}" r="4.5" fill="{colour}" stroke="currentColor" '
        f'stroke-width="1.5">{title(words)}</circle>'
    ]


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
                f'fill="{colours[part]}">{title(f"{name}, {part}: {short(share)}")}</rect>'
            )
            below += share
        marks.append(text(left + 0.35 * room, _HEIGHT - _BOTTOM + 18, name, "middle"))
    return _chart(marks, colours)


def _axes(xs: Sequence[float], ys: Sequence[float], log_x: bool = False) -> tuple[_Axis, _Axis]:
    x = _Axis(xs, _LEFT, _WIDTH - _RIGHT, log_x)
    return x, _Axis(ys, _HEIGHT - _BOTTOM, _TOP, log=False)


def _frame(x: _Axis, y: _Axis, x_label: str, y_label: str) -> list[str]:
    parts = _y_axis(y, y_label)
    for tick in x.ticks():
        parts.append(text(x.at(tick), _HEIGHT - _BOTTOM + 18, x.label(tick), "middle"))
    parts.append(text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, x_label, "middle"))
    return parts


def _y_axis(y: _Axis, label: str) -> list[str]:
    parts = []
    for tick in y.ticks():
        at = y.at(tick)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="currentColor" '
            'stroke-opacity="0.15"/>'
        )
        parts.append(text(_LEFT - 8, at + 4, y.label(tick), "end"))
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    parts.append(
        f'<text x="16" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 16 {middle:.1f})" '
        f'fill="currentColor" font-size="13">{escape(clean(label))}</text>'
    )
    return parts


def _chart(marks: Sequence[str], colours: Mapping[str, str]) -> str:
    legend, per_row = [], 4
    colours = {name: colour for name, colour in colours.items() if name}
    for number, (name, colour) in enumerate(colours.items()):
        left = _LEFT + (number % per_row) * (_WIDTH - _LEFT - _RIGHT) / per_row
        top = _HEIGHT + 18 * (number // per_row)
        legend.append(f'<rect x="{left:.1f}" y="{top}" width="12" height="12" fill="{colour}"/>')
        legend.append(text(left + 18, top + 11, name, "start"))
    height = _HEIGHT + 18 * -(-len(colours) // per_row) + 6
    return picture(_WIDTH, height, [*marks, *legend])


def _colours(series: Iterable[str]) -> dict[str, str]:
    names = list(dict.fromkeys(series))
    return dict(zip(names, shades(len(names)), strict=True))
