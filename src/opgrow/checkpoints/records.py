"""One file of a checkpoint: a value, the seconds that it took, and whether its growth was stopped by then."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.numpy
from safetensors import SafetensorError, safe_open

from ..atomic import write_atomically
from .codec import decode, encode

__all__ = ["Record", "read_record", "write_record"]

_KEY = "opgrow-checkpoint"
#: Bytes of a file's header at most: it holds the history of a tuning, or what came of a search.
_MAX_HEADER = 1 << 26


@dataclass(frozen=True)
class Record:
    """What a file says beside its value.

    Attributes
    ----------
    title : what the piece of work is
    finished : whether it is done, or to be gone on with
    seconds : that it has taken; elapsed : since the fit began, over all its runs
    stopped : why the growth was ended by then, or None
    """

    title: str
    finished: bool
    seconds: float
    elapsed: float
    stopped: str | None = None


def write_record(path: Path, record: Record, value: Any) -> None:
    """Write a file that is there as a whole or not at all."""
    plain, arrays = encode(value)
    about, _ = encode(record)
    text = json.dumps({"record": about, "value": plain}, allow_nan=False, separators=(",", ":"))
    write_atomically(path, safetensors.numpy.save(arrays, metadata={_KEY: text}))


def read_record(path: Path, kind: Any) -> tuple[Record, Any]:
    """What `write_record` wrote; ``kind`` is the value's type, None for the record alone."""
    try:
        size = int.from_bytes(path.open("rb").read(8), "little")
        if size > _MAX_HEADER:
            raise ValueError(f"its header has {size} bytes, and at most {_MAX_HEADER} are allowed")
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(_KEY)
            if text is None:
                raise ValueError("it has no description")
            arrays = {} if kind is None else {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        data = json.loads(text)
        if not isinstance(data, dict) or data.keys() != {"record", "value"}:
            raise ValueError("its description is not complete")
        record = decode(Record, data["record"], {})
        return record, None if kind is None else decode(kind, data["value"], arrays)
    except (SafetensorError, ValueError, RecursionError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, why: Exception | str) -> ValueError:
    """The complaint about a file that a fit cannot go on from."""
    words = " ".join(str(why).split())[:300].rstrip(".")
    return ValueError(
        f"{str(path)!r} is no checkpoint that this fit can go on from: {words}; delete its folder to begin "
        "anew."
    )
