"""What sentences say is what was computed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from opgrow.report.explanation.sentences import called, effect
from opgrow.report.explanation.subject import Subject
from tests.report.explanation.models import fitted, random_model

X, Y = load_iris(return_X_y=True, as_frame=True)


def subject_of(n_classes, loss="cross_entropy"):
    for seed in range(200):
        model = random_model(seed)
        if hasattr(model, "classes_") and len(model.classes_) == n_classes:
            model.loss_ = loss
            return Subject(model)
    raise AssertionError


def test_a_factor_of_the_odds_is_the_exponential_of_a_contribution():
    two = subject_of(2)
    assert effect(two, np.log(2.4), 1, 0) == "raises the odds of class 1 by a factor of 2.4"
    assert effect(two, -np.log(2.4), 1, 0) == "lowers the odds of class 1 by a factor of 2.4"
    assert effect(two, np.log(158), 1, 0) == "raises the odds of class 1 by a factor of 160"
    assert effect(two, np.log(4321), 1, 0) == "raises the odds of class 1 by a factor of 4,300"
    assert effect(two, np.log(1.03), 1, 0) == "raises the odds of class 1 by 3 %"
    assert effect(two, np.log(0.97), 1, 0) == "lowers the odds of class 1 by 3 %"
    assert effect(two, 1e-9, 1, 0) == "raises the odds of class 1 by less than 0.1 %"
    assert effect(two, 5000.0, 1, 0) == "raises the odds of class 1 by a factor of more than 10,000"
    three = subject_of(3)
    assert effect(three, np.log(2), 2, 0) == "raises the odds of class 2 against class 0 by a factor of 2"


def test_squared_error_has_a_lead_and_no_odds():
    assert effect(subject_of(2, "mse"), 0.25, 1, 0) == "raises the lead of class 1 over class 0 by 0.25"
    assert effect(subject_of(3, "mse"), -0.25, 2, 1) == "lowers the lead of class 2 over class 1 by 0.25"


def test_of_several_classes_the_first_two_are_compared():
    model = fitted("HeMLGOPClassifier", X, np.array(["a", "b", "c"])[Y])
    way = model.explain(X).row(60)
    best, second = np.argsort(-way.raw)[:2]
    about = way.columns.values[:, best] - way.columns.values[:, second]
    column = int(np.abs(about).argmax())
    # The odds of two classes against each other: replacing one logit's contribution changes their ratio.
    verb, factor = "raises" if about[column] > 0 else "lowers", np.exp(abs(about[column]))
    names = model.classes_
    assert way.sentences[1] == (
        f"{X.columns[column]} {X.iloc[60, column]:g} {verb} the odds of {names[best]} against "
        f"{names[second]} by a factor of {factor:.2g}."
    )
    assert way.sentences[0] == (
        f"Row 60 is predicted to be {names[best]}, with a probability of "
        f"{model.predict_proba(X.iloc[60:61]).max():.2f}."
    )


def test_regressors_tell_numbers_with_the_name_of_the_target():
    x, y = X.iloc[:, :3], X.iloc[:, 3]
    model = fitted("HeMLGOPRegressor", x, y)
    way = model.explain(x, target="width").row(5)
    assert way.sentences[0] == f"Row 5 is predicted to have width {model.predict(x.iloc[5:6])[0]:.5g}."
    size = way.columns.values[:, 0]
    column = int(np.abs(size).argmax())
    verb = "raises" if size[column] > 0 else "lowers"
    assert f"{verb} the prediction of width by {abs(size[column]):.5g}." in way.sentences[1]


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_units_say_what_the_outputs_are(loss):
    x, y = load_wine(return_X_y=True)
    units = {"cross_entropy": ("log-odds", "logit"), "mse": ("margin", "share")}[loss]
    for classes, unit in zip((2, 3), units, strict=True):
        rows = y < classes
        model = fitted("HeMLRNClassifier", x[rows], y[rows])
        model.loss_ = loss
        outputs = model.explain(x[rows]).data()["outputs"]
        assert {output["unit"] for output in outputs} == {unit}
        way, raw = model.explain(x[rows]).row(0), model.network_.outputs(x[:1])[0]
        np.testing.assert_allclose([np.dot(o["mix"], raw) for o in outputs], way.outputs, rtol=1e-6)


@pytest.mark.parametrize(
    ("label", "words"),
    [("1", "class 1"), ("-0.5", "class -0.5"), ("yes", "yes"), ("", ""), ("<50", "<50"), ("True", "True")],
)
def test_classes_that_are_numbers_are_called_classes(label, words):
    assert called(label) == words
