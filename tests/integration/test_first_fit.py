"""The first fit on a machine compiles and says so; later processes reuse the code, for the same network."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import hashlib
from sklearn.datasets import load_wine
from opgrow import HeMLGOPClassifier
sets = [("gaussian", "correlation2", "tanh"), ("harmonic", "correlation1", "sigmoid"), ("dog", "sum", "elu")]
X, y = load_wine(return_X_y=True)
model = HeMLGOPClassifier(n_min=8, n_step=4, operators=sets, epochs=(5, 5, 5), random_state=0).fit(X, y)
digest = hashlib.sha256()
for tensor in model.network_.state_dict().values():
    digest.update(tensor.numpy().tobytes())
print(digest.hexdigest())
"""


def test_a_compiling_process_and_a_cached_one_grow_the_same_network(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert "compiling the kernels" in runs[0].stderr
    assert "compil" not in runs[1].stderr
    assert runs[0].stdout == runs[1].stdout != ""
