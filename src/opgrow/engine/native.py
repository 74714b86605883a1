"""The functions of the compiled engine, for numpy arrays.

Every function checks sizes and types first, because the C code checks nothing; it allocates what the C code
needs, because that allocates nothing. None of them starts a thread: callers spread rows or candidates over
threads, and the calls release the GIL. A result depends neither on the processor nor on how rows are spread.
"""

from __future__ import annotations

from functools import lru_cache

from .algebra import AlgebraFunctions
from .blocks import BlockFunctions
from .calibration import CalibrationFunctions
from .evaluation import EvaluationFunctions
from .prediction import PredictionFunctions
from .search import SearchFunctions
from .shards import ShardFunctions
from .sums import SumFunctions
from .training import TrainingFunctions

__all__ = ["Native", "native"]


class Native(
    BlockFunctions,
    SumFunctions,
    SearchFunctions,
    AlgebraFunctions,
    CalibrationFunctions,
    PredictionFunctions,
    TrainingFunctions,
    ShardFunctions,
    EvaluationFunctions,
):
    """The engine, with the functions of one instruction set."""


@lru_cache(maxsize=1)
def native() -> Native:
    """The engine as it is installed."""
    return Native()
