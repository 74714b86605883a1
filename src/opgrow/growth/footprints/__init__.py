"""How large a network may become and how much memory its growth takes at most, before it starts.

Growth holds a standardised copy of the inputs, the targets, the features of the layer that is growing, and
what the work on them takes: sums over chunks of rows, whose size is bounded, and arrays with a row for every
sample, whose size is not. There is a file for each family of methods, which adds up the arrays that exist at
the moment when there are most of them, for a network that grows as far as it may. One that ends earlier takes
less. All of it is for the host; a GPU's memory is filled as far as it goes, and rows that do not fit stream
through it.
"""

from .base import DOUBLE, SINGLE, Footprint, Sizes

__all__ = ["DOUBLE", "SINGLE", "Footprint", "Sizes"]
