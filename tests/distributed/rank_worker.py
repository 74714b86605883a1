"""The ranks of the tests, ``python rank_worker.py FOLDER CASE:SIZE ...``: each writes what it found there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from opgrow import (
    HeMLGOPClassifier,
    HeMLGOPRegressor,
    HeMLRNClassifier,
    HoMLGOPClassifier,
    PLNClassifier,
    distributed,
)
from opgrow.distributed.launch import share_of
from opgrow.estimators.listeners import Callback
from opgrow.growth.events import EpochFinished, StopGrowth
from opgrow.operators import library
from opgrow.rows.chunks import from_arrays

#: A few operator sets of every kind, so that the fits are quick.
SETS = library()[::11]
SMALL = {"n_min": 8, "n_step": 4, "max_neurons": 12, "operators": SETS, "random_state": 0, "batch_size": 200}
SHORT = {"epochs": (3, 2), "fine_tune_epochs": 2}
#: Torch adds up in another order on several ranks, and steps at a large rate enlarge what that changes.
GENTLE = SHORT | {"fine_tune_learning_rate": 1e-4}
#: Sources of 800 rows are then read in several windows, and only some of their rows are held.
CHUNKED = {"memory_limit": 60_000, "n_estimators": 1}
N_ROWS = 800


def classes(n_rows: int = N_ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Three classes, of which the last one is in the last rows alone."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 6)).astype(np.float32)
    y = (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] > 0).astype(int)
    y[-n_rows // 5 :] += x[-n_rows // 5 :, 3] > 0
    return x, np.array(["no", "yes", "zebra"])[y]


def numbers(n_rows: int = N_ROWS) -> tuple[np.ndarray, np.ndarray]:
    x, _ = classes(n_rows)
    return x, 100 + 20 * np.stack([np.cos(x[:, 0]) * x[:, 1], x[:, 2] ** 2], axis=1).astype(np.float64)


def squared(outputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A loss that the compiled steps do not know."""
    return (outputs - target).square().mean(dim=1)


FITS: dict[str, tuple[Any, Any]] = {
    "tuned": (
        lambda: HeMLGOPClassifier(**SMALL, **SHORT, max_layers=2, n_estimators=1, dropout=(0.2, 0.0)),
        classes,
    ),
    "average": (
        lambda: HoMLGOPClassifier(**SMALL, **SHORT, n_estimators=2, class_weight="balanced"),
        classes,
    ),
    "random": (lambda: HeMLRNClassifier(**SMALL, fine_tune_epochs=0, n_estimators=1), classes),
    "numbers": (lambda: HeMLGOPRegressor(**SMALL, **SHORT, max_layers=2, n_estimators=1), numbers),
    "torch": (
        lambda: HeMLGOPRegressor(**SMALL, **GENTLE, max_layers=2, n_estimators=1, loss=squared, dropout=0.1),
        numbers,
    ),
    "random chunks": (lambda: HeMLRNClassifier(**SMALL, **CHUNKED, fine_tune_epochs=0), classes),
    "tuned chunks": (
        lambda: HeMLGOPRegressor(**SMALL, **CHUNKED, **SHORT, max_layers=2, dropout=0.1),
        numbers,
    ),
    "torch chunks": (
        lambda: HeMLGOPClassifier(**SMALL, **CHUNKED, epochs=(2, 1), fine_tune_epochs=0, loss=squared),
        classes,
    ),
}


