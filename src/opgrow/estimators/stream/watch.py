"""What an estimator remembers of its errors on rows that go on coming."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...growth.stream_record import StreamRecord
from .page_hinkley import Detector

__all__ = ["Watch"]


@dataclass(frozen=True)
class Watch:
    """The detector, and when the network is looked at next; places are numbers of rows in the stream.

    Attributes
    ----------
    detector : of drifts; None where it is a user's, and comes from a file
    since : the place where the present stream began: the first one, or that of the last drift
    due : the place from which the network is looked at
    pause : rows until the look after that
    most : parameters that the network may have where ``max_parameters`` does not say
    n_steps : steps in the history when the watch began; of those after them, the oldest ones go
    before : the error of recent rows at the last look since the last drift, or None
    alarm : the place where a drift began that is still to be judged, or None
    trials : growths that were tried
    record : of errors, sizes and events
    """

    detector: Detector | None
    since: int
    due: int
    pause: int
    most: int
    n_steps: int
    before: float | None = None
    alarm: int | None = None
    trials: int = 0
    record: StreamRecord = field(default_factory=StreamRecord)
