"""How integer programs standardise and squash their inputs: formats, constants, a table, and C text.

A squashed input is read from a table of u / sqrt(1 + u^2), whose steps grow with u. Where 32 bits suffice, a
raw input becomes a place in the table by a product, of which the upper half is taken, and a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from . import c_text as text

__all__ = [
    "KNEES",
    "PLACE_BITS",
    "FixedInputs",
    "fixed_inputs",
    "inputs_text",
    "mantissa",
    "reading",
    "rounded",
    "squash_table",
]

INT16_MAX, INT32_MAX = 2**15 - 1, 2**31 - 1
#: Steps of the table for a bound where they are shortest, and fractional bits of a place among them.
_STEPS, PLACE_BITS = 24, 10
#: From each of these entries on, steps are four times as long; the last is the end of the table.
KNEES = (60, 76, 84, 88, 92)
#: Raw inputs are told apart up to so many bounds from their mean, where squashed ones have levelled off.
_REACH = 16


@dataclass(frozen=True)
class FixedInputs:
    """What makes the network's inputs of raw ones.

    Attributes
    ----------
    bits : fractional bits of each raw input
    constants : a row for each input: factor and centre, or mean, scale and scale_bits
    bound : of squashed inputs, in their format; None where nothing squashes
    """

    bits: list[int]
    constants: Sequence[tuple[int, ...]]
    bound: int | None

    @property
    def by_products(self) -> bool:
        """Whether x * factor / 2^32 - centre is the place in the table."""
        return len(self.constants[0]) == 2

    @property
    def largest(self) -> int:
        """The largest magnitude of a network's input."""
        return INT16_MAX if self.bound is None else min(self.bound, INT16_MAX)


def fixed_inputs(
    mean: np.ndarray, scale: np.ndarray, raw: np.ndarray, bound: float | None, x_bits: int
) -> FixedInputs:
    """The inputs of a network of which raw ones reach ``raw``; squashed or not, they have ``x_bits``."""
    units = scale if bound is None else scale * bound
    bits = _formats(mean, units, raw, bound is not None)
    fixed = None if bound is None else round(math.ldexp(bound, x_bits))
    if bound is not None:
        products = [_product(*item) for item in zip(mean.tolist(), units.tolist(), bits, strict=True)]
        if all(factor <= INT32_MAX and abs(centre) < 2**30 for factor, centre in products):
            return FixedInputs(bits, products, fixed)
    per_unit, digits = (1.0, x_bits) if bound is None else (_STEPS, PLACE_BITS)
    rows = []
    for centre, unit, n_bits in zip(mean.tolist(), units.tolist(), bits, strict=True):
        factor, factor_bits = mantissa(per_unit / unit)
        rows.append((rounded(centre, n_bits), factor, max(-128, min(127, n_bits + factor_bits - digits))))
    return FixedInputs(bits, rows, fixed)


def _formats(mean: np.ndarray, units: np.ndarray, raw: np.ndarray, squashed: bool) -> list[int]:
    """Fractional bits of each raw input: 16, unless it is too large or too fine for them."""
    largest, room, finest = np.maximum(raw, np.abs(mean)), 4, 2.0**-5
    if squashed:
        largest, room, finest = np.abs(mean) + _REACH * units, 1, _STEPS / 32
    return [
        16 if room * most < 2**15 and unit > finest else max(-64, min(60, 30 - math.ceil(math.log2(most))))
        for most, unit in zip(largest.tolist(), units.tolist(), strict=True)
    ]


def _product(mean: float, unit: float, bits: int) -> tuple[int, int]:
    """The factor and the centre of an input; what is cut off is half a place on average."""
    factor = round(math.ldexp(_STEPS / unit, 32 + PLACE_BITS - bits))
    return factor, round(math.ldexp(mean * factor, bits - 32) - 0.5)


