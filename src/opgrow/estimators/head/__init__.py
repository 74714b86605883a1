"""Networks that grow on the features of a frozen backbone."""

from .growing_head import GrowingHead

__all__ = ["GrowingHead"]
