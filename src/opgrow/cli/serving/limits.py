"""What clients may ask of the server, and the error that says that one asked for more."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits", "Refused"]


@dataclass(frozen=True)
class Limits:
    """How many, large and slow requests may be.

    Attributes
    ----------
    workers : predictions at the same time
    queue : requests that may wait for a worker
    max_connections : open connections
    max_rows : rows of a request
    max_numbers : numbers of an answer: a model with many classes answers fewer rows at once
    max_body : bytes of a request
    max_memory : bytes of all bodies and answers that are under way
    header_seconds : time for the head of a request, and the longest pause between requests
    body_seconds : time for the whole body of a request
    answer_seconds : the longest time that a request may wait and compute
    stall_seconds : the longest time in which a client may take nothing of its answer
    close_seconds : time for a client to take the rest of what was sent when its connection is closed
    """

    workers: int = 2
    queue: int = 256
    max_connections: int = 1000
    max_rows: int = 100_000
    max_numbers: int = 5_000_000
    max_body: int = 8 << 20
    max_memory: int = 256 << 20
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    answer_seconds: float = 60.0
    stall_seconds: float = 20.0
    close_seconds: float = 5.0


class Refused(Exception):
    """A request that is answered with an error: the status, and one sentence on what is wrong."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
