"""What a growing network has done so far, piece by piece.

Growth is a fixed course of pieces of work: a search, a tuning, the training of a population. Each takes a
place in the journal of its network. A growth that is begun again takes the same course; where the journal has
a piece of work, its result is recalled instead of being computed, and what is quick is computed once more. So
the network is the same, bit for bit, wherever the growth was cut off.

A long piece of work keeps a draft: where it stands, saved from time to time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ...common.interruption import Interrupted
from ...training.draft import Check, Draft
from .folder import Folder, NoFolder
from .record_files import Record, damaged

__all__ = ["FileDraft", "FileJournal", "Journal", "journal_of"]

Value = TypeVar("Value")


class Journal:
    """Remembers nothing: every piece of work is done.

    Attributes
    ----------
    stopped : why a listener has ended the growth, or None
    """

    def __init__(self) -> None:
        self.stopped: str | None = None

    def clock(self) -> float:
        """Seconds, of which the differences are what work has taken, in this run or in an earlier one."""
        return time.perf_counter()

    def draft(self, title: str) -> Draft:
        """The draft of the next piece of work."""
        return Draft()


class FileJournal(Journal):
    """Keeps each piece of work in a file of a checkpoint's folder."""

    def __init__(self, folder: Folder, name: str) -> None:
        super().__init__()
        self.folder, self.name = folder, name
        self.position = 0
        self.recalled_seconds = 0.0

    def clock(self) -> float:
        return time.perf_counter() + self.recalled_seconds

    def draft(self, title: str) -> FileDraft:
        self.folder.check_interruption()
        self.position += 1
        return FileDraft(self, f"{self.name}-{self.position:04d}", title)

    def forget_rest(self) -> None:
        """Forget the work at this place and at all that follow."""
        self.folder.delete(f"{self.name}-", since=f"{self.name}-{self.position:04d}")


class FileDraft(Draft):
    """A draft that is saved in a file; once finished it stays, and its parts go."""

    saves = True

    def __init__(self, journal: FileJournal, stem: str, title: str, whole: bool = True) -> None:
        self.journal, self.stem, self.title, self.whole = journal, stem, title, whole
        self.path: Path = journal.folder.path / f"{stem}.safetensors"
        self.seconds, self.finished = 0.0, False
        self.began = self.saved = time.perf_counter()

    def recall(self, kind: type[Value], check: Check | None = None) -> Value | None:
        content = self.journal.folder.read(self.path, kind)
        if content is None:
            return None
        record, value = content
        if record.title != self.title:
            # A growth that was ended by a clock, or by somebody's callback, may have gone another way.
            self.journal.forget_rest()
            return None
        self.seconds, self.finished = record.seconds, record.finished
        if self.whole:
            self.journal.recalled_seconds += record.seconds
            self.journal.stopped = self.journal.stopped or record.stopped
        if check is not None:
            try:
                check(value)
            except ValueError as error:
                raise damaged(self.path, error) from error
        return value

    def offer(self, state: Callable[[], Any]) -> None:
        folder = self.journal.folder
        asked = folder.asked()
        if asked or folder.due(self.saved):
            value = state()
            if value is not None:
                self._write(value, finished=False)
            self.saved = time.perf_counter()
        if asked:
            raise Interrupted

    def finish(self, state: Callable[[], Any]) -> None:
        if not self.finished:  # it may have been in another run
            self._write(state(), finished=True)
        self.journal.folder.delete(f"{self.stem}-part")
        self.journal.folder.check_interruption()

    def part(self, number: int) -> FileDraft:
        return FileDraft(self.journal, f"{self.stem}-part{number:03d}", self.title, whole=False)

    def _write(self, value: Any, finished: bool) -> None:
        folder = self.journal.folder
        seconds = self.seconds + time.perf_counter() - self.began
        record = Record(self.title, finished, seconds, folder.elapsed(), self.journal.stopped)
        folder.write(self.path, record, value)


def journal_of(folder: NoFolder | Folder, name: str) -> Journal:
    """The journal of a network in a folder, or one that remembers nothing where there is none."""
    return FileJournal(folder, name) if isinstance(folder, Folder) else Journal()
