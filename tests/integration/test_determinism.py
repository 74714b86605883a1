"""The same seed and data grow the same network: in another process, and whatever the number of threads."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone

import opgrow
from opgrow import HeMLGOPClassifier

pytestmark = pytest.mark.cpu

SCRIPT = """
import hashlib
import numpy as np
import opgrow
from sklearn.datasets import load_breast_cancer

x, y = load_breast_cancer(return_X_y=True)
parameters = dict(n_min=6, n_step=3, max_neurons=12, learning_rates=(0.01,), epochs=(3,), fine_tune_epochs=2)
for name in ("HeMLGOPClassifier", "HoMLRNRegressor"):
    fitted = getattr(opgrow, name)(random_state=7, n_jobs=2, **parameters).fit(x, y)
    outputs = np.ascontiguousarray(fitted.network_.outputs(x))
    print(fitted.network_.digest(), hashlib.sha256(outputs.tobytes()).hexdigest())
"""


def test_two_processes_grow_identical_networks():
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=300
        ).stdout
        for _ in range(2)
    ]
    assert len(runs[0].split()) == 4
    assert runs[0] == runs[1]


def digest(fitted):
    return fitted.network_.digest()


@pytest.fixture(scope="module")
def many_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9000, 5))
    return x, (x[:, 0] * x[:, 1] + np.sin(3 * x[:, 2]) > 0).astype(int)


SMALL = {
    "n_min": 6,
    "n_step": 3,
    "max_neurons": 9,
    "max_layers": 1,
    "learning_rates": (0.01,),
    "epochs": (2,),
    "fine_tune_epochs": 1,
    "batch_size": 256,
    "dropout": 0.1,
    "random_state": 3,
}


@pytest.mark.parametrize("name", ["HeMLGOPClassifier", "HoMLRNClassifier", "HeMLGOPRegressor"])
def test_threads_agree_to_rounding(name, many_rows):
    x, y = many_rows
    one, two = (getattr(opgrow, name)(n_jobs=n, **SMALL).fit(x, y) for n in (1, 2))
    assert one.network_.topology() == two.network_.topology()
    assert repr(one.network_) == repr(two.network_)
    np.testing.assert_allclose(one.network_.outputs(x), two.network_.outputs(x), rtol=1e-3, atol=1e-3)


def test_fitting_in_several_threads_at_once_gives_the_same_networks(many_rows):
    from concurrent.futures import ThreadPoolExecutor

    x, y = many_rows[0][:1000], many_rows[1][:1000]
    estimators = [HeMLGOPClassifier(n_jobs=2, **(SMALL | {"random_state": seed})) for seed in range(4)]
    alone = [digest(clone(estimator).fit(x, y)) for estimator in estimators]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda estimator: digest(estimator.fit(x, y)), estimators))
    assert alone == together
    assert len(set(alone)) == 4


def test_the_global_random_states_are_neither_used_nor_changed(many_rows):
    x, y = many_rows[0][:500], many_rows[1][:500]
    digests = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
        digests.append(digest(HeMLGOPClassifier(**SMALL).fit(x, y)))
        assert np.array_equal(np.random.get_state()[1], state[0])  # noqa: NPY002
        assert torch.equal(torch.get_rng_state(), state[1])
    assert digests[0] == digests[1]


def test_a_random_state_object_moves_on_and_an_integer_does_not(many_rows):
    x, y = many_rows[0][:500], many_rows[1][:500]
    shared = np.random.RandomState(0)
    parameters = {key: value for key, value in SMALL.items() if key != "random_state"}
    first, second = (digest(HeMLGOPClassifier(random_state=shared, **parameters).fit(x, y)) for _ in range(2))
    assert first != second
    third, fourth = (digest(HeMLGOPClassifier(random_state=5, **parameters).fit(x, y)) for _ in range(2))
    assert third == fourth
