"""Pipelines on windows of generated signals, for the tests of their exports."""

from __future__ import annotations

from typing import Any

import numpy as np
from opgrow.signals import FEATURES
from sklearn.pipeline import Pipeline, make_pipeline

from opgrow import HeMLGOPClassifier, HeMLGOPRegressor, WindowFeatures

QUICK: dict[str, Any] = {
    "preset": None,
    "max_layers": 1,
    "max_neurons": 8,
    "n_min": 4,
    "epochs": (4, 2, 2),
    "random_state": 0,
}


def signals(n: int, n_samples: int, n_channels: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Tones of random frequency in noise, around a large offset, and their frequencies."""
    rng = np.random.default_rng(seed)
    frequency = rng.uniform(0.02, 0.4, n)
    time = np.arange(n_samples)[None, :, None]
    phase = rng.uniform(0, 6, (n, 1, n_channels))
    x = np.sin(2 * np.pi * frequency[:, None, None] * time + phase)
    x = 4000 + 30 * x + 10 * rng.normal(size=x.shape)
    return x.reshape(n, -1).astype(np.float32), frequency


def pipeline(x: np.ndarray, y: np.ndarray, regression: bool = False, **parameters: Any) -> Pipeline:
    """A fitted pipeline; all features unless told otherwise."""
    step = WindowFeatures(**{"features": FEATURES, "bands": 2, **parameters})
    model = HeMLGOPRegressor(**QUICK) if regression else HeMLGOPClassifier(**QUICK)
    return make_pipeline(step, model).fit(x, y if regression else (y > 0.2).astype(int))
