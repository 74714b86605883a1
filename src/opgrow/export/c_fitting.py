"""Exported C that is to fit into a processor: the variant that agrees best among those that are small enough.

Every variant is written to a folder of its own, compiled for size and measured, so a compiler is needed, best
the one for the processor. Where none fits and there is data, smaller networks are fitted until one does.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .c import ARITHMETICS, WEIGHTS, export_c, exported_program
from .c_shrinking import Shrinking, Shrunk
from .c_size import CompiledSize, c_size
from .cycles import estimated_cycles, target_of
from .measuring import ExportCheck

__all__ = ["Fitted", "export_c_into", "parse_limits"]

#: What can be limited, in what, and what a k stands for.
_LIMITS = {"flash": ("bytes of flash", 1024), "ram": ("bytes of RAM", 1024), "cycles": ("cycles", 1000)}


@dataclass(frozen=True)
class Fitted:
    """The variant that was written.

    Attributes
    ----------
    weights, arithmetic : as of ``export_c``
    check : how well it agrees with the estimator
    size : what the compiler made of it
    estimator : what was written: the one that was given, or a smaller one
    cycles : about how many a prediction takes; None where they are not limited
    shrunk : what a smaller network costs; None where none was needed
    """

    weights: str
    arithmetic: str
    check: ExportCheck
    size: CompiledSize
    estimator: Any
    cycles: int | None = None
    shrunk: Shrunk | None = None

    @property
    def flash(self) -> int:
        return self.size.code + self.size.constants

    @property
    def ram(self) -> int:
        return self.size.stack or 0

    def plain(self) -> dict[str, Any]:
        """All but the estimator, as data."""
        return asdict(replace(self, estimator=None)) | {"flash": self.flash, "ram": self.ram}

    def within(self, limits: Mapping[str, int]) -> bool:
        return self.excess(limits) <= 1

    def excess(self, limits: Mapping[str, int]) -> float:
        """How many times what is allowed is needed, of what is needed most."""
        return max((getattr(self, what) / most for what, most in limits.items()), default=0.0)

    def __str__(self) -> str:
        cycles = "" if self.cycles is None else f", about {self.cycles:,} cycles"
        return (
            f"weights={self.weights!r}, arithmetic={self.arithmetic!r}: {self.flash} bytes of flash, "
            f"{self.ram} of RAM{cycles}"
        )


def parse_limits(text: str) -> dict[str, int]:
    """Limits such as "flash=16k,ram=1k,cycles=20k": bytes, of which a k is 1,024, and cycles.

    Examples
    --------
    >>> parse_limits("flash=16k,ram=900,cycles=20k")
    {'flash': 16384, 'ram': 900, 'cycles': 20000}
    """
    limits = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(\d+)\s*([km]?)(b?)\s*", part.lower())
        if match is None or match[1] not in _LIMITS or (match[1] == "cycles" and match[4]):
            raise ValueError(f"Limits are such as flash=16k,ram=1k,cycles=20k, got {text!r}.")
        limits[match[1]] = int(match[2]) * _LIMITS[match[1]][1] ** " km".index(match[3] or " ")
    return limits


def export_c_into(
    estimator: Any,
    path: str | os.PathLike[str],
    limits: Mapping[str, int],
    *,
    X: Any = None,
    y: Any = None,
    compiler: str | None = None,
    **options: Any,
) -> Fitted:
    """Write the variant that agrees best with the estimator among those within limits; see ``export_c``.

    Parameters
    ----------
    estimator : a fitted estimator of this package, or a pipeline, as of ``export_c``
    path : str or path-like
        As of ``export_c``.
    limits : mapping
        Bytes of "flash", the code and constants of the object file, and of "ram", the stack of the deepest
        chain of calls; functions that compilers add, such as those for floating point, do not count. And
        "cycles" of a prediction, which are estimated for the processor of ``compiler``.
    X, y : array-like or table of shape (n_samples, n_features), and (n_samples,), optional
        Rows to fit smaller networks to where no variant fits. A quarter of them is held out to tell what
        that costs.
    compiler : str, optional
        Such as "avr-gcc -mmcu=atmega328p"; by default what ``CC`` names, ``cc``, ``gcc`` or ``clang``.
    **options
        Of ``export_c``, but for ``weights`` and ``arithmetic``.

    Returns
    -------
    Fitted

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import HeMLRNClassifier
    >>> from opgrow.export import export_c_into
    >>> model = HeMLRNClassifier(n_min=10, max_layers=1, random_state=0).fit(*load_iris(return_X_y=True))
    >>> export_c_into(model, "iris.c", {"flash": 8192}).check.agreement  # doctest: +SKIP
    1.0
    """
    _check_limits(limits)
    if (X is None) != (y is None):
        raise ValueError("Smaller networks are fitted to X and y: pass both, or neither.")
    shrinking = None if X is None else Shrinking(estimator, X, y)
    measuring = _Measuring(limits, compiler, options)
    variants = measuring.variants(estimator)
    fitting = [variant for variant in variants if variant.within(limits)]
    tried: list[int] = []
    if not fitting and shrinking is not None:
        for smaller in shrinking.networks(1 / min(variant.excess(limits) for variant in variants)):
            tried.append(smaller.network_.n_parameters())
            found = measuring.variants(smaller, may_be_none=True)
            variants += found
            fitting = [variant for variant in found if variant.within(limits)]
            if fitting:
                break
    if not fitting:
        raise ValueError(_sentence(variants, limits, tried, shrinking is not None))
    best = max(fitting, key=lambda v: (v.check.agreement or 0.0, -v.flash))
    if shrinking is not None and best.estimator is not estimator:
        options.pop("features", None)  # a table may become other inputs where rows are left out
        best = replace(best, shrunk=shrinking.cost(best.estimator))
    export_c(best.estimator, path, weights=best.weights, arithmetic=best.arithmetic, **options)
    return best


def _check_limits(limits: Mapping[str, int]) -> None:
    strange = next((name for name in limits if name not in _LIMITS), None)
    if strange is not None or not limits:
        given = "none" if strange is None else repr(strange)
        raise ValueError(f"Limits are those of {', '.join(map(repr, _LIMITS))}, got {given}.")


def _sentence(variants: list[Fitted], limits: Mapping[str, int], tried: list[int], has_data: bool) -> str:
    """Why nothing was written."""
    closest = min(variants, key=lambda variant: variant.excess(limits))
    wanted = ", ".join(f"{most:,} {_LIMITS[what][0]}" for what, most in limits.items())
    if not has_data:
        remedy = (
            "Fit a smaller network, such as with preset='compact' or max_parameters=, or pass data (X, y)."
        )
        return f"No variant fits into {wanted}; the closest is {closest}. {remedy}"
    sizes = f"down to {min(tried)} parameters" if tried else "smaller than this one"
    return f"No variant fits into {wanted}, and no network {sizes}; the closest is {closest}."


@dataclass(frozen=True)
class _Measuring:
    """What all variants are measured by."""

    limits: Mapping[str, int]
    compiler: str | None
    options: dict[str, Any]

    def variants(self, estimator: Any, may_be_none: bool = False) -> list[Fitted]:
        """All variants of an estimator that are not refused, measured."""
        found, refused = [], []
        for arithmetic in ARITHMETICS:
            for weights in WEIGHTS[1:] if arithmetic == "integer" else WEIGHTS:
                try:
                    found.append(self._variant(estimator, weights, arithmetic))
                except ValueError as error:
                    if "agrees too little" not in str(error) and arithmetic == "float":
                        raise
                    refused.append(error)
        if not found and not may_be_none:
            raise refused[0]
        return found

    def _variant(self, estimator: Any, weights: str, arithmetic: str) -> Fitted:
        options = {**self.options, "name": "model", "package": None, "features": None}
        command = shlex.split(self.compiler) if self.compiler else []
        cycles = None
        if "cycles" in self.limits:
            program = exported_program(estimator, weights, arithmetic)
            cycles = estimated_cycles(program, weights, arithmetic, target_of(self.compiler))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.c"
            check = export_c(estimator, file, weights=weights, arithmetic=arithmetic, **options)
            size = c_size(file, command[0] if command else None, command[1:])
        if size is None:
            raise ValueError("Sizes need a C compiler, and none was found: install one, or set CC.")
        return Fitted(weights, arithmetic, check, size, estimator, cycles)
