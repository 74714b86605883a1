"""How exported C stores weights: as floats, as integers, or as integers of 16 levels, two in a byte.

Integers are in units of each neuron, so that its largest weights take the range. A weight of 4 bits is the
number of a level. Levels lie closer to each other near zero, where most weights are, so that few of them are
wasted by a unit that has to be a power of two. What reads a weight gets the level, an ``int8_t``; the rest is
as with int8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["STORAGES", "Storage"]

#: Units that clip the largest weight, as shares of those that do not; other weights may gain more by that.
_CLIPPED = np.linspace(0.5, 0.95, 10)


@dataclass(frozen=True)
class Storage:
    """A way to store weights.

    Attributes
    ----------
    name : as users call it
    bits : of a weight
    c_type : of what a weight is read as
    limit : the largest integer; None of floats
    levels : the integers that there are, in order; none where there are all up to the limit
    """

    name: str
    bits: int
    c_type: str
    limit: int | None = None
    levels: tuple[int, ...] = ()

    def n_bytes(self, count: int) -> int:
        """What so many weights of a table take."""
        return (count * self.bits + 7) // 8

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """The integers that are closest to values in units."""
        assert self.limit is not None
        kind = self.c_type.removesuffix("_t")
        if not self.levels:
            return np.rint(values).clip(-self.limit, self.limit).astype(kind)
        levels = np.array(self.levels)
        return levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, values)].astype(kind)

    def units(self, weight: np.ndarray) -> np.ndarray:
        """The unit of each neuron of weights (n_neurons, n_inputs)."""
        assert self.limit is not None
        largest = np.abs(weight).max(axis=1)
        if not self.levels:
            return largest / self.limit
        # The largest weight may be any level: weights that are levels already have to stay what they are.
        positive = [level for level in self.levels if 3 * level > self.limit]
        shares = [1 / level for level in reversed(positive)] + [*(_CLIPPED / self.limit)]
        return self._closest(weight, largest[None] * np.array(shares)[:, None])

    def fraction(self, weight: np.ndarray) -> int:
        """The fractional bits of a neuron's weights, whose unit is a power of two."""
        assert self.limit is not None
        largest = float(np.abs(weight).max())
        if largest == 0:
            return 0
        most = int(np.floor(np.log2(self.limit / largest)))
        if self.levels:
            units = np.ldexp(1.0, [[-most], [-most - 1], [1 - most]])
            most = -int(np.log2(self._closest(weight[None], units)[0]))
        return min(30, most)

    def _closest(self, weight: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Of units (n_units, n_neurons), those that change weights (n_neurons, n_inputs) least."""
        errors = []
        for unit in np.where(units > 0, units, 1.0):
            rest = weight - unit[:, None] * self.rounded(weight / unit[:, None])
            errors.append(np.square(rest).sum(axis=1))
        return units[np.argmin(errors, axis=0), np.arange(len(weight))]


#: Quantiles of a normal distribution, as Dettmers et al. (2023) choose them, in units of 1/127.
_LEVELS = (-127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127)
STORAGES = {
    "float32": Storage("float32", 32, "float"),
    "int16": Storage("int16", 16, "int16_t", 2**15 - 1),
    "int8": Storage("int8", 8, "int8_t", 127),
    "int4": Storage("int4", 4, "int8_t", 127, _LEVELS),
}
