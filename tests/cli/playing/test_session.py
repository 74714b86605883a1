"""A growth is watched, stopped, gone on with, finished and saved."""

from __future__ import annotations

import threading

import numpy as np
from sklearn.datasets import load_iris

import opgrow
from opgrow import HeMLGOPClassifier
from opgrow.cli.playing.session import Session, Table
from opgrow.estimators.listeners.base import Callback
from tests.report.test_page import small

X, Y = load_iris(return_X_y=True)


def session_on(tmp_path, **changes):
    model = small(HeMLGOPClassifier, **changes)
    return Session(model, Table("kind", (X[::2], Y[::2]), (X[1::2], Y[1::2])), tmp_path / "model.safetensors")


def wait_for(session, *states):
    """Until a state is there; every change of it is told by the growth's own thread."""
    done = threading.Event()
    while session.state()["status"] not in states:
        done.wait(0.005)


def test_a_growth_that_is_left_alone_is_finished(tmp_path):
    session = session_on(tmp_path)
    session.start()
    wait_for(session, "finished")
    state = session.state()
    alone = small(HeMLGOPClassifier).fit(X[::2], Y[::2])
    assert session.estimator.network_.digest() == alone.network_.digest()
    assert [step["parameters"] for step in state["steps"]] == [step.n_parameters for step in alone.history_]
    assert state["can"] == ["save"]
    assert session.state(after=2)["steps"] == state["steps"][2:]
    assert "kind" in session.page
    assert not list(tmp_path.iterdir())
    session.tell("save")
    assert {path.name for path in tmp_path.iterdir()} == {"model.safetensors", "model.html"}
    assert opgrow.load(tmp_path / "model.safetensors").network_.digest() == alone.network_.digest()
    assert session.estimator.callbacks is None


def test_a_growth_waits_until_it_goes_on_and_is_the_same_then(tmp_path):
    session = session_on(tmp_path)
    session.tell("stop")
    session.start()
    assert session.state()["can"] == ["go", "finish", "save"]
    assert session.state()["steps"] == []
    session.tell("stop")  # which it is
    session.tell("go")
    wait_for(session, "finished")
    alone = small(HeMLGOPClassifier).fit(X[::2], Y[::2])
    assert session.estimator.network_.digest() == alone.network_.digest()


def test_a_growth_that_is_saved_early_ends_with_what_it_has(tmp_path):
    class AfterTheFirstBlock(Callback):
        def on_step_end(self, event):
            session.tell("save")

    session = session_on(tmp_path, epochs=(3,), max_neurons=200, block_threshold=-1.0)
    heard = session.on_step_end
    session.on_step_end = lambda event: (AfterTheFirstBlock().on_step_end(event), heard(event))
    session.start()
    wait_for(session, "finished")
    assert "finished in the playground" in session.estimator.history_[-1].stopped
    assert (
        opgrow.load(tmp_path / "model.safetensors").network_.digest() == session.estimator.network_.digest()
    )
    assert "Saved as" in session.state()["words"]


def test_a_fit_that_fails_says_why(tmp_path):
    model = small(HeMLGOPClassifier)
    session = Session(model, Table("kind", (X, np.zeros(len(X))), (X, Y)), tmp_path / "model.safetensors")
    session.start()
    wait_for(session, "failed")
    assert "needs at least 2 classes" in session.state()["error"]
    session.end()


def test_a_folder_that_is_gone_is_said_to_be(tmp_path):
    session = session_on(tmp_path)
    session.output = tmp_path / "no" / "model.safetensors"
    session.start()
    wait_for(session, "finished")
    session.tell("save")
    assert "could not be saved" in session.state()["error"]
