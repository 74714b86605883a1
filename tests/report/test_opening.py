"""The first words of a report say what the network is for, and how good it is."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, load_linnerud

from opgrow import HeMLGOPClassifier, HeMLGOPRegressor, HeMLRNRegressor
from opgrow.report.opening import heading
from opgrow.report.page import page
from tests.report.test_page import Page, small

X, Y = load_iris(return_X_y=True, as_frame=True)


def first_words(text):
    """The heading and the paragraphs before the links."""
    opening = text[text.index("<h1>") : text.index("<nav")]
    return [re.sub(r"\s+", " ", Page(part).text) for part in opening.split("\n") if part]


@pytest.mark.parametrize(
    ("target", "classes", "words"),
    [
        ("price", None, "A network that predicts price"),
        ("fate", ["died", "survived"], "A network that predicts fate"),
        (None, None, "A network that predicts numbers"),
        (None, ["no", "yes"], "A network that tells the classes no and yes apart"),
        (None, list("abcde"), "A network that tells 5 classes apart"),
    ],
)
def test_the_heading_says_what_is_predicted(target, classes, words):
    assert heading(target, classes) == words


def test_a_page_on_classes_begins_with_what_matters_and_how_often_it_is_right():
    y = Y.map({0: "setosa", 1: "versicolor", 2: "virginica"}).rename("species")
    model = small(HeMLGOPClassifier).fit(X[::2], y[::2])
    title, about, small_print = first_words(page(model, X[1::2], y[1::2]))
    leading = [model.explain(X[1::2]).columns[j] for j in model.explain(X[1::2]).order[:3]]
    assert title == "A network that predicts species"
    assert about.startswith(
        "From 4 inputs it computes how probable each of the classes setosa, versicolor and virginica is. "
        f"Most depends on {leading[0]}, {leading[1]} and {leading[2]}. On 75 test rows, "
    )
    right = 100 * model.score(X[1::2], y[1::2])
    assert f"it is right in {right:.1f} % of all cases" in about
    assert "the most frequent class would be right in 33.3 %." in about
    assert f"HeMLGOPClassifier, a network of the topology {model.network_.topology()}" in small_print


def test_a_page_on_numbers_begins_with_the_mean_error():
    x, y = load_diabetes(return_X_y=True, as_frame=True)
    model = small(HeMLGOPRegressor).fit(x, y)
    title, about, _ = first_words(page(model, x, y.rename("progression")))
    off = np.abs(model.predict(x) - y).mean()
    assert title == "A network that predicts progression"
    assert f"On 442 test rows, it is off by {off:.4g} on average, and has an R2 of" in about
    several = small(HeMLRNRegressor).fit(*load_linnerud(return_X_y=True))
    title, about, _ = first_words(page(several))
    assert title == "A network that predicts numbers"
    assert about.startswith("From 3 inputs it computes 3 numbers.")
    assert "rows" not in about
