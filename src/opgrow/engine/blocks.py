"""Features of a block of neurons, and their gradients."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from ..operators.registry import built_in
from .arrays import check, matrix, pointer, room
from .functions import INTEGER, POINTER, Functions

__all__ = ["ACTIVATIONS", "NODALS", "POOLS", "BlockFunctions", "check_codes"]

#: Operators in the order of their codes.
NODALS, POOLS, ACTIVATIONS = (built_in(kind) for kind in ("nodal", "pool", "activation"))
#: Nodal, pool and activation operator.
Codes = tuple[int, int, int]


class _Block(ctypes.Structure):
    """``og_block`` of ``engine.h``."""

    _fields_ = (
        *((name, INTEGER) for name in ("nodal", "pool", "activation", "n_inputs", "n_neurons")),
        ("weight", POINTER),
        ("bias", POINTER),
    )


_BLOCK = ctypes.POINTER(_Block)


def check_codes(codes: Sequence[int]) -> Codes:
    """Codes of operators, if the engine knows them."""
    limits = len(NODALS), len(POOLS), len(ACTIVATIONS)
    if len(codes) != 3 or any(not 0 <= code < limit for code, limit in zip(codes, limits, strict=True)):
        raise ValueError(f"codes must be three numbers below {limits}, got {tuple(codes)}")
    return int(codes[0]), int(codes[1]), int(codes[2])


def _block(codes: Sequence[int], weight: np.ndarray, bias: np.ndarray | None) -> _Block:
    check("weight", weight, (None, None))
    n_inputs, n_neurons = weight.shape
    if n_inputs < 1 or n_neurons < 1:
        raise ValueError(f"a block needs inputs and neurons, got weights of shape {weight.shape}")
    if bias is not None:
        check("bias", bias, (n_neurons,))
    return _Block(*check_codes(codes), n_inputs, n_neurons, pointer(weight), pointer(bias))


class BlockFunctions(Functions):
    """What one block computes, without batch norm."""

    def features(
        self, codes: Sequence[int], x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
    ) -> np.ndarray:
        """f(rho(psi(x, weight)) + bias): (N, D) and (D, d) to (N, d)."""
        block = _block(codes, weight, bias)
        x, stride = matrix("x", x, block.n_inputs)
        out = np.empty((len(x), block.n_neurons), np.float32)
        sizes = self._bind("features_room", (INTEGER, INTEGER), INTEGER)
        scratch = room(sizes(block.n_inputs, block.n_neurons))
        call = self._bind("features", (_BLOCK, POINTER, INTEGER, INTEGER, POINTER, POINTER))
        call(block, pointer(x), stride, len(x), pointer(out), pointer(scratch))
        return out

    def product(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The matrix product of (N, D) and (D, d), added in a fixed order: linear neurons."""
        return self.features((0, 0, len(ACTIVATIONS) - 1), x, weight)

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
        sizes = self._bind("search_features_room", (INTEGER, INTEGER), INTEGER)
        scratch = room(sizes(block.n_inputs, block.n_neurons))
        chosen = [np.array(codes, np.int64) for codes in (pools, activations)]
        call = self._bind(
            "search_features",
            (_BLOCK, POINTER, INTEGER, INTEGER, INTEGER, POINTER, POINTER, POINTER, INTEGER, POINTER),
        )
        places = (pointer(codes) for codes in chosen)
        call(block, pointer(x), stride, len(x), len(pools), *places, pointer(out), len(x), pointer(scratch))
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
        sizes = self._bind("gradients_room", (INTEGER, INTEGER, INTEGER), INTEGER)
        scratch = room(sizes(len(x), block.n_inputs, block.n_neurons))
        call = self._bind("gradients", (_BLOCK, POINTER, INTEGER, INTEGER, *[POINTER] * 5))
        outputs = (pointer(array) for array in (grad, by_weight, by_bias, back, scratch))
        call(block, pointer(x), stride, len(x), *outputs)
        return by_weight, by_bias, back
