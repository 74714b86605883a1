"""Closed-form fits are the same, bit by bit, on every processor and with any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from opgrow.engine.library import library

pytestmark = pytest.mark.cpu

SCRIPT = """
import hashlib
import sys
from dataclasses import replace

import numpy as np
import opgrow
from opgrow.growth import search
from opgrow.rows import search_sums as statistics
from opgrow.rows.memory import MemoryRows
from opgrow.rows.problem import Place
from opgrow.growth.search import SearchSettings

search.SMALL = 0  # threads for small data, too
statistics.CHUNK_BYTES = 1 << 18
n_threads = int(sys.argv[1])
rng = np.random.default_rng(0)
x = rng.normal(size=(301, 6)).astype(np.float32)
label = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int)
accepted, weight = x[:, :5] * x[:, 1:], rng.uniform(0.5, 1.5, 301)
rows = MemoryRows(x, accepted, np.eye(2, dtype=np.float32)[label], weight.astype(np.float32))


def tell(name, *arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    print(name, digest.hexdigest())


for score in search.SCORES:
    settings = SearchSettings(ridges=(0.1, 10.0), score=score, n_threads=n_threads)
    for data in (rows, replace(rows, place=Place(np.arange(301), 0, 301, (40, 80, 120, 160, 200, 240, 280)))):
        found = search.search(data, opgrow.operator_sets(), 7, settings, np.random.default_rng(1))
        winner = found.winner
        tell(score, winner.weight, winner.mean, winner.variance, winner.head, winner.intercept,
             [(c.score, c.loss) for c in found.candidates])
fast = dict(random_state=3, n_jobs=n_threads)
small = dict(fast, n_min=12, n_step=6, max_neurons=24)
for model in (
    opgrow.PLNClassifier(**small),
    opgrow.BLSClassifier(**small, ridge=(0.1, 1.0)),
    opgrow.POPMemOClassifier(**fast, widths=[5, 5], epochs=(1,), learning_rates=(0.01,), fine_tune_epochs=1,
                             operators=[("harmonic", "sum", "tanh"), ("dog", "maximum", "relu")]),
):
    model.fit(x, label)
    print(model.network_.digest())
    tell(type(model).__name__, model.predict_proba(x))
"""


def digests(isa, n_threads):
    environment = os.environ | {"OPGROW_ISA": isa}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(n_threads)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_searches_and_closed_form_fits_do_not_depend_on_processor_and_threads():
    isas = [isa for isa, supported in library().isas().items() if supported]
    expected = digests(isas[0], 1)
    assert len(expected) == 14
    for isa, n_threads in [(isas[0], 2), *((isa, 1) for isa in isas[1:])]:
        assert digests(isa, n_threads) == expected, f"{isa} with {n_threads} threads"
