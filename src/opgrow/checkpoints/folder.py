"""The folder of a fit that can be gone on with.

``run.json`` says which fit it is; ``lock`` is held by the process that works on it; one ``.safetensors`` file
holds each piece of work (`opgrow.checkpoints.journal`). A folder belongs to one fit: another one, or another
process at the same time, is refused.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .._version import __version__
from ..atomic import write_atomically
from .codec import decode, encode
from .interruption import Interrupted, Interruption, listening
from .journal import FileJournal, Journal
from .records import Record, damaged, read_record, write_record

__all__ = [
    "Folder",
    "Identity",
    "NoFolder",
    "claimed",
    "clear",
    "holds_a_fit",
    "kept_seed",
    "opened",
    "working",
]

FORMAT = 1
_RUN, _LOCK = "run.json", "lock"


@dataclass(frozen=True)
class Identity:
    """Which fit it is: texts by which it is told from others, and the seed that it was begun with.

    A fit whose ``random_state`` is None goes on with the seed of the run that began it (``any_seed``).
    """

    estimator: str
    backend: str
    parameters: dict[str, str]
    data: dict[str, str]
    seed: int
    any_seed: bool
    library: str = __version__
    format: int = FORMAT

    def why_not(self, kept: Identity) -> str | None:
        """Why a fit that was kept is not this one; None if it is."""
        for name in ("format", "library", "estimator", "backend"):
            mine, theirs = getattr(self, name), getattr(kept, name)
            if mine != theirs:
                return f"a fit with {name} {theirs}, and this one has {mine}"
        for name in sorted({*self.parameters, *kept.parameters}):
            mine, theirs = (which.parameters.get(name, "none") for which in (self, kept))
            if mine != theirs:
                return f"a fit with {name}={_short(theirs)}, and this one has {name}={_short(mine)}"
        for name in sorted({*self.data, *kept.data}):
            mine, theirs = (which.data.get(name, "none") for which in (self, kept))
            if mine != theirs:
                return f"a fit on other data: {name} was {theirs}, and is {mine}"
        if not self.any_seed and self.seed != kept.seed:
            return f"a fit with the seed {kept.seed}, and this one has {self.seed}"
        return None


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


class NoFolder:
    """Where nothing is saved."""

    elapsed_before = 0.0

    def journal(self, name: str) -> Journal:
        return Journal()


class Folder(NoFolder):
    """An open folder.

    Attributes
    ----------
    path : the folder; seconds : between two drafts of the same work, at most
    seed : of the fit
    elapsed_before : seconds that earlier runs of the fit have taken
    interruption : whether the fit has been asked to end
    """

    def __init__(self, path: Path, seconds: float, interruption: Interruption) -> None:
        self.path, self.seconds, self.interruption = path, seconds, interruption
        self.seed = 0
        self.elapsed_before = 0.0
        self._started = time.perf_counter()
        self._guard, self._closed = threading.Lock(), False

    def journal(self, name: str) -> FileJournal:
        return FileJournal(self, name)

    def elapsed(self) -> float:
        """Seconds since the fit began, over all its runs."""
        return self.elapsed_before + time.perf_counter() - self._started

    def files(self, prefix: str = "") -> list[Path]:
        return sorted(self.path.glob(f"{prefix}*.safetensors"))

    def read(self, path: Path, kind: Any) -> tuple[Record, Any] | None:
        """What a file says, if it is there."""
        return read_record(path, kind) if path.exists() else None

    def write(self, path: Path, record: Record, value: Any) -> None:
        """Write a file, unless the fit is over: threads of a fit that was ended may still work."""
        with self._guard:
            if not self._closed:
                write_record(path, record, value)

    def delete(self, prefix: str, since: str = "") -> None:
        """Delete the files whose names begin so; of these the ones that come not before ``since``."""
        for path in self.files(prefix):
            if path.name >= since:
                path.unlink(missing_ok=True)

    def asked(self) -> bool:
        """Whether the fit has been asked to end."""
        return self.interruption.asked

    def due(self, saved: float) -> bool:
        """Whether a draft that was saved then is to be saved again."""
        return time.perf_counter() - saved >= self.seconds

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
        run = self.path / _RUN
        if not run.exists():
            other = next((f.name for f in self.path.iterdir() if f.name != _LOCK), None)
            if other is not None:
                raise ValueError(
                    f"{str(self.path)!r} holds {other!r} and no checkpoint: choose an empty folder, or one "
                    "that does not exist."
                )
            write_atomically(run, json.dumps(encode(identity)[0], indent=1).encode())
            self.seed = identity.seed
            return
        try:
            kept = decode(Identity, json.loads(run.read_text()), {})
        except ValueError as error:
            raise damaged(run, error) from error
        why = identity.why_not(kept)
        if why is not None:
            raise ValueError(
                f"{str(self.path)!r} holds {why}: choose another folder, or delete it to begin anew."
            )
        self.seed = kept.seed
        self.elapsed_before = max((read_record(f, None)[0].elapsed for f in self.files()), default=0.0)


def holds_a_fit(path: str | os.PathLike[str]) -> bool:
    """Whether a fit has begun in a folder."""
    return (Path(path) / _RUN).exists()


def kept_seed(path: str | os.PathLike[str]) -> int | None:
    """The seed of the fit that a folder holds, if it holds one."""
    try:
        return decode(Identity, json.loads((Path(path).expanduser() / _RUN).read_text()), {}).seed
    except (OSError, ValueError):
        return None  # what is wrong is said when the folder is opened


def clear(path: str | os.PathLike[str]) -> None:
    """Delete the files of a fit that is finished, and the folder if nothing else is in it."""
    place = Path(path)
    for file in (*place.glob("network*.safetensors"), place / _RUN, place / _LOCK):
        file.unlink(missing_ok=True)
    if not any(place.iterdir()):
        place.rmdir()


@contextmanager
def opened(path: str | os.PathLike[str], seconds: float, identity: Identity) -> Iterator[Folder]:
    """A folder for as long as a fit works in it."""
    folder = Folder(Path(path).expanduser(), seconds, Interruption())
    with claimed(folder, identity), working(folder):
        yield folder


@contextmanager
def claimed(folder: Folder, identity: Identity) -> Iterator[None]:
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
def working(folder: Folder) -> Iterator[None]:
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
