"""One file of a checkpoint: a value, the seconds that it took, and whether its growth was stopped by then.

Its checksum covers all of that, and also its name and the run that it belongs to: a file that is whole but
was swapped with another, or comes from another fit, is refused like one that is not whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.numpy
from safetensors import SafetensorError

from ...common.atomic import write_atomically
from ...common.checksums import check_seal, seal, tensors_in
from .codec import decode, encode

__all__ = ["Record", "damaged", "parse_record", "read_content", "read_record", "write_record"]

_KEY = "opgrow-checkpoint"
#: Bytes of a file's header at most: it holds the history of a tuning, or what came of a search.
_MAX_HEADER = 1 << 25


@dataclass(frozen=True)
class Record:
    """What a file says beside its value.

    Attributes
    ----------
    title : what the piece of work is
    finished : whether it is done, or to be resumed
    seconds : that it has taken; elapsed : since the fit began, over all its runs
    stopped : why the growth was ended by then, or None
    """

    title: str
    finished: bool
    seconds: float
    elapsed: float
    stopped: str | None = None


def write_record(path: Path, run: str, record: Record, value: Any) -> None:
    """Write a file that is there as a whole or not at all; ``run`` is the fit that it belongs to."""
    plain, arrays = encode(value)
    about, _ = encode(record)
    text = json.dumps({"record": about, "value": plain}, allow_nan=False, separators=(",", ":"))
    sealed = seal(text, tensors_in(safetensors.numpy.save(arrays)), _place(path, run))
    content = safetensors.numpy.save(arrays, metadata={_KEY: sealed})
    _check_header(content[:8])
    write_atomically(path, content)


def read_record(path: Path, run: str, kind: Any) -> tuple[Record, Any]:
    """What `write_record` wrote; ``kind`` is the value's type, None for the record alone."""
    return parse_record(path, read_content(path, run), kind)


def read_content(path: Path, run: str) -> bytes:
    """The bytes of a file that is whole, in its place and of this run."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            _check_header(start)
            content = start + file.read()
        check_seal(_description(content), tensors_in(content), _place(path, run))
        return content
    except (SafetensorError, ValueError, RecursionError) as error:
        raise damaged(path, error) from error


def parse_record(path: Path, content: bytes, kind: Any) -> tuple[Record, Any]:
    """What the bytes of a file say, which `read_content` has found whole; ``path`` is what errors call it."""
    try:
        data = json.loads(_description(content))
        arrays = {} if kind is None else safetensors.numpy.load(content)
        if not isinstance(data, dict) or data.keys() != {"record", "value", "checksum"}:
            raise ValueError("its description is not complete")
        record = decode(Record, data["record"], {})
        return record, None if kind is None else decode(kind, data["value"], arrays)
    except (SafetensorError, ValueError, KeyError, OverflowError, RecursionError) as error:
        raise damaged(path, error) from error


def _place(path: Path, run: str) -> str:
    """What a file's checksum says beside its content, so that no other file can stand in for it."""
    return f"{run} {path.name}"


def _check_header(start: bytes) -> None:
    size = int.from_bytes(start, "little")
    if size > _MAX_HEADER:
        raise ValueError(f"its header has {size} bytes, and at most {_MAX_HEADER} are allowed")


def _description(content: bytes) -> str:
    """The text in a file's header, which `opgrow.growth.checkpoints.codec` takes apart."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    about = header.get("__metadata__") if isinstance(header, dict) else None
    text = about.get(_KEY) if isinstance(about, dict) else None
    if not isinstance(text, str):
        raise ValueError("it has no description")
    return text


def damaged(path: Path, why: Exception | str) -> ValueError:
    """The complaint about a file that a fit cannot go on from."""
    words = " ".join(str(why).split())[:300].rstrip(".")
    return ValueError(f"{str(path)!r} is damaged: {words}; delete the folder to start again.")
