"""What is drawn is what was computed, on the axes that users name."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from opgrow.report import plot_neuron, plot_pair, plot_response, plot_row
from tests.report.explanation.models import fitted

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

MIXED = {
    "size": np.linspace(-1, 1, 60) ** 3,
    "colour": np.array(["red", "green", "blue", "green"] * 15, dtype=object),
    "age": np.where(np.arange(60) % 5 == 0, np.nan, np.arange(60.0)),
    "since": np.array([f"2024-01-{1 + i % 28:02}" for i in range(60)], dtype=object),
}


@pytest.fixture(scope="module")
def explanation():
    y = np.where(np.arange(60) % 4 == 0, "yes", "no")
    more = {"operators": [("dog", "correlation1", "tanh")], "max_layers": 1}
    return fitted("HeMLGOPClassifier", MIXED, y, **more).explain(MIXED)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.mark.parametrize("column", ["size", "age", "since"])
def test_a_response_is_drawn_on_the_axes_of_the_user(explanation, column):
    _, ax = pyplot.subplots()
    assert plot_response(explanation, column, "yes", row=1, ax=ax) is ax
    one, axis = explanation.response(column), explanation.axis(column)
    mean, local = ax.lines[0], ax.lines[1]
    shown = ~np.isnan(axis.grid)
    np.testing.assert_array_equal(mean.get_ydata(), one.mean[shown, 0])
    np.testing.assert_array_equal(
        local.get_ydata(), explanation.row(1).curves(axis_number(explanation, column))[shown, 0]
    )
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "four rows of five",
        "averaged",
        "local: row 1",
    ]
    assert ax.get_xlabel() == column
    assert ax.get_title().startswith("averaged, interplay")


def axis_number(explanation, column):
    return explanation.columns.index(column)


def test_levels_have_points_and_their_names(explanation):
    ax = plot_response(explanation, "colour")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["blue", "green", "red"]


def test_the_bars_of_a_row_lead_from_the_mean_to_the_output(explanation):
    ax = plot_row(explanation, 0, most=2)
    way = explanation.row(0)
    bars = ax.patches
    assert len(bars) == 3
    assert sum(bar.get_width() for bar in bars) + way.columns.base[0] == pytest.approx(way.outputs[0])
    assert ax.get_yticklabels()[-1].get_text() == "2 others"


def test_a_neuron_has_curves_maps_and_its_activation(explanation):
    number = explanation.neuron_order[0]
    axes = plot_neuron(explanation, number)
    one = explanation.neuron(number)
    assert 2 <= len(axes) <= 4
    assert axes[-1].get_title() == f"neuron {number}: dog/correlation1/tanh"
    np.testing.assert_array_equal(axes[-1].lines[0].get_ydata(), one.handed_on)
    assert any(ax.get_title() == "exact" for ax in axes[:-1])
    _, own = pyplot.subplots(1, 2)
    assert plot_neuron(explanation, number, axes=own) == list(own)


def test_a_pair_is_a_map_and_levels_are_named(explanation):
    one, ax = explanation.pair("colour", "age"), plot_pair(explanation, "colour", "age", "yes")
    (mesh,) = ax.collections
    # Gaps are the last value of the second column, and have no place.
    np.testing.assert_array_equal(mesh.get_array().reshape(-1, 3), one.values[:, :-1, 0].T)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["blue", "green", "red"]
    assert ax.get_ylabel() == "age"
    assert ax.get_title() == "averaged: log-odds of yes"


def test_an_explanation_is_a_figure(explanation):
    figure = explanation.plot(n_columns=2)
    assert [ax.get_xlabel() for ax in figure.axes[:3]] == [
        "mean size of contributions",
        *(explanation.columns[j] for j in explanation.order[:2]),
    ]


def test_without_matplotlib_the_extra_is_named(explanation, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"plot_response needs matplotlib: pip install 'opgrow\[plot\]'"):
        plot_response(explanation, "size")
