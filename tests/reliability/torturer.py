"""Kills fits at random moments until they are done all the same, and compares what they have grown.

    python tests/reliability/torturer.py KILLS SEED FOLDER

Every fit runs in a forked child, which is killed by SIGKILL at a random moment; the next child goes on. When
a child gets to the end, its network is compared bit for bit with that of a fit which nobody has disturbed.
Prints one JSON object: the kills, the fits, and those whose networks differ.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

from sklearn.datasets import make_classification, make_regression

import opgrow

QUICK = {"epochs": (4, 3), "learning_rates": (0.01, 0.001), "patience": None, "random_state": 3}
BLOCKS = QUICK | {"n_min": 6, "n_step": 3, "max_neurons": 12, "fine_tune_epochs": 3}
LAYERS = QUICK | {"widths": (5, 4), "operators": [opgrow.OperatorSet("gaussian", "sum", "tanh")]}
SETS = [
    opgrow.OperatorSet(nodal, pool, "tanh")
    for nodal in ("multiplication", "gaussian", "harmonic")
    for pool in ("sum", "median", "maximum")
    if pool in opgrow.operators.registered("pool")
]
PLAIN = {"random_state": 3, "n_min": 12, "n_step": 6, "max_neurons": 30}
#: Estimators and parameters; averages and populations work in two threads.
FITS = {
    "HeMLGOP": ("HeMLGOPClassifier", BLOCKS | {"n_jobs": 2}),
    "compact": ("HeMLGOPClassifier", BLOCKS | {"preset": "compact", "n_estimators": 3, "n_jobs": 2}),
    "one network": ("HeMLGOPClassifier", BLOCKS | {"preset": None, "dropout": (0.1, 0.3)}),
    "HoMLGOP": ("HoMLGOPRegressor", BLOCKS | {"preset": None}),
    "HeMLRN": ("HeMLRNClassifier", BLOCKS | {"preset": None}),
    "HoMLRN": ("HoMLRNClassifier", BLOCKS | {"n_jobs": 2}),
    "POP": ("POPClassifier", LAYERS | {"operators": SETS[:3], "n_jobs": 2}),
    "POPFast": ("POPFastClassifier", LAYERS | {"operators": SETS, "n_jobs": 2}),
    "POPMemO": ("POPMemORegressor", LAYERS | {"operators": SETS[:4]}),
    "POPMemH": ("POPMemHClassifier", LAYERS | {"operators": SETS[:4]}),
    "PMLP": ("PMLPClassifier", QUICK | {"widths": (8, 6), "dropout": 0.1}),
    "PLN": ("PLNClassifier", PLAIN),
    "BLS": ("BLSClassifier", PLAIN),
}


def grow(name: str, model: Path, **where: object) -> None:
    """Fit and save; nothing else is left behind."""
    estimator, parameters = FITS[name]
    if estimator.endswith("Classifier"):
        x, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    else:
        x, y = make_regression(300, 6, noise=1.0, random_state=0)
    getattr(opgrow, estimator)(**parameters, **where).fit(x, y).save(model)


def in_child(work, seconds: float | None) -> bool:
    """Do work in a child and kill it after so many seconds; whether it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    ended, status = 0, 0
    if seconds is not None:
        time.sleep(seconds)
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            os.kill(child, signal.SIGKILL)
    if not ended:
        status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    if status:
        raise SystemExit(f"a child has failed with status {status}")
    return True


def tensors(path: Path) -> dict[str, bytes]:
    from safetensors.numpy import load_file

    return {name: array.tobytes() for name, array in load_file(path).items()}


def main(kills: int, seed: int, folder: Path) -> None:
    rng, names = random.Random(seed), list(FITS)
    rng.shuffle(names)
    wanted: dict[str, tuple[dict[str, bytes], float]] = {}
    landed, fits, different = 0, 0, []
    while landed < kills:
        name = names[fits % len(names)]
        if name not in wanted:
            started = time.perf_counter()
            in_child(lambda name=name: grow(name, folder / "whole.safetensors"), None)
            wanted[name] = tensors(folder / "whole.safetensors"), time.perf_counter() - started
        model, checkpoint = folder / "cut.safetensors", folder / "checkpoint"
        model.unlink(missing_ok=True)
        where = {"checkpoint_dir": checkpoint, "checkpoint_seconds": rng.choice([0.0, 0.0, 0.02, 60.0])}
        while landed < kills:
            moment = rng.uniform(0.0, 1.2 * wanted[name][1])
            if in_child(lambda name=name, where=where, model=model: grow(name, model, **where), moment):
                break
            landed += 1
        if not model.exists():
            in_child(lambda name=name, where=where, model=model: grow(name, model, **where), None)
        if tensors(model) != wanted[name][0]:
            different.append(name)
        shutil.rmtree(checkpoint)
        fits += 1
    print(json.dumps({"kills": landed, "fits": fits, "different": different}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
