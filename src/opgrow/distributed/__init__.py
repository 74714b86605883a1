"""Growth on several processes, each with a shard of the rows, on ``torch.distributed``."""

from .fitting import fit
from .group import LostRank

__all__ = ["LostRank", "fit"]
