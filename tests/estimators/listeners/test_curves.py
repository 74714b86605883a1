"""What TensorBoard and MLflow are told of a fit is what its history says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from opgrow import HeMLGOPClassifier, POPFastClassifier
from opgrow.estimators.listeners import Callback, MLflow, TensorBoard

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
QUICK = {
    "preset": None,
    "n_min": 4,
    "n_step": 2,
    "max_neurons": 6,
    "max_layers": 1,
    "learning_rates": (0.01,),
    "epochs": (2,),
    "fine_tune_epochs": 3,
    "dropout": 0.1,
    "operators": [("harmonic", "sum", "tanh")],
    "random_state": 0,
    "block_threshold": -10.0,
}


class Writer:
    """What `torch.utils.tensorboard.SummaryWriter` is asked."""

    def __init__(self):
        self.scalars, self.texts, self.closed = {}, {}, False

    def add_scalar(self, name, value, count):
        self.scalars.setdefault(name, []).append((count, value))

    def add_text(self, name, text):
        self.texts[name] = text

    def flush(self):
        pass

    def close(self):
        self.closed = True


class Fails(Callback):
    def on_step_end(self, event):
        raise RuntimeError("broken")


def test_curves_are_those_of_the_history():
    writer = Writer()
    clf = HeMLGOPClassifier(callbacks=[TensorBoard(writer=writer)], **QUICK).fit(X, Y)
    blocks = [step for step in clf.history_ if step.kind == "block"]
    assert len(blocks) == 2
    tuned = [epoch for step in blocks for epoch in step.curve]
    assert writer.scalars["tune/score"] == [(i, epoch.score.value) for i, epoch in enumerate(tuned)]
    assert writer.scalars["tune/train_loss"] == [(i, epoch.train_loss) for i, epoch in enumerate(tuned)]
    assert len(writer.scalars["fine-tune/score"]) == len(clf.history_[-1].curve) > 0
    sizes = [(i, step.n_parameters) for i, step in enumerate(clf.history_)]
    assert writer.scalars["growth/parameters"] == sizes
    assert writer.scalars["final/parameters"] == [(0, clf.network_.n_parameters())]
    assert "| n_min | `4` |" in writer.texts["HeMLGOPClassifier"]
    assert "harmonic/sum/tanh" in writer.texts["network"]
    assert not writer.closed


def test_networks_that_are_averaged_have_curves_of_their_own():
    writer = Writer()
    model = HeMLGOPClassifier(n_estimators=2, distill=3, callbacks=[TensorBoard(writer=writer)], **QUICK)
    clf = model.fit(X, Y)
    members = {name.split("/")[0] for name in writer.scalars if name.startswith("network")}
    assert members == {"network 1", "network 2", "network 3"}
    assert writer.scalars["final/parameters"] == [(0, clf.network_.n_parameters())]
    assert writer.scalars["final/neurons"] == [(0, 3)]


def test_candidates_of_a_population_are_counted():
    writer = Writer()
    names = ("sigmoid", "tanh", "relu")
    sets = [("multiplication", "sum", activation) for activation in names]
    settings = {"widths": (4,), "operators": sets, "epochs": (2,), "learning_rates": (0.01,)}
    POPFastClassifier(callbacks=[TensorBoard(writer=writer)], random_state=0, **settings).fit(X, Y)
    assert [count for count, _ in writer.scalars["search/best_score"]] == [0, 1, 2]


def test_numbers_that_are_not_finite_are_left_out():
    writer = Writer()
    always = np.zeros(60, int)
    always[:2] = 1
    HeMLGOPClassifier(callbacks=[TensorBoard(writer=writer)], **QUICK).fit(X, always)
    assert all(np.isfinite(value) for points in writer.scalars.values() for _, value in points)


def test_tensorboard_reads_the_files(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    clf = HeMLGOPClassifier(callbacks=[TensorBoard(tmp_path)], **QUICK).fit(X, Y)
    read = EventAccumulator(str(tmp_path)).Reload()
    points = [(point.step, point.value) for point in read.Scalars("growth/parameters")]
    assert points == [(i, step.n_parameters) for i, step in enumerate(clf.history_)]


def test_a_folder_or_a_writer():
    with pytest.raises(ValueError, match="log_dir or writer, and got both"):
        TensorBoard("runs", writer=Writer())


def test_copies_share_a_writer_that_was_given(tmp_path):
    pytest.importorskip("tensorboard")
    writer = Writer()
    model = clone(HeMLGOPClassifier(callbacks=[TensorBoard(writer=writer), TensorBoard(tmp_path)], **QUICK))
    assert model.callbacks[0].writer is writer
    assert np.isfinite(cross_val_score(model, X, Y, cv=2)).all()
    assert len(writer.scalars["final/parameters"]) == 2
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("make", "module", "package"),
    [(TensorBoard, "tensorboard", "tensorboard"), (MLflow, "mlflow", "mlflow-skinny")],
)
def test_a_missing_package_is_one_sentence(make, module, package, monkeypatch):
    monkeypatch.setattr("opgrow.estimators.listeners.curves.has", lambda name: name != module)
    extra = f"needs the package {package}: pip install 'opgrow\\[{module}\\]'"
    with pytest.raises(ImportError, match=extra):
        make()


# --- MLflow ---


@pytest.fixture
def client(tmp_path, monkeypatch):
    """A client of a store in a folder, which MLflow wants to be allowed."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "store").as_uri()
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(before)


