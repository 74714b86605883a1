"""The tables of weights as C text, and the macros that read them from wherever they are.

A ``weights_t`` is where weights begin: a pointer or, where two of them share a byte, a number. Either way
``WEIGHT_AT(w + i)`` is the weight that is i places further on, a ``weight_t``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from . import c_text as text
from .c_platform import flash_macros
from .c_storage import STORAGES, Storage

__all__ = ["described", "types_of", "weight_tables", "weights_bytes"]

#: An ``int`` has 16 bits or more.
_MOST_IN_AN_INT = 2**15 - 1
#: How many bytes of packed weights stand on a line.
_ON_A_LINE = 20
_PACKED = """\
/* Weights are numbers of levels, two in a byte; a weights_t is the place of the first of some. */
typedef {place} weights_t;

{levels}
{packed}
{places}
static INLINE weight_t level_at(weights_t place)
{{
    const uint8_t both = PAIR_AT(packed + (place >> 1));
    return LEVEL_AT(levels + (place & 1 ? both >> 4 : both & 15));
}}
#define WEIGHT_AT(place) level_at(place)
"""


def weight_tables(
    weights: str,
    tables: Mapping[str, Sequence[np.ndarray]],
    others: Sequence[tuple[str, str]],
    structures: bool = False,
) -> str:
    """``weights_PLACE`` for each place and its rows of weights, and macros that read tables from flash.

    ``others`` are further macros, pairs of a name and a type; ``structures`` adds ``COPY``.
    """
    stored = STORAGES[weights]
    kinds = f"typedef {stored.c_type} weight_t;\n"
    if stored.levels:
        macros = flash_macros([*others, ("LEVEL_AT", stored.c_type), ("PAIR_AT", "uint8_t")], structures)
        return "\n".join([macros, kinds, _packed(stored, tables)])
    arrays = [
        text.array(f"weight_t weights_{place}[{sum(map(len, rows))}] IN_FLASH", rows)
        for place, rows in tables.items()
    ]
    macros = flash_macros([*others, ("WEIGHT_AT", stored.c_type)], structures)
    kinds += "typedef const weight_t *weights_t;\n"
    return "\n".join([macros, kinds, *arrays])


def types_of(weights: str) -> list[str]:
    """The types whose sizes tables of weights rely on."""
    stored = STORAGES[weights]
    return [stored.c_type, "uint8_t"] if stored.levels else [stored.c_type]


def weights_bytes(weights: str, counts: Sequence[int]) -> int:
    """What tables of so many weights take, levels included."""
    stored = STORAGES[weights]
    return len(stored.levels) + sum((count * stored.bits + 7) // 8 for count in counts)


def described(weights: str) -> str:
    """How weights are stored, in words."""
    stored = STORAGES[weights]
    return f"{weights} (one of {len(stored.levels)} levels)" if stored.levels else weights


def _packed(stored: Storage, tables: Mapping[str, Sequence[np.ndarray]]) -> str:
    """One table for all weights, each place at the beginning of a byte."""
    pairs: list[np.ndarray] = []
    places = ""
    for place, rows in tables.items():
        values = np.concatenate(rows)
        numbers = np.searchsorted(stored.levels, np.append(values, [0] * (len(values) % 2)))
        places += f"#define weights_{place} {2 * sum(map(len, pairs))}\n"
        pairs.append(numbers[::2] | numbers[1::2] << 4)
    packed = np.concatenate(pairs)
    lines = np.split(packed, range(_ON_A_LINE, len(packed), _ON_A_LINE))
    return _PACKED.format(
        place="int" if 2 * len(packed) <= _MOST_IN_AN_INT else "int32_t",
        levels=text.array(f"{stored.c_type} levels[{len(stored.levels)}] IN_FLASH", [stored.levels]),
        packed=text.array(f"uint8_t packed[{len(packed)}] IN_FLASH", lines),
        places=places,
    )
