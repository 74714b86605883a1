"""A fit on a device that is cut off goes on where it was, and grows the same network."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from opgrow import HeMLGOPClassifier, POPFastClassifier
from opgrow.estimators.fit import array_data
from opgrow.growth.checkpoints import folder

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

from opgrow.growth.cuda_engine import CudaEngine

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SETS = [("multiplication", "sum", "tanh"), ("harmonic", "sum", "tanh")]
BRIEF = {
    "learning_rates": (0.01, 0.001),
    "epochs": (1, 1),
    "batch_size": 32,
    "random_state": 0,
    "operators": SETS,
}
BLOCKS = BRIEF | {
    "preset": None,
    "n_min": 3,
    "n_step": 2,
    "max_neurons": 3,
    "max_layers": 1,
    "fine_tune_epochs": 1,
}


class Cut(BaseException):
    """What the test raises where another process would be killed."""


def custom(groups):
    return torch.optim.SGD(groups, lr=0.01, momentum=0.9)


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [
        (HeMLGOPClassifier, BLOCKS | {"dropout": 0.2}),
        (HeMLGOPClassifier, BLOCKS | {"optimizer": custom, "epochs": (1, 1), "fine_tune_epochs": 0}),
        (
            POPFastClassifier,
            BRIEF | {"widths": (2,), "patience": None, "dropout": 0.2, "fine_tune_epochs": 1},
        ),
        (POPFastClassifier, BRIEF | {"widths": (2,), "epochs": (2, 1), "patience": 1, "fine_tune_epochs": 1}),
    ],
)
def test_a_fit_that_is_cut_off_again_and_again_grows_the_same_network(cls, parameters, tmp_path, monkeypatch):
    monkeypatch.setattr(array_data, "choose_engine", lambda *_: CudaEngine(DEVICE))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = (np.sin(1.5 * x[:, 0]) + 0.1 * x[:, 1] > 0).astype(int)
    whole = cls(**parameters).fit(x, y)
    write = folder.Folder.write

    def write_and_cut(self, *what):
        write(self, *what)
        raise Cut

    monkeypatch.setattr(folder.Folder, "write", write_and_cut)
    parts = cls(**parameters, checkpoint_dir=tmp_path, checkpoint_seconds=0)
    cuts = 0
    while True:
        try:
            parts.fit(x, y)
            break
        except Cut:
            cuts += 1
            assert cuts < 100
    assert cuts > 2
    assert whole.network_.digest() == parts.network_.digest()
