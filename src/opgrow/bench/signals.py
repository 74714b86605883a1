"""Windows of a recording, split by time: what features of windows say, beside single samples.

The recording is cut into blocks of time. Each block is predicted by models that have learned from the others,
and windows are cut within blocks, so that no window of the test shares a sample with one of the training.
Beside that, the same with samples or windows dealt out at random, which is how leaks come about.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Model", "Recording", "blocks_of", "eye_state", "features_beside_samples", "study"]

#: Samples of a window, a second of them, and between the starts of windows or between single samples.
_LENGTH, _STEP = 128, 16
_BLOCKS = 10
_BEST = "windows without levels, HeMLGOP"
_SHAPES = ("deviation", "difference", "crossings", "bands")


class Model(NamedTuple):
    """What makes a model, and the samples of the windows that it takes: 1 for single samples."""

    make: Callable[[], Any]
    length: int


class Recording(NamedTuple):
    """Samples (n, n_channels) in the order of time, and a label for each."""

    samples: np.ndarray
    labels: np.ndarray


def eye_state(data_home: str | os.PathLike[str] | None) -> Recording:
    """117 seconds of an electroencephalogram of 14 channels, with eyes open or closed."""
    from ..rows.datasets import load

    table = load("eeg_eye_state", data_home)
    return Recording(np.asarray(table.data, np.float64), np.asarray(table.target))


def blocks_of(recording: Recording, n_blocks: int, length: int, step: int) -> list[Recording]:
    """Blocks of time, each cut into windows with their labels."""
    from ..rows.signals import window_labels, windows

    places = np.array_split(np.arange(len(recording.samples)), n_blocks)
    return [
        Recording(
            windows(recording.samples[place], length, step),
            window_labels(recording.labels[place], length, step),
        )
        for place in places
    ]


def features_beside_samples(
    recording: Recording, n_blocks: int, step: int, models: dict[str, Model]
) -> Iterator[dict[str, Any]]:
    """One line for each model and each way to split."""
    for name, (make, length) in models.items():
        blocks = blocks_of(recording, n_blocks, length, step)
        for split in ("blocks of time", "at random"):
            yield {"model": name, "split": split} | _measured(make, blocks, split == "at random")


def _measured(make: Callable[[], Any], blocks: list[Recording], shuffled: bool) -> dict[str, Any]:
    """Every block predicted by models of the others; shuffled, blocks are of rows from everywhere."""
    from sklearn.metrics import balanced_accuracy_score

    x = np.concatenate([block.samples for block in blocks])
    y = np.concatenate([block.labels for block in blocks])
    block = np.repeat(np.arange(len(blocks)), [len(one.labels) for one in blocks])
    if shuffled:
        block = np.random.default_rng(0).permutation(block)
    said = np.empty_like(y)
    for number in range(len(blocks)):
        said[block == number] = make().fit(x[block != number], y[block != number]).predict(x[block == number])
    return {
        "rows": len(y),
        "accuracy": round(float((said == y).mean()), 4),
        "balanced": round(float(balanced_accuracy_score(y, said)), 4),
        "majority": round(float(max(np.mean(y == label) for label in np.unique(y))), 4),
    }


def _models(n_channels: int) -> dict[str, Model]:
    """What is compared: networks of samples and of windows, and a linear model of the same windows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from ..estimators import HeMLGOPClassifier
    from ..rows.signals import WindowFeatures

    def network() -> Any:
        return HeMLGOPClassifier(preset="compact", random_state=0)

    def shapes() -> WindowFeatures:
        return WindowFeatures(n_channels, _SHAPES)

    def of_shapes() -> Any:
        return make_pipeline(shapes(), network())

    def linear() -> Any:
        return make_pipeline(shapes(), StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))

    return {
        "single samples, HeMLGOP": Model(network, 1),
        "windows, HeMLGOP": Model(lambda: make_pipeline(WindowFeatures(n_channels), network()), _LENGTH),
        _BEST: Model(of_shapes, _LENGTH),
        "windows without levels, of two seconds, HeMLGOP": Model(of_shapes, 2 * _LENGTH),
        "windows without levels, logistic regression": Model(linear, _LENGTH),
    }


def study(data_home: str | os.PathLike[str] | None) -> Iterator[dict[str, Any]]:
    """What is measured on the recording, and the size and the difference of the exported program."""
    from .provenance import commit, machine

    recording = eye_state(data_home)
    origin = {"commit": commit(), "machine": machine(), "recording": "eeg_eye_state"}
    models = _models(recording.samples.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # blocks whose levels are far from those of the others
        for line in features_beside_samples(recording, _BLOCKS, _STEP, models):
            yield origin | line
        blocks = blocks_of(recording, _BLOCKS, _LENGTH, _STEP)
        yield origin | _exported(models[_BEST].make(), blocks)


def _exported(pipeline: Any, blocks: list[Recording]) -> dict[str, Any]:
    """The C of a pipeline, measured on the last block, from which it has not learned."""
    from ..export import export_c
    from ..export.c_size import c_size

    *others, last = blocks
    pipeline.fit(np.concatenate([b.samples for b in others]), np.concatenate([b.labels for b in others]))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "eyes.c"
        check = export_c(pipeline, file, calibration=last.samples, min_agreement=0)
        size = c_size(file)
    network = pipeline[-1].network_
    line = {"exported": network.topology(), "parameters": network.n_parameters(), "windows": check.rows}
    line |= {"agreement": check.agreement, "largest_difference": check.largest_difference}
    if size is not None:
        line |= {
            "compiler": size.compiler,
            "code": size.code,
            "constants": size.constants,
            "stack": size.stack,
        }
    return line
