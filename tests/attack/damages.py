"""Accidents that happen to bytes: what disks, transfers and people do to a file."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

__all__ = ["DAMAGES"]

Damage = Callable[[Random, bytes, bytes], bytes]


def flip_one_bit(rng: Random, content: bytes, other: bytes) -> bytes:
    return _flipped(content, [rng.randrange(8 * len(content))])


def flip_a_bit_near_the_end(rng: Random, content: bytes, other: bytes) -> bytes:
    return _flipped(content, [8 * len(content) - 1 - rng.randrange(min(512, 8 * len(content)))])


def flip_several_bits(rng: Random, content: bytes, other: bytes) -> bytes:
    return _flipped(content, [rng.randrange(8 * len(content)) for _ in range(rng.choice([2, 3, 16, 200]))])


def truncate(rng: Random, content: bytes, other: bytes) -> bytes:
    return content[: rng.choice([0, 1, 7, 8, len(content) - 1, rng.randrange(len(content))])]


def append(rng: Random, content: bytes, other: bytes) -> bytes:
    return content + rng.choice([b"\0", b"\n", b" ", rng.randbytes(50), other])


def zero_a_sector(rng: Random, content: bytes, other: bytes) -> bytes:
    size = rng.choice([1, 16, 512])
    at = rng.randrange(len(content))
    return content[:at] + bytes(len(content[at : at + size])) + content[at + size :]


def splice(rng: Random, content: bytes, other: bytes) -> bytes:
    """The beginning of one file and the end of another."""
    at = rng.randrange(len(content))
    return content[:at] + other[at if rng.random() < 0.7 else rng.randrange(len(other)) :]


def move_a_part(rng: Random, content: bytes, other: bytes) -> bytes:
    size = rng.choice([1, 4, 64])
    source, target = rng.randrange(len(content)), rng.randrange(len(content))
    part = content[source : source + size]
    return content[:target] + part + content[target + len(part) :]


def line_ends(rng: Random, content: bytes, other: bytes) -> bytes:
    """What a transfer as text does."""
    return content.replace(*rng.choice([(b"\n", b"\r\n"), (b"\r\n", b"\n"), (b"\r", b"\n"), (b"\x1a", b"")]))


DAMAGES: list[Damage] = [
    flip_one_bit,
    flip_one_bit,
    flip_a_bit_near_the_end,
    flip_several_bits,
    truncate,
    append,
    zero_a_sector,
    splice,
    move_a_part,
    line_ends,
]


def _flipped(content: bytes, places: list[int]) -> bytes:
    found = bytearray(content)
    for place in places:
        found[place // 8] ^= 1 << place % 8
    return bytes(found)
