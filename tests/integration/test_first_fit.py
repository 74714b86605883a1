"""The first fit on a machine starts at once: nothing has to be compiled, said or written for it."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import hashlib
import sys
from sklearn.datasets import load_wine
import opgrow
sets = [("gaussian", "correlation2", "tanh"), ("harmonic", "correlation1", "sigmoid"), ("dog", "sum", "elu")]
X, y = load_wine(return_X_y=True)
settings = {"epochs": (5,), "learning_rates": (0.01,), "fine_tune_epochs": 5, "random_state": 0}
model = opgrow.POPClassifier(widths=(8,), operators=sets, **settings).fit(X, y)
said = hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest()
print(said, model.network_.digest(), [name for name in ("numba", "llvmlite") if name in sys.modules])
"""


def test_two_first_fits_at_once_grow_the_same_network_without_a_home_or_a_cache() -> None:
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"), f"{os.devnull}/nowhere")
    environment = {**os.environ, **nowhere, "PYTHONDONTWRITEBYTECODE": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, **pipes) for _ in range(2)]
    (first, said), (second, also_said) = (run.communicate() for run in runs)
    assert said == also_said == ""
    assert first == second
    assert first.endswith(" []\n")
