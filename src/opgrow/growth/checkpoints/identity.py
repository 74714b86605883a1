"""Which fit a folder belongs to: ``run.json``."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from ...common.atomic import write_atomically
from ...common.checksums import check_seal, is_sealed, seal
from ...common.version import __version__
from .codec import decode, encode
from .record_files import damaged

__all__ = ["Identity", "Run", "begin_run", "read_run"]

#: Version of all files of a folder; 1 had no checksums.
FORMAT = 2
#: Bytes of the file at most; it holds the parameters of an estimator.
_MAX_SIZE = 1 << 24


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

    def why_not(self, saved: Identity) -> str | None:
        """Why a fit that was kept is not this one; None if it is."""
        for name in ("format", "library", "estimator", "backend"):
            mine, theirs = getattr(self, name), getattr(saved, name)
            if mine != theirs:
                return f"a fit with {name} {theirs}, and this one has {mine}"
        for name in sorted({*self.parameters, *saved.parameters}):
            mine, theirs = (which.parameters.get(name, "none") for which in (self, saved))
            if mine != theirs:
                return f"a fit with {name}={_short(theirs)}, and this one has {name}={_short(mine)}"
        for name in sorted({*self.data, *saved.data}):
            mine, theirs = (which.data.get(name, "none") for which in (self, saved))
            if mine != theirs:
                return f"a fit on other data: {name} was {theirs}, and is {mine}"
        if not self.any_seed and self.seed != saved.seed:
            return f"a fit with the seed {saved.seed}, and this one has {self.seed}"
        return None


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


@dataclass(frozen=True)
class Run:
    """A fit, and the key of the run that has begun it: the checksums of the other files know it."""

    identity: Identity
    key: str


def begin_run(path: Path, identity: Identity) -> Run:
    """Write the file for a fit that begins."""
    run = Run(identity, secrets.token_hex(8))
    write_atomically(path, seal(json.dumps(encode(run)[0], indent=1), ()).encode())
    return run


def read_run(path: Path) -> Run:
    """What `begin_run` wrote, if it is still the same."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_SIZE).decode()
        if not is_sealed(text):
            raise ValueError("it has no checksum, or was written by a version that had none")
        check_seal(text, ())
        data = json.loads(text)
        del data["checksum"]
        return decode(Run, data, {})
    except (ValueError, OverflowError, RecursionError) as error:
        raise damaged(path, error) from error
