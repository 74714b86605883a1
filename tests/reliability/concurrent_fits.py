"""Fits at the same time, in a process of its own: what could wait for ever must not hold up the tests.

    python tests/reliability/concurrent_fits.py SCENARIO

prints a JSON object: what was found at the same time, and what alone.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import torch
from sklearn.model_selection import GridSearchCV, cross_val_score
from tiny_estimators import digest, rows, tiny

METHODS = ("HeMLGOPClassifier", "POPFastRegressor", "PLNRegressor", "BLSClassifier")
#: Enough values that torch spreads the operations of a prediction over threads.
MANY = 60_000


def grown(name: str) -> str:
    return digest(tiny(name, n_jobs=2).fit(*rows()))


def predicted(estimator: Any) -> str:
    return estimator.network_.outputs(rows(MANY, 5)[0]).tobytes().hex()[:4000]


def in_children(function: Callable[..., str], arguments: list[Any]) -> list[str]:
    """What a function returns in forked children, all at the same time; "" from one that fails."""
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe(duplex=False) for _ in arguments]

    def send(pipe: Any, argument: Any) -> None:
        pipe.send(function(argument))

    children = [
        context.Process(target=send, args=(pipe[1], argument))
        for pipe, argument in zip(pipes, arguments, strict=True)
    ]
    for child, (_, end) in zip(children, pipes, strict=True):
        child.start()
        end.close()
    found = []
    for receiver, _ in pipes:
        try:
            found.append(receiver.recv())
        except EOFError:
            found.append("")
    for child in children:
        child.join()
    return found


def fork() -> dict[str, Any]:
    """Children of a process whose threads (of BLAS, OpenMP and opgrow) have run."""
    alone = [grown(name) for name in METHODS]
    fitted = [tiny(name).fit(*rows()) for name in METHODS]
    outputs = [predicted(estimator) for estimator in fitted]
    return {
        "alone": alone + outputs,
        "together": in_children(grown, list(METHODS)) + in_children(predicted, fitted),
    }


def workers() -> dict[str, Any]:
    """The workers of loky: beside threads and forked children, and below searches of scikit-learn."""
    alone = {name: grown(name) for name in METHODS}
    in_workers()  # the imports of new processes come before all else
    state, n_threads = torch.get_rng_state(), torch.get_num_threads()
    stop, found = threading.Event(), []

    def fit_on(name: str) -> None:
        while not stop.is_set():
            found.append((name, grown(name)))

    def fork_on() -> None:
        while not stop.is_set():
            found.extend(zip(METHODS[2:], in_children(grown, list(METHODS[2:])), strict=True))

    others = [threading.Thread(target=fit_on, args=(name,)) for name in METHODS[1:3]]
    others.append(threading.Thread(target=fork_on))
    for thread in others:
        thread.start()
    found += in_workers()
    stop.set()
    for thread in others:
        thread.join()
    unchanged = torch.equal(state, torch.get_rng_state()) and n_threads == torch.get_num_threads()
    one_by_one, *at_once = searches()
    return {
        "alone": [*(alone[name] for name, _ in found), True, *[one_by_one] * len(at_once)],
        "together": [*(text for _, text in found), unchanged, *at_once],
    }


def in_workers() -> list[tuple[str, str]]:
    found = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(grown)(name) for name in METHODS)
    return list(zip(METHODS, found, strict=True))


def searches() -> list[Any]:
    """GridSearchCV and cross_val_score around estimators with threads of their own.

    One after the other, by loky and by threads.
    """
    x, y = rows()
    found = []
    for backend, n_jobs in (("sequential", 1), ("loky", 2), ("threading", 2)):
        with joblib.parallel_config(backend=backend, n_jobs=n_jobs):
            grid = GridSearchCV(tiny("HeMLGOPClassifier", n_jobs=2), {"n_min": [2, 3]}, cv=2).fit(x, y)
            scores = [cross_val_score(tiny(name, n_jobs=2), x, y, cv=2) for name in METHODS[1:]]
        means = grid.cv_results_["mean_test_score"].tolist()
        found.append([grid.best_params_, means, digest(grid.best_estimator_), np.array(scores).tolist()])
    return found


if __name__ == "__main__":
    print(json.dumps({"fork": fork, "workers": workers}[sys.argv[1]]()))
