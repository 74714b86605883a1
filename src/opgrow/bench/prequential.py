"""Streams with known drifts and tables in the order of time, and what models make of them row by row.

Prequential: each chunk is predicted before it is learned from, so that every row is a test row once. The
first rows are only learned from. Generated streams have labels that follow from two hidden rules, one before
and one after each drift; a share of the labels is wrong.
"""

from __future__ import annotations

import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..common.extras import require

__all__ = ["MODELS", "Chunked", "LastLabel", "Stream", "class_incremental", "prequential", "streams", "study"]

#: Share of wrong labels in generated streams.
_NOISE = 0.05
#: Rows that are learned before any is predicted.
_FIRST_ROWS = 500


class Stream(NamedTuple):
    """Rows in their order, and where the rule that labels them changes."""

    name: str
    x: np.ndarray
    y: np.ndarray
    drifts: tuple[int, ...]


class Chunked(NamedTuple):
    """What a model has made of a stream.

    Attributes
    ----------
    right, rows : correct predictions of each chunk, and its rows
    seconds : of the CPU
    n_bytes : of the model at the end, with all that it needs to go on, as pickle writes it
    """

    right: np.ndarray
    rows: np.ndarray
    seconds: float
    n_bytes: int

    @property
    def accuracy(self) -> float:
        return float(self.right.sum() / self.rows.sum())

    def last(self, share: float) -> float:
        """The accuracy on the last chunks, which are such a share of all."""
        n = max(1, int(len(self.rows) * share))
        return float(self.right[-n:].sum() / self.rows[-n:].sum())


def streams(data_home: str | os.PathLike[str] | None, n_rows: int = 20_000) -> Iterator[Stream]:
    """The generated streams and, where they are there, tables in the order of time."""
    from ..rows.datasets import load

    for name, kind in (("planes, sudden", "sudden"), ("rings, sudden", "rings"), ("planes, slow", "slow")):
        yield _generated(name, kind, n_rows)
    for name in ("eeg_eye_state", "pendigits"):
        table = load(name, data_home)
        yield Stream(name, table.data, table.target, ())


def _generated(name: str, kind: str, n_rows: int) -> Stream:
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (n_rows, 8))
    first, second = rng.normal(size=(2, 8))
    place = np.arange(n_rows) / n_rows
    if kind == "rings":
        squares = np.where(place < 0.5, (x[:, :2] ** 2).sum(1), (x[:, 2:4] ** 2).sum(1))
        y = squares > 0.6
    else:
        share = (place >= 0.5).astype(float) if kind == "sudden" else place
        y = (x * (first * (1 - share)[:, None] + second * share[:, None])).sum(1) > 0
    wrong = rng.random(n_rows) < _NOISE
    return Stream(name, x, (y ^ wrong).astype(int), () if kind == "slow" else (n_rows // 2,))


def prequential(
    model: Any, stream: Stream, chunk: int, classes: Sequence[int], first: int | None = None
) -> Chunked:
    """Learn the ``first`` rows, by default a chunk; then predict and learn each chunk of so many rows."""
    right, rows = [], []
    began = time.process_time()
    starts = range(chunk if first is None else first, len(stream.x), chunk)
    for start, stop in pairwise([0, *starts, len(stream.x)]):
        x, y = stream.x[start:stop], stream.y[start:stop]
        if start:
            right.append(int((model.predict(x) == y).sum()))
            rows.append(len(x))
        model.partial_fit(x, y, classes=classes)
    seconds = time.process_time() - began
    return Chunked(np.array(right), np.array(rows), seconds, len(pickle.dumps(model)))


class _Scaled:
    """A model of scikit-learn behind a scaler that follows the rows, as its guide advises for streams."""

    def __init__(self, model: Any) -> None:
        from sklearn.preprocessing import StandardScaler

        self.model, self.scaler = model, StandardScaler()

    def partial_fit(self, x: np.ndarray, y: np.ndarray, classes: Sequence[int]) -> None:
        self.model.partial_fit(self.scaler.partial_fit(x).transform(x), y, classes=classes)

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict(self.scaler.transform(x)))


class LastLabel:
    """Predicts the label of the last row that was learned: hard to beat where labels come in long runs."""

    last: Any = None

    def partial_fit(self, x: np.ndarray, y: np.ndarray, classes: Sequence[int]) -> None:
        self.last = y[-1]

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), self.last)


