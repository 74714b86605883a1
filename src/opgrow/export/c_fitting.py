"""Exported C that is to fit into a processor: the variant that agrees best among those that are small enough.

Every variant is written to a folder of its own, compiled for size and measured, so a compiler is needed, best
the one for the processor.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .c import ARITHMETICS, WEIGHTS, export_c
from .c_size import CompiledSize, c_size
from .measuring import ExportCheck

__all__ = ["Fitted", "export_c_into", "parse_limits"]

_UNITS = {"": 1, "k": 1024, "m": 1024**2}
#: What can be limited, and what of a compiled program counts for it.
_LIMITS = ("flash", "ram")


@dataclass(frozen=True)
class Fitted:
    """The variant that was written.

    Attributes
    ----------
    weights, arithmetic : as of ``export_c``
    check : how well it agrees with the estimator
    size : what the compiler made of it
    """

    weights: str
    arithmetic: str
    check: ExportCheck
    size: CompiledSize

    @property
    def flash(self) -> int:
        return self.size.code + self.size.constants

    @property
    def ram(self) -> int:
        return self.size.stack or 0

    def __str__(self) -> str:
        return (
            f"weights={self.weights!r}, arithmetic={self.arithmetic!r}: {self.flash} bytes of flash, "
            f"{self.ram} of RAM"
        )


def parse_limits(text: str) -> dict[str, int]:
    """Limits such as "flash=16k,ram=1k", in bytes.

    Examples
    --------
    >>> parse_limits("flash=16k,ram=900")
    {'flash': 16384, 'ram': 900}
    """
    limits = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(\d+)\s*([km]?)b?\s*", part.lower())
        if match is None or match[1] not in _LIMITS:
            raise ValueError(f"Limits are such as flash=16k,ram=1k, got {text!r}.")
        limits[match[1]] = int(match[2]) * _UNITS[match[3]]
    return limits


def export_c_into(
    estimator: Any,
    path: str | os.PathLike[str],
    limits: Mapping[str, int],
    *,
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
        chain of calls; functions that compilers add, such as those for floating point, do not count.
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
    variants = _variants(estimator, compiler, {**options, "name": "model", "package": None})
    fitting = [v for v in variants if all(getattr(v, what) <= most for what, most in limits.items())]
    if not fitting:
        closest = min(variants, key=lambda v: max(getattr(v, what) / most for what, most in limits.items()))
        wanted = ", ".join(f"{most} bytes of {what}" for what, most in limits.items())
        raise ValueError(
            f"No variant fits into {wanted}; the closest is {closest}. Fit a smaller network, such as with "
            "preset='compact' or max_parameters=."
        )
    best = max(fitting, key=lambda v: (v.check.agreement or 0.0, -v.flash))
    export_c(estimator, path, weights=best.weights, arithmetic=best.arithmetic, **options)
    return best


def _variants(estimator: Any, compiler: str | None, options: dict[str, Any]) -> list[Fitted]:
    """All variants that are not refused, measured."""
    command = shlex.split(compiler) if compiler else []
    variants, refused = [], []
    for arithmetic in ARITHMETICS:
        for weights in WEIGHTS[1:] if arithmetic == "integer" else WEIGHTS:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "model.c"
                try:
                    check = export_c(estimator, file, weights=weights, arithmetic=arithmetic, **options)
                except ValueError as error:
                    refused.append(error)
                    continue
                size = c_size(file, command[0] if command else None, command[1:])
            if size is None:
                raise ValueError("Sizes need a C compiler, and none was found: install one, or set CC.")
            variants.append(Fitted(weights, arithmetic, check, size))
    if not variants:
        raise refused[0]
    return variants
