"""The picture of growth has every step of the history."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_iris

from opgrow import HeMLGOPClassifier
from opgrow.report import plot_growth

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.mark.parametrize("networks", [1, 2])
def test_every_step_is_drawn_kept_ones_as_lines(networks):
    x, y = load_iris(return_X_y=True)
    brief = {"n_min": 3, "n_step": 3, "max_neurons": 9, "max_layers": 1, "epochs": (2, 2)}
    model = HeMLGOPClassifier(preset=None, n_estimators=networks, random_state=0, **brief).fit(x, y)
    _, ax = pyplot.subplots()
    assert plot_growth(model, ax=ax) is ax
    drawn = {(x, y) for line in ax.lines for x, y in zip(*line.get_data(), strict=True)}
    assert drawn == {(step.n_parameters, step.score.value) for step in model.history_}
    kept = {
        (x, y) for line in ax.lines if line.get_marker() == "o" for x, y in zip(*line.get_data(), strict=True)
    }
    assert kept == {(step.n_parameters, step.score.value) for step in model.history_ if step.accepted}
    pyplot.close("all")


def test_what_has_not_grown_is_refused():
    with pytest.raises(ValueError, match="needs a fitted estimator with a history, got HeMLGOPClassifier"):
        plot_growth(HeMLGOPClassifier())
