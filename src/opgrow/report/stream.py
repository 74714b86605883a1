"""What became of a network on rows that went on coming, as parts of a page: errors, sizes and events."""

from __future__ import annotations

from ..growth.stream_record import StreamEvent, StreamRecord
from ..network.drawing.svg import counted, short
from .charts import Line, Point, lines, scatter
from .html import figure, paragraph, table

__all__ = ["stream_parts"]

#: What events are called, and what their number says.
_WORDS = {
    "drift": ("drift", "rows from before it count {} times"),
    "grown": ("network grown", "score better by {}"),
    "tried": ("growth that did not help", "score better by {}"),
    "dropped": ("blocks dropped", "{} neurons"),
}


def stream_parts(record: StreamRecord, classification: bool) -> list[str]:
    """Charts and a table of the events of an estimator's record."""
    if not record.windows:
        return [paragraph("No rows have come since the first ones.", "note")]
    rows = sum(window.n_rows for window in record.windows)
    measure = "share of wrong classes" if classification else "squared error / variance of the targets"
    text = (
        f"{counted(rows, 'row')} came after the first ones, and each was predicted before it was learned. "
        f"The error is the {measure}, a mean over the rows of a window."
    )
    charts = [
        '<div class="pair">',
        figure("stream-errors", _errors(record, measure), "The error of recent rows. Marks are drifts."),
        figure("stream-sizes", _sizes(record), "The size of the network, and what changed it."),
        "</div>",
    ]
    return [paragraph(text), *charts, *_events(record.events)]


def _errors(record: StreamRecord, measure: str) -> str:
    points = [(float(window.end), window.error) for window in record.windows]
    curves = [Line(points, "error", "error")]
    for event in record.events:
        if event.kind == "drift":
            place = next((i for i, (end, _) in enumerate(points) if end >= event.row), len(points) - 1)
            curves.append(Line([points[place]], "drift", "drift", marked=0, remark=_said(event)))
    return lines(curves, "rows", measure)


def _sizes(record: StreamRecord) -> str:
    marks = [Point(window.end, window.n_parameters, "network", "size", 2.0) for window in record.windows]
    marks += [
        Point(
            event.row, event.n_parameters, f"{_WORDS[event.kind][0]}, {_said(event)}", _WORDS[event.kind][0]
        )
        for event in record.events
        if event.kind != "drift"
    ]
    return scatter(marks, "rows", "parameters")


def _events(events: tuple[StreamEvent, ...]) -> list[str]:
    if not events:
        return [paragraph("No drift was found, and nothing was grown or dropped.", "note")]
    rows = [
        (f"{event.row:,}", _WORDS[event.kind][0], _said(event), f"{event.n_parameters:,}") for event in events
    ]
    return [table("stream-events", ("after rows", "event", "", "parameters"), rows, words=(1, 2))]


def _said(event: StreamEvent) -> str:
    if event.kind == "drift" and event.value in (0.0, 1.0):
        return "rows from before it " + ("count as before" if event.value else "are forgotten")
    value = f"{100 * event.value:.1f} %" if event.kind in ("grown", "tried") else short(event.value)
    return _WORDS[event.kind][1].format(value)
