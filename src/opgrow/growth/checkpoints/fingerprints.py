"""What makes a fit the fit that it is: its parameters, as texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...common.fingerprints import fingerprint
from ...operators import OperatorSet

__all__ = ["texts"]


def texts(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Each parameter as a text that is the same for the same value, in this process and in another."""
    return {name: json.dumps(_plain(value), sort_keys=True) for name, value in parameters.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, OperatorSet):
        return str(value)
    if isinstance(value, np.ndarray):
        return fingerprint(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    code = getattr(value, "__code__", None)
    if code is not None:
        name += f" {hashlib.blake2b(code.co_code + repr(code.co_names).encode(), digest_size=8).hexdigest()}"
    return name
