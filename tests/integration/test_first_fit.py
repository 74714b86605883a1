"""The first fit on a machine compiles and says so; later processes reuse the code, for the same network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import opgrow

SCRIPT = """
import hashlib
from sklearn.datasets import load_wine
import opgrow
sets = [("gaussian", "correlation2", "tanh"), ("harmonic", "correlation1", "sigmoid"), ("dog", "sum", "elu")]
X, y = load_wine(return_X_y=True)
settings = {"epochs": (5,), "learning_rates": (0.01,), "fine_tune_epochs": 5, "random_state": 0}
model = opgrow.POPClassifier(widths=(8,), operators=sets, **settings).fit(X, y)
digest = hashlib.sha256()
for tensor in model.network_.state_dict().values():
    digest.update(tensor.numpy().tobytes())
print(opgrow.__file__, digest.hexdigest())
"""


def test_a_compiling_process_and_a_cached_one_grow_the_same_network(tmp_path: Path) -> None:
    """Compiled are the kernels of POP's search: those of every fit take three times as long."""
    package = tmp_path / "opgrow"
    shutil.copytree(Path(opgrow.__file__).parent, package)
    for compiled in package.glob("kernels/__pycache__/cpu_population.*.nb?"):
        compiled.unlink()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert runs[0].stdout.startswith(str(package))
    assert "compiling the kernels" in runs[0].stderr
    assert "compil" not in runs[1].stderr
    assert runs[0].stdout == runs[1].stdout
