"""The first fit on a machine starts at once: nothing has to be compiled, said, written or waited for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import hashlib
import sys
from sklearn.datasets import load_wine
import opgrow

class Halfway(opgrow.Callback):
    said = False
    def on_candidate_end(self, event):
        if not self.said:
            self.said = True
            print("halfway", flush=True)
            sys.stdin.readline()

sets = [("gaussian", "correlation2", "tanh"), ("harmonic", "correlation1", "sigmoid"), ("dog", "sum", "elu")]
X, y = load_wine(return_X_y=True)
settings = {"epochs": (5,), "learning_rates": (0.01,), "fine_tune_epochs": 5, "random_state": 0}
model = opgrow.POPClassifier(widths=(8,), operators=sets, callbacks=[Halfway()], **settings).fit(X, y)
said = hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest()
print(said, model.network_.digest(), [name for name in ("numba", "llvmlite") if name in sys.modules])
"""
#: Where programs write what they want to find again.
FOLDERS = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NUMBA_CACHE_DIR", "TRITON_CACHE_DIR", "TMPDIR")


def start(folder: Path) -> subprocess.Popen[str]:
    """A fit that says when it is halfway, and waits there for a line."""
    nowhere = dict.fromkeys(FOLDERS, f"{os.devnull}/nowhere")
    environment = {**os.environ, **nowhere, "PYTHONDONTWRITEBYTECODE": "1"}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, cwd=folder, text=True, **pipes)


def test_first_fits_need_no_home_and_no_cache_and_do_not_wait_for_each_other(tmp_path: Path) -> None:
    first, second = start(tmp_path), start(tmp_path)
    assert first.stdout is not None
    assert first.stdout.readline() == "halfway\n"
    # The second runs from its beginning to its end while the first stands still in the middle of its fit.
    said, complaints = second.communicate("go on\n", timeout=300)
    also_said, also_complaints = first.communicate("go on\n", timeout=300)
    assert complaints == also_complaints == ""
    assert said == f"halfway\n{also_said}"
    assert said.endswith(" []\n")
    assert not list(tmp_path.iterdir())
