"""What has happened to a network while rows went on coming: errors of recent rows, its size, and events.

The record is bounded: when it has as many windows as it may have, neighbours become one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["EVENTS", "StreamEvent", "StreamRecord", "StreamWindow"]

#: Kinds of events: a drift was found; a network was grown and stays; one was grown and does not; blocks went.
EVENTS = ("drift", "grown", "tried", "dropped")
#: Rows of a window at first, and windows and events that are kept at most.
_WINDOW_ROWS, _MOST = 100, 200


@dataclass(frozen=True)
class StreamWindow:
    """Rows that followed each other.

    Attributes
    ----------
    end : how many rows there were in the stream until the end of the window
    n_rows : of the window
    error : their mean error, each predicted before it was learned: the share of wrong classes or, of numbers,
        the squared error in units of the variance of the targets
    n_parameters : of the network at the end
    """

    end: int
    n_rows: int
    error: float
    n_parameters: int

    def joined(self, later: StreamWindow) -> StreamWindow:
        """The window together with the one after it."""
        n = self.n_rows + later.n_rows
        error = (self.error * self.n_rows + later.error * later.n_rows) / n
        return StreamWindow(later.end, n, error, later.n_parameters)


@dataclass(frozen=True)
class StreamEvent:
    """What happened after so many rows.

    Attributes
    ----------
    row : how many rows there were in the stream
    kind : "drift", "grown", "tried" or "dropped"
    value : of a "drift", how much rows from before it count after it; of a growth, the relative improvement
        of the score; of "dropped", the number of neurons that went
    n_parameters : of the network after it
    """

    row: int
    kind: str
    value: float
    n_parameters: int


@dataclass(frozen=True)
class StreamRecord:
    """Windows and events in their order; the last windows have at least ``window_rows`` rows.

    Examples
    --------
    >>> record = StreamRecord()
    >>> for end in range(50, 401, 50):
    ...     record = record.noted(end, 50, 10.0, 120)
    >>> [(window.end, window.error) for window in record.windows]
    [(100, 0.2), (200, 0.2), (300, 0.2), (400, 0.2)]
    """

    window_rows: int = _WINDOW_ROWS
    windows: tuple[StreamWindow, ...] = ()
    events: tuple[StreamEvent, ...] = ()

    def noted(self, end: int, n_rows: int, error_sum: float, n_parameters: int) -> StreamRecord:
        """The record with rows that have been predicted, and the sum of their errors."""
        windows, every = list(self.windows), self.window_rows
        new = StreamWindow(end, n_rows, error_sum / n_rows, n_parameters)
        if windows and windows[-1].n_rows < every:
            new = windows.pop().joined(new)
        windows.append(new)
        if len(windows) > _MOST:
            windows = [a.joined(b) for a, b in zip(windows[:-1:2], windows[1::2], strict=True)] + windows[
                len(windows) // 2 * 2 :
            ]
            every *= 2
        return replace(self, window_rows=every, windows=tuple(windows))

    def happened(self, event: StreamEvent) -> StreamRecord:
        """The record with one event more; the oldest one goes where there are very many."""
        return replace(self, events=(*self.events, event)[-_MOST:])

    def error_of_last(self, n_rows: int) -> float:
        """The mean error of the last windows that have so many rows together, or of all there are."""
        total, count = 0.0, 0
        for window in reversed(self.windows):
            if count >= n_rows:
                break
            total, count = total + window.error * window.n_rows, count + window.n_rows
        return total / count if count else float("nan")
