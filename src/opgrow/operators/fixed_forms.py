"""Operators of integers, as C and in numpy: what exports with integer arithmetic compute with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ExactProducts", "FixedActivation", "FixedNodal", "FixedPool"]

Array = np.ndarray
Bits = int | np.ndarray
#: What an operator is given to emulate C integers with: the functions of `opgrow.export.fixed_arithmetic`.
Arithmetic = Any


@dataclass(frozen=True)
class ExactProducts:
    """psi(y, w) = w y^power, whose integer products can be added up without a format of their own.

    Attributes
    ----------
    c : the product of weight WEIGHT_AT(w + {i}) and input x[{i}] in C
    bits : its fractional bits in C
    power : of the input
    """

    c: str
    bits: str
    power: int


@dataclass(frozen=True)
class FixedNodal:
    """psi(y, w) of integers, as C and in numpy.

    Attributes
    ----------
    c : body of a C function of int32_t y and w and int w_bits, x_bits and psi_bits, the fractional bits of w,
        of y and of the result. It returns ``psi(value, bits)``, a 64-bit value over 2^bits, limited.
    emulated : function (arithmetic, y, w, w_bits, x_bits, psi_bits) that returns that value and these bits
    digits : most fractional bits that psi is worth, which tables and factors limit
    exact : the integer products, if psi is one
    """

    c: str
    emulated: Callable[[Arithmetic, Array, Array, Bits, int, int], tuple[Array, Bits]]
    digits: int = 16
    exact: ExactProducts | None = None


@dataclass(frozen=True)
class FixedPool:
    """rho of integers, as C and in numpy.

    Attributes
    ----------
    c : body of a C function in which PSI(i) is psi of input i < n, an int32_t with psi_bits fractional bits;
        BITS stands for ``bits``, and the result has pooled_bits
    emulated : function (arithmetic, psi, psi_bits, pair_bits, most) of psi (rows, neurons, inputs) that
        returns values (rows, neurons) and their fractional bits; a product of two psi has pair_bits of
        them and is limited to ``most``
    bits : fractional bits of what the pool adds up, in C
    """

    c: str
    emulated: Callable[[Arithmetic, Array, int, int, int], tuple[Array, int]]
    bits: str = "psi_bits"


@dataclass(frozen=True)
class FixedActivation:
    """f(z) of integers, as C and in numpy.

    Attributes
    ----------
    c : body of a C function of int32_t z and int bits, the fractional bits of z
    emulated : function (arithmetic, z, bits)
    bits : fractional bits of the result; None if as many as z has
    input_bits : fewest and most fractional bits that z should have
    """

    c: str
    emulated: Callable[[Arithmetic, Array, int], Array]
    bits: int | None = None
    input_bits: tuple[int, int] = (-40, 24)

    def result_bits(self, bits: int) -> int:
        """Fractional bits of the result for an input with so many."""
        return bits if self.bits is None else self.bits