class _RowByRow:
    """A model of river, which learns rows one at a time; rows are dictionaries there."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def partial_fit(self, x: np.ndarray, y: np.ndarray, classes: Sequence[int]) -> None:
        for row, label in zip(x.tolist(), y.tolist(), strict=True):
            self.model.learn_one(dict(enumerate(row)), label)

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.array([self.model.predict_one(dict(enumerate(row))) for row in x.tolist()])


def _adaptive_forest() -> Any:
    return _RowByRow(require("river.forest", "A peer of this study", "bench").ARFClassifier(seed=0))


def _adaptive_tree() -> Any:
    trees = require("river.tree", "A peer of this study", "bench")
    return _RowByRow(trees.HoeffdingAdaptiveTreeClassifier(seed=0))


def _sgd() -> Any:
    from sklearn.linear_model import SGDClassifier

    return _Scaled(SGDClassifier(loss="log_loss", random_state=0))


def _bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _mlp() -> Any:
    from sklearn.neural_network import MLPClassifier

    return _Scaled(MLPClassifier(random_state=0))


def _ours(name: str, **parameters: Any) -> Callable[[], Any]:
    def make() -> Any:
        from ..estimators.by_method import estimators_of

        return estimators_of("classification")[name](random_state=0, n_jobs=1, **parameters)

    return make


#: What is asked of our models on a stream that may change.
_WAYS: dict[str, dict[str, Any]] = {
    "": {},
    ", forgetting 0.999": {"forgetting": 0.999},
    ", drift": {"drift": "page_hinkley"},
    ", drift, forgetting 0.999": {"drift": "page_hinkley", "forgetting": 0.999},
}
#: Models with incremental learning, by name: each is made anew for every stream.
MODELS: dict[str, Callable[[], Any]] = {
    **{f"HeMLGOP{way}": _ours("HeMLGOP", preset="compact", **options) for way, options in _WAYS.items()},
    **{f"BLS{way}": _ours("BLS", **options) for way, options in _WAYS.items()},
    "ARFClassifier": _adaptive_forest,
    "HoeffdingAdaptiveTreeClassifier": _adaptive_tree,
    "SGDClassifier": _sgd,
    "GaussianNB": _bayes,
    "MLPClassifier": _mlp,
    "the last label": LastLabel,
}


def class_incremental(model: Any, x: np.ndarray, y: np.ndarray, grow: bool) -> Any:
    """Learn classes two at a time, all rows of a pair at once; with ``grow``, each pair may add a network."""
    classes = np.unique(y)
    for start in range(0, len(classes), 2):
        rows = np.flatnonzero(np.isin(y, classes[start : start + 2]))
        if grow and start:
            model.grow(x[rows], y[rows])
        else:
            model.partial_fit(x[rows], y[rows])
    return model


def study(
    data_home: str | os.PathLike[str] | None,
    n_rows: int,
    chunk: int,
    models: Sequence[str] = tuple(MODELS),
    digits: bool = True,
) -> Iterator[dict[str, Any]]:
    """One line for each model on each stream, and with ``digits`` for each way to learn these."""
    unknown = [name for name in models if name not in MODELS]
    if unknown:
        raise ValueError(f"there is no model {unknown[0]!r}: there are {'; '.join(MODELS)}")
    from .provenance import commit, machine

    origin = {"commit": commit(), "machine": machine()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows outside of what was seen are what streams are about
        for stream in streams(data_home, n_rows):
            classes = np.unique(stream.y).tolist()
            for name in models:
                result = prequential(MODELS[name](), stream, chunk, classes, _FIRST_ROWS)
                yield origin | {
                    "stream": stream.name,
                    "model": name,
                    "rows": len(stream.x),
                    "first": _FIRST_ROWS,
                    "chunk": chunk,
                    "accuracy": round(result.accuracy, 4),
                    "last_tenth": round(result.last(0.1), 4),
                    "kilobytes": round(result.n_bytes / 1000),
                    "microseconds_a_row": round(1e6 * result.seconds / len(stream.x), 1),
                }
        yield from (origin | line for line in (_digits() if digits else ()))


def _digits() -> Iterator[dict[str, Any]]:
    """Accuracy on 40 % of the digits after all classes came, two at a time; means of three splits."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    ways = {"fit on everything": None, "buffer of 500 rows, growing": True, "head alone": False}
    for name, parameters in (("HeMLGOP", {"preset": "compact"}), ("BLS", {})):
        scores = np.zeros((3, len(ways)))
        for seed in range(len(scores)):
            split = train_test_split(x, y, test_size=0.4, stratify=y, random_state=seed)
            x_train, x_test, y_train, y_test = split
            for place, grow in enumerate(ways.values()):
                model = _ours(name, **parameters)()
                if grow is None:
                    model.fit(x_train, y_train)
                else:
                    class_incremental(model, x_train, y_train, grow)
                scores[seed, place] = model.score(x_test, y_test)
        for way, mean in zip(ways, scores.mean(axis=0).tolist(), strict=True):
            yield {"stream": "digits", "model": name, "way": way, "accuracy": round(mean, 4)}
