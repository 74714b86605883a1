"""One side of `opgrow bench speed --against`: times work in the commit that it imports, when it is told to.

Reads lines of JSON and answers each with one. ``{"prepare": NAME, "data": FILE}`` gets the work ready and
runs it once; ``{"run": TIMES}`` gives the seconds that it takes. Whole fits and predictions use nothing but
the estimators; the rest is in ``workloads.py`` of the commit or, if it has none, in ``earlier_workloads.py``
beside this file.

Usage: python -P worker.py THREADS
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch


def _workloads() -> Callable[[str, int], Callable[[], Any]]:
    try:
        from opgrow.bench.workloads import prepared
    except ImportError:
        earlier = runpy.run_path(str(Path(__file__).with_name("earlier_workloads.py")))
        earlier["warm_up"]()
        function: Callable[[str, int], Callable[[], Any]] = earlier["prepared"]
        return function
    return prepared


#: Two networks that grow to the same size in the same number of epochs, whatever comes of them: what the
#: defaults of another commit grow may be another network altogether.
_EQUAL: dict[str, Any] = {
    "preset": None,
    "n_estimators": 2,
    "n_min": 40,
    "n_step": 20,
    "max_neurons": 80,
    "max_layers": 1,
    "block_threshold": -1e9,
    "epochs": (10, 10, 10),
    "patience": None,
    "batch_size": 32,
    "dropout": 0.1,
    "fine_tune_epochs": 20,
}


def _fit(data: str, equal: bool) -> tuple[Callable[[], Any], Callable[[], str]]:
    """A fit, and what is to be said of the network that it has grown."""
    from opgrow import HeMLGOPClassifier

    arrays = np.load(data)
    x, y = arrays["x"], arrays["y"]
    model = HeMLGOPClassifier(random_state=0, **(_EQUAL if equal else {}))
    return lambda: model.fit(x, y), lambda: f"{model.network_.n_parameters():,} parameters"


def _prediction(data: str, n_rows: int, mlp: bool) -> tuple[Callable[[], Any], Callable[[], str]]:
    """``predict`` for many rows of a default fit, or of scikit-learn's perceptron."""
    arrays = np.load(data)
    x, y = arrays["x"], arrays["y"]
    if mlp:
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        model: Any = make_pipeline(StandardScaler(), MLPClassifier((200, 200), random_state=0, max_iter=20))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 20 epochs are not enough for accuracy, and change no time
            model.fit(x, y)
        note = ""
    else:
        from opgrow import HeMLGOPClassifier

        model = HeMLGOPClassifier(random_state=0).fit(x, y)
        note = f"{model.network_.n_parameters():,} parameters"
    rows = x[np.arange(n_rows) % len(x)]
    return lambda: model.predict(rows), lambda: note


def main() -> None:
    """Answer until the input ends."""
    n_threads = int(sys.argv[1])
    torch.set_num_threads(n_threads)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the library prints goes elsewhere
    kernels = _workloads()
    run: Callable[[], Any] = lambda: None  # noqa: E731
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any] = {}
        if "prepare" in order:
            kind, _, which = order["prepare"].partition(" ")
            with contextlib.redirect_stdout(sys.stderr):
                note: Callable[[], str] = str
                if kind == "fit":
                    run, note = _fit(order["data"], which == "equal")
                elif kind in ("predict", "mlp"):
                    run, note = _prediction(order["data"], int(which), kind == "mlp")
                else:
                    run = kernels(order["prepare"], n_threads)
                run()
                answer["note"] = note()
        else:
            started = time.perf_counter()
            for _ in range(order["run"]):
                run()
            answer["seconds"] = (time.perf_counter() - started) / order["run"]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
