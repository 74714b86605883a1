"""Growth on several processes, each with a shard of the rows, on ``torch.distributed``."""

from .fitting import fit
from .group import LostRank
from .meeting import process_group
from .on_ray import ray_fit

__all__ = ["LostRank", "fit", "process_group", "ray_fit"]
