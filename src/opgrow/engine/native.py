"""The functions of the compiled engine, for numpy arrays.

Every function checks sizes and types first, because the C code checks nothing; it allocates what the C code
needs, because that allocates nothing. None of them starts a thread: callers spread rows or candidates over
threads, and the calls release the GIL. A result depends neither on the processor nor on how rows are spread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from .arrays import check, matrix, pointer, room
from .library import Library, library

__all__ = ["ACTIVATIONS", "NODALS", "POOLS", "Native", "native"]

#: Operators in the order of their codes.
NODALS = (
    "multiplication",
    "exponential",
    "harmonic",
    "quadratic",
    "gaussian",
    "dog",
    "pygop_quadratic",
    "pygop_dog",
)
POOLS = ("sum", "correlation1", "correlation2", "maximum")
ACTIVATIONS = (
    "sigmoid",
    "tanh",
    "relu",
    "softplus",
    "inverse_absolute",
    "elu",
    "pygop_softplus",
    "identity",
)
#: Nodal, pool and activation operator.
Codes = tuple[int, int, int]
_I, _P = ctypes.c_int64, ctypes.c_void_p


class _Block(ctypes.Structure):
    """``og_block`` of ``engine.h``."""

    _fields_ = (
        *((name, _I) for name in ("nodal", "pool", "activation", "n_inputs", "n_neurons")),
        ("weight", _P),
        ("bias", _P),
    )


def _block(codes: Sequence[int], weight: np.ndarray, bias: np.ndarray | None) -> _Block:
    check("weight", weight, (None, None))
    n_inputs, n_neurons = weight.shape
    if n_inputs < 1 or n_neurons < 1:
        raise ValueError(f"a block needs inputs and neurons, got weights of shape {weight.shape}")
    if bias is not None:
        check("bias", bias, (n_neurons,))
    return _Block(*check_codes(codes), n_inputs, n_neurons, pointer(weight), pointer(bias))


def check_codes(codes: Sequence[int]) -> Codes:
    """Codes of operators, if the engine knows them."""
    limits = len(NODALS), len(POOLS), len(ACTIVATIONS)
    if len(codes) != 3 or any(not 0 <= code < limit for code, limit in zip(codes, limits, strict=True)):
        raise ValueError(f"codes must be three numbers below {limits}, got {tuple(codes)}")
    return int(codes[0]), int(codes[1]), int(codes[2])


class Native:
    """The engine, with the functions of one instruction set."""

    def __init__(self, functions: Library | None = None) -> None:
        self.library = library() if functions is None else functions

    # --- features and gradients of one block ---

    def features(
        self, codes: Sequence[int], x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
    ) -> np.ndarray:
        """f(rho(psi(x, weight)) + bias): (N, D) and (D, d) to (N, d)."""
        block = _block(codes, weight, bias)
        x, stride = matrix("x", x, block.n_inputs)
        out = np.empty((len(x), block.n_neurons), np.float32)
        scratch = room(self._features_room(block.n_inputs, block.n_neurons))
        self._features(block, pointer(x), stride, len(x), pointer(out), pointer(scratch))
        return out

    def search_features(
        self,
        nodal: int,
        pools: Sequence[int],
        activations: Sequence[int],
        x: np.ndarray,
        weight: np.ndarray,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Features without bias of candidates that share weights: (sets, d, N), by one pass over x."""
        if len(pools) != len(activations):
            raise ValueError(f"got {len(pools)} pools and {len(activations)} activations")
        for pool, activation in zip(pools, activations, strict=True):
            check_codes((nodal, pool, activation))
        block = _block((nodal, 0, 0), weight, None)
        x, stride = matrix("x", x, block.n_inputs)
        shape = len(pools), block.n_neurons, len(x)
        out = np.empty(shape, np.float32) if out is None else check("out", out, shape)
        scratch = room(self._search_features_room(block.n_inputs, block.n_neurons))
        chosen = [np.array(codes, np.int64) for codes in (pools, activations)]
        places = (pointer(codes) for codes in chosen)
        sizes = stride, len(x), len(pools)
        self._search_features(block, pointer(x), *sizes, *places, pointer(out), len(x), pointer(scratch))
        return out

    def gradients(
        self,
        codes: Sequence[int],
        x: np.ndarray,
        weight: np.ndarray,
        bias: np.ndarray | None,
        grad: np.ndarray,
        by_input: bool = True,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Gradients by weight (D, d), bias (d,) and input (N, D), given that by the features (N, d).

        Sums run over the rows of one call in their order: who divides rows adds the parts in a fixed order.
        """
        block = _block(codes, weight, bias)
        x, stride = matrix("x", x, block.n_inputs)
        check("grad", grad, (len(x), block.n_neurons))
        by_weight, by_bias = np.empty(weight.shape, np.float32), np.empty(block.n_neurons, np.float32)
        back = np.empty((len(x), block.n_inputs), np.float32) if by_input else None
        scratch = room(self._gradients_room(len(x), block.n_inputs, block.n_neurons))
        outputs = (pointer(array) for array in (grad, by_weight, by_bias, back, scratch))
        self._gradients(block, pointer(x), stride, len(x), *outputs)
        return by_weight, by_bias, back

    @cached_property
    def _features_room(self) -> Any:
        return self.library.function("features_room", (_I, _I), _I)

    @cached_property
    def _features(self) -> Any:
        return self.library.function("features", (_REF, _P, _I, _I, _P, _P))

    @cached_property
    def _search_features_room(self) -> Any:
        return self.library.function("search_features_room", (_I, _I), _I)

    @cached_property
    def _search_features(self) -> Any:
        return self.library.function("search_features", (_REF, _P, _I, _I, _I, _P, _P, _P, _I, _P))

    @cached_property
    def _gradients_room(self) -> Any:
        return self.library.function("gradients_room", (_I, _I, _I), _I)

    @cached_property
    def _gradients(self) -> Any:
        return self.library.function("gradients", (_REF, _P, _I, _I, _P, _P, _P, _P, _P))


_REF = ctypes.POINTER(_Block)


@lru_cache(maxsize=1)
def native() -> Native:
    """The engine as it is installed."""
    return Native()
