"""The random numbers of the compiled engine, written again from ``engine/c/random.h``."""

from __future__ import annotations

from opgrow.engine.native import native


def draw(seed, counter):
    """`og_draw`."""
    return _mix((_mix(seed) + (counter + 1) * 0x9E3779B97F4A7C15) % 2**64)


def _mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def epoch_orders(n_rows, seed):
    """The order of rows in every epoch of a candidate, and the seed of the epoch."""
    while True:
        epoch = draw(seed, 0)
        yield native().shuffle(n_rows, epoch), draw(epoch, 2)
        seed = draw(seed, 1)