def mantissa(value: float) -> tuple[int, int]:
    """Integer m of 16 bits and e with value close to m / 2^e."""
    if value == 0:
        return 0, 0
    bits = 14 - math.floor(math.log2(abs(value)))
    found = round(math.ldexp(value, bits))
    return (found // 2, bits - 1) if abs(found) > 32767 else (found, bits)


def rounded(value: float, bits: int, most: int = INT32_MAX) -> int:
    return max(-most, min(most, round(math.ldexp(value, bits))))


@cache
def squash_table(bound: int) -> tuple[int, ...]:
    """bound * u / sqrt(1 + u^2) from 0 to the last knee, and an entry beyond it that is multiplied by zero.

    Lines between points of a curve that bends down are below it: entries are half of that higher.
    """
    steps = 4.0 ** np.searchsorted(KNEES, np.arange(KNEES[-1]), side="right") / _STEPS
    u = np.concatenate([[0.0], np.cumsum(steps)])
    middle = (u[1:] + u[:-1]) / 2
    on = u / np.sqrt(1 + u**2)
    below = middle / np.sqrt(1 + middle**2) - (on[1:] + on[:-1]) / 2
    on[1:-1] += np.minimum(below[1:], below[:-1]) / 2
    entries = np.rint(on * bound).clip(0, INT16_MAX).astype(int).tolist()
    entries[-1] = min(bound, INT16_MAX)
    return (*entries, entries[-1])


# --- C ---

_PRODUCTS = """\
/* {what} = x * factor / 2^32 - centre. */
struct input {{
    int32_t factor, centre;
}};

"""
_DIFFERENCES = """\
/* {what} = (x - mean) * scale / 2^scale_bits. */
struct input {{
    int32_t mean;
    int16_t scale;
    int8_t scale_bits;
}};

"""
_SQUASHED = """\
/* The network's input of a place in the table, however far away that is. */
static INLINE int16_t squashed(int32_t place)
{{
    const int32_t sign = place >> 31; /* -1 or 0: branches would be guesses */
    uint32_t at = (uint32_t)((place ^ sign) - sign);
{knees}    return (int16_t)((interpolated(SQUASHED, at, {bits}) ^ sign) - sign);
}}
"""


def inputs_text(inputs: FixedInputs) -> str:
    """The constants of the inputs and what squashes them."""
    what = "Standardised input"
    parts = []
    if inputs.bound is not None:
        what = f"The place of an input in the table, with {PLACE_BITS} fractional bits,"
        table = squash_table(inputs.bound)
        about = f"u / sqrt(1 + u^2) times the bound, in steps of 1 / {_STEPS}, fourfold from entries "
        about += _listed(KNEES[:-1])
        parts = [
            f"/* {about}. */\n" + text.array(f"uint16_t SQUASHED[{len(table)}] IN_FLASH", [table]),
            _SQUASHED.format(knees=_knees(KNEES), bits=PLACE_BITS),
        ]
    structure = _PRODUCTS if inputs.by_products else _DIFFERENCES
    constants = text.table(f"struct input inputs[{len(inputs.bits)}] IN_FLASH", inputs.constants)
    return "\n".join([structure.format(what=what) + constants, *parts])


def reading(inputs: FixedInputs, target: str) -> list[str]:
    """Lines that make the network's inputs of raw ones."""
    lines = [f"for (int i = 0; i < {len(inputs.bits)}; i++) {{", "    struct input input;"]
    value = "(int32_t)(((int64_t)x[i] * input.factor) >> 32) - input.centre"
    if not inputs.by_products:
        lines.append("    int64_t difference;")
        value = "rescale(difference * input.scale, input.scale_bits)"
    lines.append("    COPY(input, inputs + i);")
    if not inputs.by_products:
        lines.append("    difference = (int64_t)x[i] - input.mean;")
    call = (
        f"(int16_t)within(\n            {value}, INT16_MAX)" if inputs.bound is None else f"squashed({value})"
    )
    return [*lines, f"    {target}[i] = {call};", "}"]


def _knees(knees: tuple[int, ...]) -> str:
    """Places beyond knees, the farthest last, are brought together."""
    if len(knees) == 1:
        return f"    at = at > {knees[0] << PLACE_BITS} ? {knees[0] << PLACE_BITS} : at;\n"
    start = knees[0] << PLACE_BITS
    inner = "".join(f"    {line}\n" for line in _knees(knees[1:]).splitlines())
    return f"    if (at > {start}) {{\n        at = (at >> 2) + {3 * start // 4};\n{inner}    }}\n"


def _listed(numbers: Iterable[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}"
