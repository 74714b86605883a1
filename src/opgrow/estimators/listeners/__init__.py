"""Listeners to growth: subclass `Callback` and override the hooks you need, or take one that is ready.

``Progress`` shows growth on a terminal, `TensorBoard` and `MLflow` record it, `MaxSeconds` and
`MaxParameters` end it in time.
"""

from typing import TYPE_CHECKING, Any

from ...growth.events import StopGrowth
from .base import Callback, broadcast, check_callbacks
from .budget import MaxParameters, MaxSeconds
from .curves import MLflow, TensorBoard

if TYPE_CHECKING:
    from .progress import Progress

__all__ = [
    "Callback",
    "MLflow",
    "MaxParameters",
    "MaxSeconds",
    "Progress",
    "StopGrowth",
    "TensorBoard",
    "broadcast",
    "check_callbacks",
]


def __getattr__(name: str) -> Any:
    # rich is only imported where something is to be shown.
    if name != "Progress":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .progress import Progress

    return Progress
