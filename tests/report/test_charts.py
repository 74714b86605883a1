"""Charts are well-formed, say what they show, and survive odd values."""

from __future__ import annotations

import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from opgrow.network.drawing.svg import COLOURS, clean, shades
from opgrow.report.charts import Line, Point, bars, lines, scatter

SVG = "{http://www.w3.org/2000/svg}"


def marks(chart, tag):
    return ElementTree.fromstring(chart).findall(f".//{SVG}{tag}")


def texts(chart):
    return [element.text for element in marks(chart, "text")]


def test_points_lie_where_their_values_are():
    points = [Point(10, 0.5, "a", "one"), Point(1000, 0.9, "b", "one"), Point(100, 0.7, "c", "two")]
    circles = marks(scatter(points, "parameters", "accuracy", log_x=True), "circle")
    x = [float(circle.get("cx")) for circle in circles]
    y = [float(circle.get("cy")) for circle in circles]
    assert x[0] < x[2] < x[1]
    assert x[2] == pytest.approx((x[0] + x[1]) / 2, abs=0.2)  # a logarithmic axis
    assert y[0] > y[2] > y[1]  # upwards on the page
    assert circles[0].get("fill") == circles[1].get("fill") != circles[2].get("fill")
    assert [circle.find(f"{SVG}title").text.split(":")[0] for circle in circles] == ["a", "b", "c"]


def test_large_ticks_are_short():
    points = [Point(0, 5000, "a", "one"), Point(20000, 3e6, "b", "one")]
    words = texts(scatter(points, "across", "up"))
    assert {"5,000", "10k", "20k", "1M", "3M"} <= set(words)
    far = [Point(9e3, 0, "a", "one"), Point(3e6, 1, "b", "one")]
    assert {"10k", "100k", "1M"} <= set(texts(scatter(far, "across", "up", log_x=True)))


def test_axes_and_series_are_named():
    chart = scatter([Point(1, 2, "a", "first"), Point(3, 4, "b", "second")], "across", "up")
    assert {"across", "up", "first", "second"} <= set(texts(chart))


def test_names_from_data_are_escaped():
    evil = '<script>alert("&")</script>'
    for chart in (
        scatter([Point(1, 2, evil, evil)], evil, evil),
        lines([Line([(0, 1), (1, 2)], evil, evil)], evil, evil),
        bars({evil: {evil: 1.0}}, evil),
    ):
        assert "<script>" not in chart
        assert evil in texts(chart)


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0], [5.0, math.nan, math.inf], [-1e-9, 1e9], [0.0]])
@pytest.mark.parametrize("log_x", [False, True])
def test_odd_values_make_a_chart_all_the_same(values, log_x):
    chart = scatter([Point(v, v, "p", "s") for v in values], "x", "y", log_x=log_x)
    assert "nan" not in chart
    assert "inf" not in chart
    shown = [v for v in values if math.isfinite(v) and (v > 0 or not log_x)]
    assert len(marks(chart, "circle")) == len(shown)
    ElementTree.fromstring(lines([Line([(i, v) for i, v in enumerate(values)], "l", "s")], "x", "y"))


def test_a_gap_stays_where_a_value_is_missing():
    [path] = marks(lines([Line([(0, 1), (1, math.nan), (2, 3), (3, 4)], "l", "s")], "x", "y"), "path")
    assert path.get("d").count("M") == 2
    assert path.get("stroke-dasharray") is None


def test_dashed_lines_are_dashed():
    [path] = marks(lines([Line([(0, 1), (1, 2)], "l", "s", dashed=True)], "x", "y"), "path")
    assert path.get("stroke-dasharray")


def test_bars_are_stacked_to_their_total():
    chart = bars({"one": {"a": 1.0, "b": 3.0}, "two": {"a": 2.0}}, "share")
    rects = [r for r in marks(chart, "rect") if r.find(f"{SVG}title") is not None]
    heights = [float(r.get("height")) for r in rects]
    assert heights[1] == pytest.approx(3 * heights[0], abs=0.2)
    assert heights[2] == pytest.approx(2 * heights[0], abs=0.2)
    assert float(rects[1].get("y")) + heights[1] == pytest.approx(float(rects[0].get("y")), abs=0.2)
    assert rects[0].get("fill") == rects[2].get("fill") == COLOURS[0]


def test_a_diagonal_gives_both_axes_one_range():
    chart = scatter([Point(0, 10, "a", "s"), Point(5, 5, "b", "s")], "true", "predicted", diagonal=True)
    [line] = [mark for mark in marks(chart, "line") if mark.get("stroke-dasharray")]
    x1, x2, y1, y2 = (float(line.get(name)) for name in ("x1", "x2", "y1", "y2"))
    on = marks(chart, "circle")[1]  # equal values lie on the line
    share = (float(on.get("cx")) - x1) / (x2 - x1)
    assert float(on.get("cy")) == pytest.approx(y1 + share * (y2 - y1), abs=0.2)


@pytest.mark.parametrize(
    ("low", "high"), [(0.99185, 0.99212), (0, 1), (123456.1, 123456.9), (1e-7, 3e-7), (-5e8, 5e8)]
)
def test_ticks_are_told_apart(low, high):
    chart = scatter([Point(low, low, "a", ""), Point(high, high, "b", "")], "x", "y")
    ticks = [t.text for t in marks(chart, "text") if t.get("text-anchor") == "end"]
    assert len(ticks) >= 3
    values = [float(tick.replace(",", "").replace("k", "e3").replace("M", "e6")) for tick in ticks]
    steps = [b - a for a, b in pairwise(values)]
    assert min(steps) > 0
    assert max(steps) == pytest.approx(min(steps), rel=0.3)


def test_the_marked_point_of_a_line_says_why():
    line = Line([(0, 1), (1, 3), (2, 2)], "block 1", "s", marked=1, remark="kept")
    chart = lines([line], "x", "y")
    [mark] = marks(chart, "circle")
    [path] = marks(chart, "path")
    assert f"{mark.get('cx')} {mark.get('cy')}" in path.get("d")
    assert mark.find(f"{SVG}title").text == "block 1: kept"
    assert not marks(lines([Line([(0, math.nan)], "l", "s", marked=0)], "x", "y"), "circle")


def test_there_are_more_colours_than_the_palette_has():
    colours = shades(24)
    assert colours[:8] == list(COLOURS)
    assert len(set(colours)) == 24
    assert shades(25)[24] == COLOURS[0]


def test_characters_that_files_cannot_hold_are_replaced():
    odd = "a\x00b\x1b\ud800c\uffff"
    assert clean(odd) == "a\ufffdb\ufffd\ufffdc\ufffd"
    ElementTree.fromstring(scatter([Point(1, 2, odd, odd)], odd, odd).encode())
