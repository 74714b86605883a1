"""What a model file can hold of a watch over a stream: the state of the built-in detector, and the record.

Detectors of users are not written: an object cannot be told to a file without code. A file that comes from an
estimator with one has none, and the watch goes on with the detector that the parameter ``drift`` then names.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from ...growth.stream_record import EVENTS, StreamEvent, StreamRecord, StreamWindow
from ..stream.page_hinkley import PageHinkley
from ..stream.watch import Watch
from .format import as_number, as_row, of_type, require

__all__ = ["describe_detector", "describe_watch", "restore_detector", "restore_watch"]

#: Windows and events of a record at most; those that are written have fewer.
_MOST = 1000
#: Largest count of rows or parameters.
_LARGEST = 2**62
_COUNTS = ("since", "due", "pause", "most", "n_steps", "trials")


def describe_detector(detector: PageHinkley) -> dict[str, Any]:
    """The built-in detector with its state."""
    return {field.name: getattr(detector, field.name) for field in fields(PageHinkley)}


def restore_detector(data: Any) -> PageHinkley:
    """A detector that a file describes."""
    require(isinstance(data, dict), "a detector of drifts is not a JSON object")
    kinds = {field.name: type(getattr(PageHinkley(), field.name)) for field in fields(PageHinkley)}
    unknown = next((name for name in data if name not in kinds), None)
    require(unknown is None, f"a detector of drifts has the unknown part {unknown!r}")
    values = {name: of_type(data, name, kind) for name, kind in kinds.items()}
    for name, value in values.items():
        finite = math.isfinite(value) and (not isinstance(value, int) or 0 <= value < _LARGEST)
        require(finite and (name != "squares" or value >= 0), f"{name!r} of a detector is {value!r}")
    return PageHinkley(**values)


def describe_watch(watch: Watch) -> dict[str, Any]:
    """The watch as plain data."""
    record, detector = watch.record, watch.detector
    return {
        **{name: getattr(watch, name) for name in _COUNTS},
        "before": watch.before,
        "alarm": watch.alarm,
        "detector": describe_detector(detector) if isinstance(detector, PageHinkley) else None,
        "window_rows": record.window_rows,
        "windows": [[one.end, one.n_rows, one.error, one.n_parameters] for one in record.windows],
        "events": [[one.row, one.kind, _number(one.value), one.n_parameters] for one in record.events],
    }


def restore_watch(data: Any) -> Watch | None:
    """The watch that a file describes, if it does."""
    if data is None:
        return None
    require(isinstance(data, dict), "'watch' is not a JSON object")
    counts = {name: _count(data.get(name), name) for name in _COUNTS}
    for name in ("windows", "events"):
        require(len(of_type(data, name, list)) <= _MOST, f"'watch' has more than {_MOST} {name}")
    record = StreamRecord(
        _count(data.get("window_rows"), "window_rows", 1),
        tuple(_window(item) for item in data["windows"]),
        tuple(_event(item) for item in data["events"]),
    )
    before, alarm, detector = (data.get(name) for name in ("before", "alarm", "detector"))
    return Watch(
        detector=None if detector is None else restore_detector(detector),
        before=None if before is None else as_number(before, "'before'"),
        alarm=None if alarm is None else _count(alarm, "alarm"),
        record=record,
        **counts,
    )


def _window(data: Any) -> StreamWindow:
    end, n_rows, error, size = as_row(data, "window of 'watch'", 4)
    error = as_number(error, "error")
    require(0 <= error < math.inf, f"the error of a window is {error!r}")
    return StreamWindow(_count(end, "end"), _count(n_rows, "rows", 1), error, _count(size, "parameters"))


def _event(data: Any) -> StreamEvent:
    row, kind, value, size = as_row(data, "event of 'watch'", 4)
    require(kind in EVENTS, f"an event of 'watch' is {kind!r}, expected one of {', '.join(EVENTS)}")
    return StreamEvent(
        _count(row, "row"), kind, as_number(value, "value of an event"), _count(size, "parameters")
    )


def _count(value: Any, name: str, least: int = 0) -> int:
    require(
        type(value) is int and least <= value < _LARGEST,
        f"{name!r} of 'watch' is {value!r}, expected a number of at least {least}",
    )
    return int(value)


def _number(value: float) -> Any:
    return value if math.isfinite(value) else {"float": str(value)}
