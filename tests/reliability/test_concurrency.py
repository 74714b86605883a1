"""Fits, predictions and files at the same time: what comes of them alone, bit for bit, and no deadlock."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from threadpoolctl import threadpool_limits
from tiny_estimators import NAMES, digest, rows, tiny

import opgrow
from opgrow.common.threads import run_all

SCRIPT = Path(__file__).with_name("concurrent_fits.py")
#: Far more than it takes: whoever needs longer waits for something that does not come.
PATIENCE = 240


def scenario(name: str) -> dict:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SCRIPT.parent), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), name], capture_output=True, text=True, timeout=PATIENCE, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_fits_of_all_methods_in_threads():
    x, y = rows(60)
    alone = [digest(tiny(name, n_jobs=2).fit(x, y)) for name in NAMES]
    torch.manual_seed(0)
    state, n_threads = torch.get_rng_state(), torch.get_num_threads()
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda name: digest(tiny(name, n_jobs=2).fit(x, y)), NAMES))
    assert together == alone
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == n_threads


def test_the_same_estimator_fitted_in_several_threads():
    x, y = rows()
    alone = digest(tiny("HeMLGOPClassifier").fit(x, y))
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: digest(tiny("HeMLGOPClassifier").fit(x, y)), range(8)))
    assert together == [alone] * 8


def test_the_threads_that_other_fits_leave_to_blas_do_not_matter():
    """Sums over so many values are spread over the threads of BLAS, which rounds them in another way."""
    x, y = rows(5000, 500)
    alone = digest(tiny("PLNRegressor", max_layers=1).fit(x, y))
    with threadpool_limits(1, "blas"):
        assert digest(tiny("PLNRegressor", max_layers=1).fit(x, y)) == alone


def test_predictions_in_many_threads_while_others_fit():
    x, y = rows()
    many = rows(20_000)[0]
    fitted = [tiny(name).fit(x, y) for name in ("HeMLGOPClassifier", "POPRegressor", "BLSRegressor")]
    alone = [estimator.network_.outputs(many).tobytes() for estimator in fitted]
    with ThreadPoolExecutor(6) as pool:
        fits = [pool.submit(lambda: digest(tiny("PMLPClassifier").fit(x, y))) for _ in range(4)]
        together = list(pool.map(lambda i: fitted[i % 3].network_.outputs(many).tobytes(), range(24)))
        assert len({fit.result() for fit in fits}) == 1
    assert together == [alone[i % 3] for i in range(24)]


def test_saving_and_loading_one_file_at_the_same_time(tmp_path):
    x, y = rows()
    path = tmp_path / "model.safetensors"
    models = [tiny("HeMLGOPClassifier", random_state=seed).fit(x, y) for seed in range(2)]
    known = [digest(model) for model in models]
    assert known[0] != known[1]
    models[0].save(path)

    def write_or_read(i: int) -> str | None:
        if i % 2:
            return digest(opgrow.load(path))
        return models[i // 2 % 2].save(path)

    with ThreadPoolExecutor(6) as pool:
        read = [found for found in pool.map(write_or_read, range(120)) if found is not None]
    assert len(read) == 60
    assert set(read) <= set(known)
    assert os.listdir(tmp_path) == ["model.safetensors"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
@pytest.mark.parametrize("name", ["fork", "workers"])
def test_processes(name):
    found = scenario(name)
    assert found["together"] == found["alone"]
    assert len(found["alone"]) >= 8


def test_what_a_fit_changes_of_its_process_is_given_back_after_an_error():
    x, y = rows()
    n_threads = torch.get_num_threads()
    for _ in range(2):
        with pytest.raises(ValueError, match="n_min"):
            tiny("PLNClassifier", n_min=0).fit(x, y)
        with pytest.raises(ValueError, match="too large"):
            tiny("PLNRegressor").fit(x * 0 + 5e307 * (x > 0), y)
    assert torch.get_num_threads() == n_threads


def _waits_for_a_future(frame):
    inner, outer = frame.f_code.co_filename, frame.f_back and frame.f_back.f_back
    files = [f.f_code.co_filename for f in (frame.f_back, outer) if f is not None]
    return inner.endswith("threading.py") and any(file.endswith("futures/_base.py") for file in files)


def test_an_exception_reaches_a_thread_that_waits_for_others():
    """As somebody who cancels a fit in a thread, or Jupyter, raises it."""
    began, go_on, ended = threading.Event(), threading.Event(), []

    def task():
        began.set()
        go_on.wait(PATIENCE)

    def work():
        try:
            run_all([task, task], 2)
        except KeyboardInterrupt:
            ended.append("interrupted")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert began.wait(PATIENCE)
        while not _waits_for_a_future(sys._current_frames()[thread.ident]):
            pass
        exception = ctypes.py_object(KeyboardInterrupt)
        assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), exception) == 1
        thread.join(PATIENCE / 4)
        assert ended == ["interrupted"]
    finally:
        go_on.set()
        thread.join()
