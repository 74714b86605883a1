"""One file of a checkpoint: a value, the seconds that it took, and whether its growth was stopped by then."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.numpy
from safetensors import SafetensorError

from ..atomic import write_atomically
from .codec import decode, encode

__all__ = ["Record", "parse_record", "read_content", "read_record", "write_record"]

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
    return parse_record(path, read_content(path, whole=kind is not None), kind)


def read_content(path: Path, whole: bool = True) -> bytes:
    """The bytes of a file, or those before its arrays."""
    with path.open("rb") as file:
        start = file.read(8)
        size = int.from_bytes(start, "little")
        return start + file.read(-1 if whole else min(size, _MAX_HEADER))


def parse_record(path: Path, content: bytes, kind: Any) -> tuple[Record, Any]:
    """What the bytes of a file say; ``path`` is what an error calls it."""
    try:
        data = json.loads(_description(content))
        arrays = {} if kind is None else safetensors.numpy.load(content)
        if not isinstance(data, dict) or data.keys() != {"record", "value"}:
            raise ValueError("its description is not complete")
        record = decode(Record, data["record"], {})
        return record, None if kind is None else decode(kind, data["value"], arrays)
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        raise damaged(path, error) from error


def _description(content: bytes) -> str:
    """The text in a file's header, which `opgrow.checkpoints.codec` takes apart."""
    size = int.from_bytes(content[:8], "little")
    if size > _MAX_HEADER:
        raise ValueError(f"its header has {size} bytes, and at most {_MAX_HEADER} are allowed")
    header = json.loads(content[8 : 8 + size])
    about = header.get("__metadata__") if isinstance(header, dict) else None
    text = about.get(_KEY) if isinstance(about, dict) else None
    if not isinstance(text, str):
        raise ValueError("it has no description")
    return text


def damaged(path: Path, why: Exception | str) -> ValueError:
    """The complaint about a file that a fit cannot go on from."""
    words = " ".join(str(why).split())[:300].rstrip(".")
    return ValueError(
        f"{str(path)!r} is no checkpoint that this fit can go on from: {words}; delete its folder to begin "
        "anew."
    )
