"""The folder of a fit that can be resumed.

``run.json`` says which fit it is; ``lock`` is held by the process that works on it; one ``.safetensors`` file
holds each piece of work (`journal`). A folder belongs to one fit: another one, or another
process at the same time, is refused. So is a folder with a file that is damaged, missing or in a wrong place,
before anything is done with the others.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from ...common.interruption import Interrupted, Interruption, listening
from ...common.team import ALONE, Alone
from .identity import Identity, Run, begin_run, read_run
from .record_files import Record, damaged, parse_record, read_content, read_record, write_record

__all__ = [
    "Folder",
    "NoFolder",
    "clear",
    "holds_a_fit",
    "kept_seed",
    "opened",
]

_RUN, _LOCK = "run.json", "lock"
#: What ranks share of a folder, as their traffic counts it.
_PURPOSE = "checkpoints"


class NoFolder:
    """Where nothing is saved."""

    elapsed_before = 0.0


class Folder(NoFolder):
    """An open folder.

    Attributes
    ----------
    path : the folder; seconds : between two drafts of the same work, at most
    seed : of the fit; run : a text that no other run has
    elapsed_before : seconds that earlier runs of the fit have taken
    interruption : whether the fit has been asked to end
    team : those who fit; rank 0 reads and writes, and the others are told what it has read
    """

    def __init__(self, path: Path, seconds: float, team: Alone = ALONE) -> None:
        self.path, self.seconds, self.team = path, seconds, team
        self.interruption = Interruption()
        self.seed, self.run = 0, ""
        self.elapsed_before = 0.0
        self._started = time.perf_counter()
        self._guard, self._closed = threading.Lock(), False

    def elapsed(self) -> float:
        """Seconds since the fit began, over all its runs."""
        return self.elapsed_before + time.perf_counter() - self._started

    def files(self, prefix: str = "") -> list[Path]:
        return sorted(self.path.glob(f"{prefix}*.safetensors"))

    def read(self, path: Path, kind: Any) -> tuple[Record, Any] | None:
        """What a file says, if it is there."""
        there = self.writes and path.exists()
        own = self.team.together(lambda: read_content(path, self.run) if there else None)
        content = self.team.content(own, _PURPOSE)
        return None if content is None else parse_record(path, content, kind)

    @property
    def writes(self) -> bool:
        """Whether this process has to reach the folder."""
        return self.team.rank == 0

    def write(self, path: Path, record: Record, value: Any) -> None:
        """Write a file, unless the fit is over: threads of a fit that was ended may still work."""
        self.team.together(lambda: self._write(path, record, value) if self.writes else None)

    def _write(self, path: Path, record: Record, value: Any) -> None:
        with self._guard:
            if not self._closed:
                write_record(path, self.run, record, value)

    def delete(self, prefix: str, since: str = "") -> None:
        """Delete the files whose names begin so, the last one first; only those not before ``since``."""
        for path in reversed(self.files(prefix) if self.writes else []):
            if path.name >= since:
                path.unlink(missing_ok=True)

    def asked(self) -> bool:
        """Whether the fit has been asked to end.

        A signal to one rank is one to all of them; one that comes meanwhile counts the next time.
        """
        signal = max(self.team.numbers(self.interruption.signal or 0, _PURPOSE))
        if signal:
            self.interruption.signal = signal
        return bool(signal)

    def due(self, saved: float) -> bool:
        """Whether a draft that was saved then is to be saved again."""
        return bool(self.team.numbers(time.perf_counter() - saved >= self.seconds, _PURPOSE)[0])

    def check_interruption(self) -> None:
        if self.asked():
            raise Interrupted

    def close(self) -> None:
        with self._guard:
            self._closed = True

    def claim(self, identity: Identity) -> None:
        """Begin the fit here, or find out that it was begun here."""
        for part in self.path.glob(".*.tmp"):  # what a process that was killed has left
            part.unlink(missing_ok=True)
        file = self.path / _RUN
        if not file.exists():
            self._check_empty()
            self._take(begin_run(file, identity))
            return
        saved = read_run(file)
        if saved.identity.format == identity.format:
            self._take(saved)
            self.elapsed_before = self._checked()
        why = identity.why_not(saved.identity)
        if why is not None:
            raise ValueError(
                f"{str(self.path)!r} holds {why}: choose another folder, or delete it to start again."
            )

    def _take(self, run: Run) -> None:
        self.seed, self.run = run.identity.seed, run.key

    def _check_empty(self) -> None:
        work = next(iter(self.files("network")), None)
        if work is not None:
            raise damaged(self.path / _RUN, f"it is missing, though {work.name!r} is there")
        other = next((file for file in self.path.iterdir() if file.name != _LOCK), None)
        if other is not None:
            raise ValueError(
                f"{str(self.path)!r} holds {other.name!r} and no checkpoint: choose an empty folder, or one "
                "that does not exist."
            )

    def _checked(self) -> float:
        """Refuse what is damaged, and what has gaps; the seconds that the fit has taken by now."""
        elapsed = 0.0
        for file in self.files("network"):
            elapsed = max(elapsed, read_record(file, self.run, None)[0].elapsed)
            missing = _first_missing(file)
            if missing is not None:
                raise damaged(missing, f"it is missing, though {file.name!r}, which comes after it, is there")
        return elapsed


def _first_missing(path: Path) -> Path | None:
    """The piece of work before this one, if its file is not there: no work begins before the last is done."""
    name, number = path.stem.split("-")[:2]
    before = path.with_name(f"{name}-{int(number) - 1:04d}{path.suffix}")
    return None if int(number) == 1 or before.exists() else before


def holds_a_fit(path: str | os.PathLike[str]) -> bool:
    """Whether a fit has begun in a folder."""
    return (Path(path) / _RUN).exists()


def kept_seed(path: str | os.PathLike[str]) -> int | None:
    """The seed of the fit that a folder holds, if it holds one."""
    try:
        return read_run(Path(path).expanduser() / _RUN).identity.seed
    except (OSError, ValueError):
        return None  # what is wrong is said when the folder is opened


def clear(path: str | os.PathLike[str]) -> None:
    """Delete the files of a fit that is finished, and the folder if nothing else is in it."""
    place = Path(path)
    # The last piece of work first: whoever is cut off here leaves a checkpoint that is whole.
    for file in (*sorted(place.glob("network*.safetensors"), reverse=True), place / _RUN, place / _LOCK):
        file.unlink(missing_ok=True)
    if not any(place.iterdir()):
        place.rmdir()


@contextmanager
def opened(
    path: str | os.PathLike[str], seconds: float, identity: Identity, team: Alone = ALONE
) -> Iterator[Folder]:
    """A folder for as long as a fit works in it; what is wrong with it is an error on all ranks."""
    folder = Folder(Path(path).expanduser(), seconds, team)
    with ExitStack() as stack:
        team.together(lambda: stack.enter_context(_claimed(folder, identity)) if folder.writes else None)
        folder.seed = team.same_number(folder.seed)
        folder.elapsed_before = team.largest(folder.elapsed_before)  # the others know of none
        stack.enter_context(_working(folder))
        yield folder


@contextmanager
def _claimed(folder: Folder, identity: Identity) -> Iterator[None]:
    """Make a folder this fit's, and let no other process in."""
    place = folder.path
    if place.exists() and not place.is_dir():
        raise NotADirectoryError(f"checkpoint_dir must be a folder, and {str(place)!r} is a file.")
    place.mkdir(parents=True, exist_ok=True)
    with (place / _LOCK).open("a") as handle:
        _lock(handle, place)
        folder.claim(identity)
        yield


@contextmanager
def _working(folder: Folder) -> Iterator[None]:
    """Let signals save before they end the fit, and nothing be written once it is over."""
    with listening(folder.interruption):
        try:
            yield
        finally:
            folder.close()


def _lock(handle: IO[str], place: Path) -> None:
    """Hold the folder until the file is closed, or the process ends in whatever way."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise BlockingIOError(
            f"Another fit works in {str(place)!r}: wait for it, or choose another folder."
        ) from error
