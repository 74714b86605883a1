"""HeMLGOP and its three variants: one growth loop, two switches (the paper's Section 3.2)."""

from __future__ import annotations

from ..growth import Method

#: Heterogeneous multilayer GOP: a new operator set and tuning for every block.
HEMLGOP = Method("HeMLGOP", search_every_block=True, tune_blocks=True)
#: Homogeneous layers: the operator set of a layer's first block serves the whole layer.
HOMLGOP = Method("HoMLGOP", search_every_block=False, tune_blocks=True)
#: Heterogeneous randomised network: blocks keep their random weights until the final fine-tuning.
HEMLRN = Method("HeMLRN", search_every_block=True, tune_blocks=False)
#: Homogeneous randomised network.
HOMLRN = Method("HoMLRN", search_every_block=False, tune_blocks=False)
