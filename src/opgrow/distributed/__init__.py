"""Growth on several processes, each with a shard of the rows, on ``torch.distributed``.

The names are imported when they are first used: the command line asks whether there are other processes, and
needs no torch where there are none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..common.extras import require_torch

if TYPE_CHECKING:
    from .fitting import fit
    from .group import LostRank
    from .on_ray import ray_fit
    from .rendezvous import process_group

__all__ = ["LostRank", "fit", "process_group", "ray_fit"]

_HOMES = {"LostRank": "group", "fit": "fitting", "process_group": "rendezvous", "ray_fit": "on_ray"}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_torch(f"opgrow.distributed.{name}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
