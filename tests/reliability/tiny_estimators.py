"""Estimators of every method that grow in milliseconds, and what tells two networks apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from opgrow import estimators

NAMES = tuple(estimators.__all__)
SETS = (
    ("multiplication", "sum", "tanh"),
    ("harmonic", "maximum", "relu"),
    ("gaussian", "correlation1", "sigmoid"),
)
_SCHEDULE = {"learning_rates": (0.01,), "epochs": (1,), "fine_tune_epochs": 1, "dropout": 0.1}
_RANDOM = {"n_min": 3, "n_step": 2, "max_neurons": 5, "admm_iterations": 5}
#: By the beginning of a name, the first that fits.
_SETTINGS: dict[str, dict[str, Any]] = {
    "He": {"n_min": 3, "n_step": 2, "max_neurons": 5, "operators": SETS} | _SCHEDULE,
    "Ho": {"preset": None, "n_min": 3, "n_step": 2, "max_neurons": 5, "operators": SETS} | _SCHEDULE,
    "PMLP": {"widths": (3, 2)} | _SCHEDULE,
    "POP": {"widths": (3,), "operators": SETS[:2]} | _SCHEDULE,
    "PLN": {"max_layers": 2} | _RANDOM,
    "BLS": {"window_size": 2} | _RANDOM,
}


def tiny(name: str, **changes: Any) -> Any:
    """An estimator by its name, not fitted."""
    settings = next(values for start, values in _SETTINGS.items() if name.startswith(start))
    return getattr(estimators, name)(**({"random_state": 0, "n_jobs": 1} | settings | changes))


def rows(n: int = 200, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and two classes that are also a numeric target."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, (x[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def digest(estimator: Any) -> str:
    """A text that is the same for the same network, bit for bit."""
    return estimator.network_.digest()