def runs_of(client, experiment="0"):
    return client.search_runs([experiment])


def test_a_run_holds_parameters_curves_and_sizes(client):
    clf = HeMLGOPClassifier(callbacks=[MLflow()], **QUICK).fit(X, Y)
    [run] = runs_of(client)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "HeMLGOPClassifier"
    assert run.data.params["n_min"] == "4"
    assert run.data.params["estimator"] == "HeMLGOPClassifier"
    assert "callbacks" not in run.data.params
    assert run.data.metrics["final/parameters"] == clf.network_.n_parameters()
    assert run.data.tags["topology"] == clf.network_.topology()
    tuned = [epoch for step in clf.history_ if step.kind == "block" for epoch in step.curve]
    result = client.get_metric_history(run.info.run_id, "tune/score")
    assert sorted((m.step, m.value) for m in result) == [(i, e.score.value) for i, e in enumerate(tuned)]


def test_the_active_run_is_written_to_and_stays_open(client):
    import mlflow

    with mlflow.start_run() as run:
        model = HeMLGOPClassifier(n_estimators=2, distill=None, callbacks=[MLflow()], **QUICK).fit(X, Y)
        [result] = runs_of(client)
        assert (result.info.run_id, result.info.status) == (run.info.run_id, "RUNNING")
        widths = [block.n_neurons for layer in model.network_.layers for block in layer]
        assert result.data.metrics["final/neurons"] == sum(widths) >= 8


def test_a_run_by_its_name(client):
    run = client.create_run("0")
    HeMLGOPClassifier(callbacks=[MLflow(run.info.run_id)], **QUICK).fit(X, Y)
    result = client.get_run(run.info.run_id)
    assert result.info.status == "RUNNING"
    assert result.data.metrics["final/layers"] == 1


def test_an_experiment_is_made_once(client):
    model = HeMLGOPClassifier(callbacks=[MLflow(experiment="trial")], **QUICK)
    model.fit(X, Y)
    clone(model).fit(X, Y)
    assert len(runs_of(client, client.get_experiment_by_name("trial").experiment_id)) == 2


def test_a_fit_that_fails_is_a_run_that_failed(client):
    with pytest.raises(RuntimeError, match="broken"):
        HeMLGOPClassifier(callbacks=[MLflow(), Fails()], **QUICK).fit(X, Y)
    [run] = runs_of(client)
    assert run.info.status == "FAILED"
