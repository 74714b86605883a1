"""Ray and Dask: one fit on several workers, and independent fits by joblib."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score

from opgrow import HeMLRNClassifier, POPClassifier, distributed
from opgrow.common.cluster import n_workers
from opgrow.operators import library
from opgrow.training import native

X, Y = load_wine(return_X_y=True)
QUICK = {
    "n_min": 6,
    "max_neurons": 6,
    "n_estimators": 1,
    "fine_tune_epochs": 0,
    "n_jobs": 1,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    pytest.importorskip("distributed", reason="needs Dask: pip install 'opgrow[dask]'")
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_a_grid_on_dask_finds_what_it_finds_here(dask: Any) -> None:
    grid = GridSearchCV(HeMLRNClassifier(**QUICK), {"ridge": [0.1, 100.0], "n_min": [3, 6]}, cv=2)
    here = grid.fit(X, Y).cv_results_["mean_test_score"]
    with joblib.parallel_backend("dask"):
        there = grid.set_params(n_jobs=-1).fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(here, there)


def test_folds_on_dask_score_as_they_do_here(dask: Any) -> None:
    here = cross_val_score(HeMLRNClassifier(**QUICK), X, Y, cv=3)
    with joblib.parallel_backend("dask"):
        there = cross_val_score(HeMLRNClassifier(**QUICK), X, Y, cv=3, n_jobs=-1)
    np.testing.assert_array_equal(here, there)


def test_runs_of_a_study_on_dask(dask: Any, tmp_path: Path) -> None:
    from opgrow.bench.runs import DONE
    from opgrow.bench.study import Study, run_study

    study = Study(["iris"], ["HeMLRN"], tmp_path, n_splits=2, select="none", n_jobs=2)
    with joblib.parallel_backend("dask"):
        actual = run_study(study, lambda run, result, known: None)
    assert [result["status"] for _, result in actual] == [DONE, DONE]


def test_candidates_of_pop_on_dask_are_those_here(dask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = POPClassifier(
        widths=(4,), operators=library()[::24], learning_rates=(0.01,), epochs=(2,), fine_tune_epochs=0,
        n_jobs=1, random_state=0,
    )  # fmt: skip
    here = model.fit(X, Y).predict_proba(X)
    with joblib.parallel_backend("dask"):
        assert n_workers() == 2
        monkeypatch.setattr(native.NativeTrainer, "epoch", None)  # the workers have their own
        there = model.fit(X, Y).predict_proba(X)
    assert n_workers() == 0
    np.testing.assert_array_equal(here, there)


@pytest.fixture(scope="module")
def ray_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    ray = pytest.importorskip("ray", reason="needs Ray Train: pip install 'opgrow[ray]'")
    pytest.importorskip("ray.train", reason="needs Ray Train: pip install 'opgrow[ray]'")
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("ray_here")
def test_a_grid_by_joblib_on_ray_finds_what_it_finds_here() -> None:
    from ray.util.joblib import register_ray

    register_ray()
    grid = GridSearchCV(HeMLRNClassifier(**QUICK), {"ridge": [0.1, 100.0]}, cv=2)
    here = grid.fit(X, Y).cv_results_["mean_test_score"]
    with joblib.parallel_backend("ray"):
        there = grid.set_params(n_jobs=2).fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(here, there)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_ray_grows_the_network_that_one_process_grows(tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    model = HeMLRNClassifier(**QUICK)
    shared = distributed.ray_fit(model, x, y, num_workers=2, storage_path=str(tmp_path))
    plain = HeMLRNClassifier(**QUICK).fit(x, y)
    assert shared.network_.describe() == plain.network_.describe()
    np.testing.assert_allclose(shared.predict_proba(x), plain.predict_proba(x), rtol=0, atol=1e-4)


def test_ray_fit_wants_rows_or_a_function_that_reads_them() -> None:
    pytest.importorskip("ray.train", reason="needs Ray Train: pip install 'opgrow[ray]'")
    with pytest.raises(ValueError, match="takes X and y, or a function"):
        distributed.ray_fit(HeMLRNClassifier(), X)
