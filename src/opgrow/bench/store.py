"""Finished runs of an experiment, one small JSON file each: an interrupted study is resumed where it stopped.

A file is written atomically when its run has ended, never before. Every run carries the settings that decide
its outcome; a folder that holds the same run with other settings is refused, not mixed in.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..common.atomic import write_atomically

__all__ = ["Store"]

_ENDING = ".json"


class Store:
    """A folder of finished runs.

    Parameters
    ----------
    folder : path-like
        Made when the first run is saved.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> store.save("pima/0/HeMLGOP", {"seed": 0}, {"accuracy": 0.77})
    >>> store.load("pima/0/HeMLGOP", {"seed": 0})
    {'accuracy': 0.77}
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def load(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """What came of a run, or None if it has not ended yet."""
        path = self._path(name)
        if not path.exists():
            return None
        saved = _read(path)
        if saved["settings"] != _plain(settings):
            raise ValueError(
                f"{str(self.folder)!r} holds the run {name!r} with other settings; name another folder or "
                "remove that one"
            )
        return saved["result"]

    def save(self, name: str, settings: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep what came of a run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        record = {"name": name, "settings": _plain(settings), "result": _plain(result)}
        write_atomically(self._path(name), (json.dumps(record, indent=1) + "\n").encode())

    def results(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Names and results of all finished runs, by name."""
        records = [_read(path) for path in self.folder.glob(f"*{_ENDING}")]
        for record in sorted(records, key=lambda record: record["name"]):
            yield record["name"], record["result"]

    def _path(self, name: str) -> Path:
        """A readable file name, and a few digits for names that read the same."""
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        readable = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:80]
        return self.folder / f"{readable}-{digest}{_ENDING}"


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON gives it back: tuples are lists, and keys are text."""
    return json.loads(json.dumps(dict(values)))


def _read(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or not {"name", "settings", "result"} <= record.keys():
            raise ValueError("keys are missing")
    except (OSError, ValueError) as error:
        raise ValueError(f"{str(path)!r} is not the record of a run ({error}); remove it") from None
    return record
