"""Generated input: tables of every type and layout, labels, weights and what users put in their place.

Hypothesis draws the kind of each thing and a seed; the numbers come from the seed, so that an example is
made in no time and shrinks to the kind of input that matters.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from tiny_estimators import NAMES, tiny

try:
    import polars
except ImportError:
    polars = None

#: Examples of all properties together: a few in `make test`, thousands in `make properties`.
TOTAL = int(os.environ.get("OPGROW_EXAMPLES") or 200)


def examples(share: float) -> Any:
    """The settings of a property that gets a share of all examples."""
    return settings(
        max_examples=max(1, round(TOTAL * share)),
        derandomize="OPGROW_EXAMPLES" not in os.environ,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


DTYPES = (
    *(np.dtype(name) for name in ("float16", "float32", "float64", "bool", "object")),
    *(np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
LAYOUTS = ("C", "F", "strided", "reversed", "frozen", "swapped", "mapped", "list", "tensor")
FRAMES = ("pandas", "polars") if polars else ("pandas",)
SCALES = (1e-310, 1e-30, 1e6, 1e30, 1e38, 1e200, 1e300)
ODD_NAMES = (
    "",
    " ",
    "a",
    "ä€",
    "日本",
    "<script>alert(1)</script>",
    "x" * 5000,
    "a,b",
    'q"',
    "\n",
    "\0",
    "{x}",
    "%s",
)


def numbers(seed: int, n: int, d: int, dtype: np.dtype, scale: float = 1.0) -> np.ndarray:
    """A matrix of small whole numbers, which every type can hold; of types with fractions, scaled ones."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(0, 9, (n, d))
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.clip(rng.normal(size=(n, d)) * scale, *_range(dtype)).astype(dtype)
    if dtype.kind == "O":
        x = np.empty((n, d), object)
        x[:] = [[int(v) if v % 2 else float(v) for v in row] for row in whole]
        return x
    return whole.astype(dtype)


def _range(dtype: np.dtype) -> tuple[float, float]:
    info = np.finfo(dtype)
    return float(info.min), float(info.max)


def laid_out(x: np.ndarray, layout: str) -> Any:
    """The same values in another place or order in memory."""
    if layout == "F":
        return np.asfortranarray(x)
    if layout == "strided":
        wide = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)
        wide[::2, ::3] = x
        return wide[::2, ::3]
    if layout == "reversed":
        return np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]
    if layout == "frozen":
        x = x.copy()
        x.flags.writeable = False
    elif layout == "swapped" and x.dtype != object:
        return x.astype(x.dtype.newbyteorder())
    elif layout == "mapped" and x.dtype != object and x.size:
        with tempfile.TemporaryDirectory() as folder:  # a map outlives the name of its file
            np.save(Path(folder) / "x.npy", x)
            return np.load(Path(folder) / "x.npy", mmap_mode="r")
    elif layout == "list":
        return x.tolist()
    elif layout == "tensor" and x.dtype != object:
        return torch.from_numpy(x.copy())
    return x


def framed(x: np.ndarray, kind: str, names: list[Any]) -> Any:
    """A data frame; where a library refuses the names, one with names of its own."""
    if kind == "polars":
        return polars.DataFrame(x.astype(np.float64), schema=[f"{i}{name}" for i, name in enumerate(names)])
    return pd.DataFrame(x, columns=names)


@st.composite
def columns(draw: Any, d: int) -> list[Any]:
    """Names of columns: texts, whole numbers, both, some of them twice."""
    odd = st.one_of(st.sampled_from(ODD_NAMES), st.text(max_size=8), st.integers(-3, 99))
    strategy = draw(
        st.sampled_from([st.sampled_from(ODD_NAMES), st.text(max_size=8), st.integers(0, 99), odd])
    )
    return draw(st.lists(strategy, min_size=d, max_size=d, unique=draw(st.booleans()) and d <= 8))


#: Codes of two or three classes as labels of a kind, in the same order.
LABELS = {
    "int": lambda codes: codes,
    "negative": lambda codes: codes - 5,
    "uint8": lambda codes: codes.astype(np.uint8),
    "bool": lambda codes: codes % 2 == 1,
    "str": lambda codes: np.array(["", "b ä", "c" * 300])[codes],
    "object": lambda codes: np.array(["no", "perhaps", "yes"], object)[codes],
    "object ints": lambda codes: np.array([-1, 0, 10**6], object)[codes],
    "whole floats": lambda codes: codes * 2.0 - 1.0,
    "float16": lambda codes: codes.astype(np.float16),
    "bytes": lambda codes: np.array([b"a", b"b", b"c"])[codes],
    "category": lambda codes: pd.Series(pd.Categorical(np.array(["a", "b", "c"])[codes])),
    "string series": lambda codes: pd.Series(np.array(["a", "b", "c"])[codes], dtype="string"),
    "nullable": lambda codes: pd.Series(codes, dtype="Int64"),
    "list": lambda codes: codes.tolist(),
    "tensor": lambda codes: torch.from_numpy(codes.copy()),
    "column": lambda codes: codes.reshape(-1, 1),
    # refused:
    "mixed": lambda codes: np.array([1, "two", 3.0], object)[codes],
    "None": lambda codes: np.array([None, "a", "b"], object)[codes],
    "nan": lambda codes: np.where(codes == 0, np.nan, codes),
    "fractions": lambda codes: codes + 0.5,
    "dates": lambda codes: np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "datetime64[D]")[codes],
    "complex": lambda codes: codes + 1j,
    "tuples": lambda codes: [(int(code), 1) for code in codes],
    "one class": lambda codes: 0 * codes,
    "short": lambda codes: codes[:-1],
    "nothing": lambda codes: None,
    "text": lambda codes: "y",
}
WEIGHTS = (
    *("some zero", "integers", "list", "huge", "tiny"),
    *("all zero", "negative", "nan", "short", "text", "2-D"),
)
HELD = ("same", "listed", "narrow", "unknown class", "text", "three", "empty")
SPOILED = ("nan", "inf", "constant", "None", "text")
ODD = {"scale": SCALES, "spoiled": SPOILED, "label": sorted(LABELS), "weighing": WEIGHTS, "holding": HELD}