def rows_of(name: str, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
    """Arrays, or a source in their place."""
    return (from_arrays(x, y, chunk_rows=50), None) if name.endswith("chunks") else (x, y)


def fits(rank: int, size: int) -> dict[str, Any]:
    """All fits; what each says of all rows, its operators and what it sent."""
    result = {}
    for name, (make, data) in FITS.items():
        x, y = data()
        rows = share_of(len(x), rank, size)
        fitted = distributed.fit(make(), *rows_of(name, x[rows], y[rows]))
        said = fitted.predict_proba(x) if hasattr(fitted, "predict_proba") else fitted.predict(x)
        result[name] = {
            "operators": [str(step.operator_set) for step in fitted.history_],
            "curves": [len(step.curve) for step in fitted.history_],
            "parameters": [step.n_parameters for step in fitted.history_],
            "said": np.asarray(said).tolist(),
            "traffic": fitted.traffic_,
        }
    return result


class StopAfter(Callback):
    """Ends growth with its fifth epoch; only rank 0 is asked."""

    def __init__(self) -> None:
        self.heard = 0

    def on_epoch_end(self, event: EpochFinished) -> None:
        self.heard += 1
        if self.heard == 5:
            raise StopGrowth("five epochs are enough")


def mistakes(rank: int, size: int) -> dict[str, Any]:
    """Each mistake on one rank alone; all of them are told the same."""
    x, y = classes()
    rows = share_of(len(x), rank, size)
    x, y = x[rows], y[rows]
    here = rank == 1
    broken = x.copy()
    broken[3, 2] = np.nan
    calls = {
        "columns": (HeMLRNClassifier(**SMALL), x[:, :4] if here else x, y),
        "rows": (HeMLRNClassifier(**SMALL), x[:0] if here else x, y[:0] if here else y),
        "missing": (HeMLRNClassifier(**SMALL), broken if here else x, y),
        "parameters": (HeMLRNClassifier(**SMALL, ridge=2.0 if here else 1.0), x, y),
        "labels": (HeMLRNClassifier(**SMALL), x, np.arange(len(y)) % 2 if here else y),
        "method": (PLNClassifier(), x, y),
        "folder": (HeMLRNClassifier(**SMALL, checkpoint_dir=__file__), x, y),
        "chunks": (HeMLRNClassifier(**SMALL, memory_limit=1000 if here else None), x, y),
        "far": (HeMLRNClassifier(**SMALL, standardize=False), x * np.float64(1e300 if here else 1), y),
        "distill": (HeMLRNClassifier(**SMALL, distill=5), x, y),
    }
    result = {}
    for name, (estimator, *shard) in calls.items():
        try:
            distributed.fit(estimator, *shard)
        except (ValueError, TypeError, OSError) as error:
            result[name] = str(error)
    listener = StopAfter()
    stopped = distributed.fit(HeMLGOPClassifier(**SMALL, **SHORT, callbacks=[listener]), x, y)
    result["stopped"] = [stopped.history_[-1].stopped, listener.heard]
    return result


class EndAfter(Callback):
    """Sends its own process a signal in the middle of the second tuning."""

    def __init__(self, number: int) -> None:
        self.number, self.heard = number, 0

    def on_epoch_end(self, event: EpochFinished) -> None:
        self.heard += 1
        if self.heard == 9:
            os.kill(os.getpid(), self.number)


def resumed(rank: int, size: int, growth: Path, number: int | None = None) -> dict[str, Any]:
    """The fit "tuned" with a checkpoint; a signal may end rank 0, and the others say what becomes of them."""
    make, data = FITS["tuned"]
    x, y = data()
    rows = share_of(len(x), rank, size)
    clf = make().set_params(checkpoint_dir=growth, checkpoint_seconds=0)
    try:
        clf.set_params(callbacks=None if number is None else [EndAfter(number)])
        distributed.fit(clf, x[rows], y[rows])
    except (distributed.LostRank, SystemExit) as error:
        return {"error": str(error)}
    return {
        "operators": [str(step.operator_set) for step in clf.history_],
        "said": clf.predict_proba(x).tolist(),
        "traffic": clf.traffic_,
    }


def work(case: str, rank: int, size: int, folder: Path) -> None:
    """What one rank does in a case."""
    dist.init_process_group(
        "gloo", store=dist.FileStore(str(folder / "store"), size), rank=rank, world_size=size,
        timeout=timedelta(seconds=60),
    )  # fmt: skip
    cases: dict[str, Any] = {
        "fits": fits,
        "mistakes": mistakes,
        "killed": partial(resumed, growth=folder / "growth", number=signal.SIGKILL),
        "ended": partial(resumed, growth=folder / "growth", number=signal.SIGTERM),
        "resumed": partial(resumed, growth=folder / "growth"),
    }
    result = cases[case](rank, size)
    (folder / f"{rank}.json").write_text(json.dumps(result))
    if case != "killed":
        dist.barrier()


def start(case: str, rank: int, size: int, folder: Path) -> int:
    """Do it in a process of its own, which has everything loaded already."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        work(case, rank, size, folder)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """The cases one after the other; "resumed" goes on with what "killed" has left."""
    place = Path(sys.argv[1])
    for item in sys.argv[2:]:
        case, size = item.split(":")
        folder = place / item
        folder.mkdir()
        if case == "resumed":
            shutil.copytree(place / "killed:2" / "growth", folder / "growth")
        ranks = [start(case, rank, int(size), folder) for rank in range(int(size))]
        codes = [os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]) for rank in ranks]
        (folder / "codes.json").write_text(json.dumps(codes))


if __name__ == "__main__":
    main()
