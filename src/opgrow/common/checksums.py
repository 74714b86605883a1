"""Checksums: a file that was damaged after it was written is detected before anything in it is used.

A file of this package is a JSON object as text, and tensors. Its checksum is the last field of the object and
covers the rest of the text, the name, data type, shape and bytes of every tensor, and, where it matters, the
place that the file belongs to. It detects accidents, not forgeries: anyone who can write a file can also
write its checksum.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import safetensors

__all__ = ["Tensor", "check_seal", "is_sealed", "seal", "tensors_in"]

#: Name, data type and shape as the header of a safetensors file has them, and the bytes.
Tensor = tuple[str, str, Sequence[int], Any]

_SIZE = 16
_SEAL = re.compile(rf',"checksum":"([0-9a-f]{{{2 * _SIZE}}})"\}}\Z')


def seal(text: str, tensors: Iterable[Tensor], place: str = "") -> str:
    """The text of a JSON object that is not empty, with the checksum of it and its tensors as last field."""
    return f'{text[:-1]},"checksum":"{_checksum(text, tensors, place)}"}}'


def is_sealed(text: str) -> bool:
    """Whether a text ends with a checksum, be it the right one or not."""
    return _SEAL.search(text) is not None


def check_seal(text: str, tensors: Iterable[Tensor], place: str = "") -> None:
    """Refuse a text without checksum, or with one that is not that of the text, the tensors and the place."""
    match = _SEAL.search(text)
    if match is None:
        raise ValueError("it has no checksum")
    if _checksum(text[: match.start()] + "}", tensors, place) != match[1]:
        raise ValueError("its content does not match its checksum")


def tensors_in(content: bytes) -> list[Tensor]:
    """The tensors in the bytes of a safetensors file."""
    return [(name, t["dtype"], t["shape"], t["data"]) for name, t in safetensors.deserialize(content)]


def _checksum(text: str, tensors: Iterable[Tensor], place: str) -> str:
    """Each tensor has a digest of its own, so that the order in which they are read does not matter."""
    parts = [_digest(f"{name}\0{dtype}\0{list(shape)}", data) for name, dtype, shape, data in tensors]
    return _digest(f"{place}\0{text}", b"".join(sorted(parts))).hex()


def _digest(text: str, data: Any) -> bytes:
    encoded = text.encode()
    digest = hashlib.blake2b(len(encoded).to_bytes(8, "little"), digest_size=_SIZE)
    digest.update(encoded)
    digest.update(data)
    return digest.digest()
