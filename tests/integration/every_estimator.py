"""Fits estimators and prints a digest of each as JSON.

``python every_estimator.py fits N_JOBS`` fits all of them, ``python every_estimator.py ranks SIZE ...`` those
that fit on ranks, with each number of ranks.

The data are drawn as integers, and combined by operations that round correctly: every machine has the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

import opgrow
from opgrow.operators import library

TRAINED = {"epochs": (4, 2), "learning_rates": (0.01, 0.001), "fine_tune_epochs": 2, "batch_size": 64}
BLOCKS = {**TRAINED, "n_min": 6, "n_step": 3, "max_neurons": 12, "max_layers": 2, "dropout": (0.2, 0.0)}
PASSES = {**TRAINED, "widths": (4, 3), "operators": library()[::13], "layer_threshold": -1.0}
CLOSED = {"n_min": 12, "n_step": 6, "max_neurons": 24, "admm_iterations": 20}
METHODS: dict[str, dict[str, Any]] = {
    "HeMLGOP": {**BLOCKS, "max_layers": "auto", "n_estimators": 2, "search_neurons": 2},
    "HoMLGOP": {**BLOCKS, "n_estimators": 1},
    "HeMLRN": {**BLOCKS, "n_estimators": 1, "fine_tune_epochs": 0},
    "HoMLRN": {**BLOCKS, "n_estimators": 1},
    "POP": {**PASSES, "operators": library()[::17]},
    "POPFast": PASSES,
    "POPMemO": PASSES,
    "POPMemH": PASSES,
    "PMLP": {**TRAINED, "widths": (6, 4)},
    "PLN": {**CLOSED, "max_layers": 2},
    "BLS": CLOSED,
}
TASKS = ("Classifier", "Regressor")
#: The methods that fit on ranks, where every batch is a message: larger ones, and fewer of them.
ON_RANKS = ("HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN")
LARGE_BATCHES = {"batch_size": 320, "epochs": (2, 1)}


def data(task: str, n: int = 1200) -> tuple[np.ndarray, np.ndarray]:
    """Rows for a task: three classes, or two numbers."""
    x = np.random.default_rng(3).integers(-1000, 1000, (n, 5)) / 500
    score = x[:, 0] * x[:, 1] + x[:, 2]
    if task == "Classifier":
        return x, (score > -0.5).astype(int) + (score > 0.75)
    return x, np.stack([score, x[:, 3] * x[:, 4] - x[:, 0]], axis=1)


def digest(fitted: Any, rows: np.ndarray) -> str:
    """sha256 of the operators, of every array that the model's file has, and of predictions."""
    content = hashlib.sha256(str(fitted.network_).encode())
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model.safetensors")
        arrays = load_file(Path(folder) / "model.safetensors")
    for name in sorted(arrays):
        content.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    predict = getattr(fitted, "predict_proba", fitted.predict)
    content.update(np.ascontiguousarray(predict(rows)).tobytes())
    return content.hexdigest()[:16]


def make(name: str, task: str, n_jobs: int = 1) -> Any:
    return getattr(opgrow, name + task)(random_state=1, n_jobs=n_jobs, **METHODS[name])


def fit_all(n_jobs: int) -> dict[str, str]:
    """The digest of every estimator."""
    digests = {}
    for name in METHODS:
        for task in TASKS:
            x, y = data(task)
            digests[name + task] = digest(make(name, task, n_jobs).fit(x, y), x[::3] * 1.25)
    return digests


def fit_shard(rank: int, size: int, folder: Path) -> dict[str, str]:
    """The digests of one rank, which has its part of the rows."""
    import torch.distributed as dist

    from opgrow import distributed
    from opgrow.distributed.launch import share_of

    store = dist.FileStore(str(folder / "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    digests = {}
    for name in ON_RANKS:
        for task in TASKS:
            x, y = data(task)
            rows = share_of(len(x), rank, size)
            estimator = make(name, task).set_params(**LARGE_BATCHES)
            fitted = distributed.fit(estimator, x[rows], y[rows])
            digests[name + task] = digest(fitted, x[::3] * 1.25)
    dist.barrier()
    return digests


def fit_on_ranks(size: int) -> list[dict[str, str]]:
    """The digests of every rank, each of which is a child of this process."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        children = []
        for rank in range(size):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    (folder / f"{rank}.json").write_text(json.dumps(fit_shard(rank, size, folder)))
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if any(codes):
            raise RuntimeError(f"{size} ranks ended with the exit codes {codes}")
        return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(size)]


def main(what: str, *numbers: str) -> None:
    warnings.simplefilter("ignore", opgrow.RangeWarning)
    if what == "fits":
        print(json.dumps(fit_all(int(numbers[0]))))
    else:
        print(json.dumps({size: fit_on_ranks(int(size)) for size in numbers}))


if __name__ == "__main__":
    main(*sys.argv[1:])