def weights(kind: str, n: int, seed: int) -> Any:
    rng = np.random.default_rng([seed, 1])
    made = {
        "some zero": lambda: rng.integers(0, 2, n).astype(float),
        "integers": lambda: rng.integers(0, 3, n),
        "list": lambda: rng.uniform(size=n).tolist(),
        "huge": lambda: np.full(n, 1e300),
        "tiny": lambda: np.full(n, 1e-300),
        "all zero": lambda: np.zeros(n),
        "negative": lambda: rng.normal(size=n),
        "nan": lambda: np.full(n, np.nan),
        "short": lambda: np.ones(n + 1),
        "text": lambda: "balanced",
        "2-D": lambda: np.ones((n, 2)),
    }
    return made[kind]()


@dataclass
class Case:
    """What is passed to an estimator, with the words by which an example is recognised."""

    estimator: Any
    x: Any
    y: Any
    options: dict[str, Any] = field(default_factory=dict)
    words: str = ""

    def __repr__(self) -> str:
        return f"{type(self.estimator).__name__}: {self.words}"


def made(name: str, preset: str | None = None, **changes: Any) -> Any:
    """A tiny estimator; the presets are those of the HeMLGOP family."""
    return tiny(name, **({"preset": preset} if name.startswith("H") else {}), **changes)


#: What may be odd about a case, with what it is otherwise.
USUAL = {"scale": 1.0, "spoiled": "", "label": "int", "weighing": "none", "holding": "none"}


@st.composite
def cases(draw: Any) -> Case:
    """Anything that a user may pass to `fit`, with two odd things about it at most."""
    name = draw(st.sampled_from(NAMES))
    preset = draw(st.sampled_from([None, None, None, "balanced", "compact"]))
    n, d, seed = draw(st.integers(1, 60)), draw(st.integers(1, 12)), draw(st.integers(0, 2**16))
    odd = draw(st.lists(st.sampled_from(sorted(USUAL)), max_size=2))
    how = {key: draw(st.sampled_from(ODD[key])) if key in odd else usual for key, usual in USUAL.items()}
    dtype, form = draw(st.sampled_from(DTYPES)), draw(st.sampled_from([*LAYOUTS, *FRAMES]))
    x = _spoil(numbers(seed, n, d, dtype, how["scale"]), how["spoiled"])
    given = framed(x, form, draw(columns(d))) if form in FRAMES else laid_out(x, form)
    codes = np.random.default_rng([seed, 2]).integers(0, 3, n)
    y = LABELS[how["label"]](codes)
    if name.endswith("Regressor") and how["label"] == "int":
        y = how["scale"] * codes
    options: dict[str, Any] = {}
    if how["weighing"] != "none":
        options["sample_weight"] = weights(how["weighing"], n, seed)
    if how["holding"] != "none":
        options["eval_set"] = _held(how["holding"], given, y, x)
    estimator = made(name, preset, standardize=draw(st.sampled_from([True, True, True, False])))
    return Case(estimator, given, y, options, f"{preset}, {n} x {d} {dtype} as {form}, {how}, seed {seed}")


def _spoil(x: np.ndarray, how: str) -> np.ndarray:
    if how == "constant":
        x[:] = x[0, 0]
    elif how in ("nan", "inf") and x.dtype.kind == "f":
        x[-1, 0] = float(how)
    elif how == "None" and x.dtype == object:
        x[-1, 0] = None
    elif how == "text" and x.dtype == object:
        x[-1, 0] = "seven"
    return x


def _held(how: str, x: Any, y: Any, matrix: np.ndarray) -> Any:
    return {
        "same": lambda: (x, y),
        "listed": lambda: [(x, y)],
        "narrow": lambda: (matrix[:, :0], y),
        "unknown class": lambda: (matrix, np.full(len(matrix), 77)),
        "text": lambda: "validation",
        "three": lambda: (x, y, y),
        "empty": lambda: (matrix[:0], np.zeros(0)),
    }[how]()
