"""The report of every method, on data of every kind, and what it says where something is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import opgrow
from opgrow import HeMLGOPClassifier, HeMLRNClassifier, HeMLRNRegressor, PLNRegressor, load
from opgrow.report import write_report
from opgrow.report.page import page
from opgrow.training.scores import Score

NAMES = sorted(name for name in opgrow.__all__ if name.endswith(("Classifier", "Regressor")))
SMALL = {
    "preset": None,
    "n_min": 6,
    "n_step": 3,
    "max_neurons": 9,
    "widths": (5,),
    "learning_rates": (0.01,),
    "epochs": (4,),
    "fine_tune_epochs": 2,
    "operators": [
        ("multiplication", "sum", "tanh"),
        ("harmonic", "sum", "sigmoid"),
        ("gaussian", "maximum", "elu"),
    ],
    "random_state": 0,
}
EVIL = ["<script>alert(1)</script>", "\"quoted\" 'name'", "</title></svg></style>", "a & b \x00 \ud800"]
IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def small(cls, **changes):
    accepted_names = cls().get_params()
    return cls(**{name: value for name, value in (SMALL | changes).items() if name in accepted_names})


class Page(HTMLParser):
    """The elements of a page by tag, and its visible text; unclosed elements are an error."""

    EMPTY = ("meta", "rect", "circle", "line", "path", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data

    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if attributes.get("id")]


@pytest.mark.parametrize("name", NAMES)
def test_every_method_has_a_report(name, tmp_path):
    cls = getattr(opgrow, name)
    X, y = IRIS if name.endswith("Classifier") else DIABETES
    model = small(cls).fit(X[::2], y[::2])
    model.report(tmp_path / "report.html", X[1::2], y[1::2])
    text = (tmp_path / "report.html").read_text()
    result = Page(text)
    assert {"network", "growth", "latency", "steps"} <= set(result.ids())
    assert len(result.ids()) == len(set(result.ids()))
    hidden = sum(layer.n_neurons for layer in model.network_.layers)
    neurons = re.findall(r"<circle class=\"mark\"[^>]*><title>([^<]*, neuron \d+ of \d+[^<]*)</title>", text)
    assert len(neurons) == hidden
    assert str(model.network_.layers[0].blocks[0].operator_set).replace("/", " / ") in neurons[0]
    assert f"{model.network_.n_parameters():,}" in result.text
    assert repr(model.network_) in result.text
    score = model.score(X[1::2], y[1::2])
    assert (f"{100 * score:.1f} %" if is_classifier(model) else f"{score:.3f}") in result.text
    assert ({"confusion", "calibration", "classes"} if is_classifier(model) else {"scatter-1"}) <= set(
        result.ids()
    )
    assert model.plot().svg in text


def test_nothing_is_fetched_and_no_other_script_may_run():
    model = small(HeMLRNClassifier).fit(*IRIS)
    text = page(model, *IRIS)
    assert "default-src 'none'" in text
    assert "script-src 'sha256-" in text
    for tag, attributes in Page(text).elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form", "video", "audio")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    assert "url(" not in text
    assert "@import" not in text


def test_whatever_comes_from_data_is_escaped(tmp_path):
    X = pd.DataFrame(IRIS[0], columns=[*EVIL[:3], "a & b \x00"])
    y = np.array(EVIL[:3])[IRIS[1]]
    model = small(HeMLRNClassifier, class_weight=dict.fromkeys(EVIL[:3], 1.0)).fit(X, y)
    path = tmp_path / "report.html"
    write_report(model, path, X, y, target=EVIL[0], rows=f"rows of {EVIL[2]}", feature_names=EVIL)
    text = path.read_text()
    result = Page(text)
    assert text.count("<script") == text.count("</script>") == 2  # data, and what reads it
    assert [tag for tag, _ in result.elements].count("title") > 10
    assert text.count("</style>") == 1
    for name in EVIL[:3]:
        assert name in result.text
    drawing = model.plot()._repr_html_()
    assert "<script" not in drawing
    assert "&lt;script" in drawing


def test_a_loaded_model_says_what_its_file_does_not_keep(tmp_path):
    model = small(HeMLGOPClassifier).fit(*IRIS)
    fresh = page(model)
    assert "does not keep them" not in fresh
    assert {"training", "validation"} <= set(Page(fresh).ids())
    model.save(tmp_path / "model.safetensors")
    loaded = page(load(tmp_path / "model.safetensors"))
    assert "a model file does not keep them" in loaded
    assert not {"training", "validation"} & set(Page(loaded).ids())
    assert {"network", "growth", "candidates-1"} <= set(Page(loaded).ids())
    assert load(tmp_path / "model.safetensors").plot().svg == model.plot().svg


def test_the_best_candidates_of_a_search_are_listed():
    model = HeMLRNClassifier(n_min=5, max_layers=1, n_estimators=1, random_state=0).fit(*IRIS)
    step = model.history_[0]
    text = page(model)
    listed = re.search(r'<table id="candidates-1">.*?</table>', text, re.DOTALL)[0]
    assert listed.count("<tr>") == 11
    for candidate in step.candidates[:10]:
        assert str(candidate.operator_set).replace("/", " / ") in listed
        assert f"{candidate.score:.4g}" in listed
    assert listed.count(">yes<") == 1


def test_without_rows_a_sentence_says_how_to_give_some():
    text = Page(page(small(HeMLRNClassifier).fit(*IRIS))).text
    assert "report(path, X_test, y_test)" in text
    assert "confusion" not in Page(page(small(HeMLRNClassifier).fit(*IRIS))).ids()


def test_steps_are_listed_whether_kept_or_not():
    model = HeMLGOPClassifier(n_min=5, n_step=5, epochs=(2, 2), n_estimators=1, random_state=0).fit(*IRIS)
    text = page(model)
    table = re.search(r'<table id="growth">.*?</table>', text, re.DOTALL)[0]
    rejected = sum(not step.accepted for step in model.history_)
    assert rejected
    assert table.count("<tr class=no>") == rejected
    assert table.count("<tr") == 1 + len(model.history_)


def test_networks_of_an_average_are_told_apart():
    model = small(HeMLGOPClassifier, n_estimators=3, max_layers=1, distill=None).fit(*IRIS)
    text = page(model)
    assert {"growth-1", "growth-2", "growth-3"} <= set(Page(text).ids())
    assert "3 networks were grown apart and averaged" in text
    grown = [step for step in model.history_ if step.kind == "block" and step.accepted]
    assert text.count("network 2, layer 1, block ") >= sum(s.n_neurons for s in grown if s.member == 2)
    student = small(HeMLGOPClassifier, n_estimators=2, max_layers=1, distill=4).fit(*IRIS)
    text = page(student)
    assert "2 networks were grown apart, and one learned from their average" in text
    assert "network 3, which learned from the others" in text
    assert "network 1, layer 1" not in student.plot().svg


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e300])
def test_scores_that_are_not_finite_do_no_harm(odd):
    model = small(HeMLGOPClassifier).fit(*IRIS)
    step = model.history_[0]
    curve = [replace(epoch, train_loss=odd, score=Score(odd, odd)) for epoch in step.curve]
    candidates = [replace(candidate, score=odd, loss=odd) for candidate in step.candidates]
    model.history_[0] = replace(
        step, score=Score(odd, odd), improvement=odd, curve=curve, candidates=candidates
    )
    result = Page(page(model))
    for _, attributes in result.elements:
        for name in ("cx", "cy", "d", "x", "y"):
            assert not re.search("nan|inf", attributes.get(name) or "")


@pytest.mark.parametrize("history", [[], None])
def test_a_model_without_history_has_a_report(history):
    model = small(PLNRegressor).fit(*DIABETES)
    model.history_ = history if history is not None else model.history_[:1]
    assert "What it costs" in page(model)


def test_several_targets_have_a_line_and_a_chart_each():
    X, y = DIABETES
    model = small(HeMLRNRegressor).fit(X, np.column_stack([y * 10**i for i in range(8)]))
    result = Page(page(model, X, np.column_stack([y * 10**i for i in range(8)]), target="dose"))
    assert {"targets", "scatter-1", "scatter-6"} <= set(result.ids())
    assert "scatter-7" not in result.ids()
    assert "dose 8" in result.text
    assert "Charts of the first 6 of 8 targets." in result.text


def test_one_feature_and_one_row_are_enough():
    X, y = DIABETES
    model = small(HeMLRNRegressor).fit(X[:, :1], y)
    assert "nan" in Page(page(model, X[:1, :1], y[:1])).text  # R2 of one row
    classifier = small(HeMLRNClassifier).fit(IRIS[0][:, :1], IRIS[1])
    assert "100.0 %" in page(classifier, IRIS[0][:1, :1], classifier.predict(IRIS[0][:1, :1]))


def test_many_classes_are_summarised():
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(102), 6)
    X = rng.normal(size=(102, 30))[y] + rng.normal(size=(len(y), 30))
    model = small(HeMLRNClassifier, max_layers=1, fine_tune_epochs=0).fit(X, y)
    text = page(model, X, y)
    result = Page(text)
    assert {"mistakes", "classes", "confusion"} <= set(result.ids())
    assert len(text) < 1_000_000
    worst = re.search(r'<table id="mistakes">.*?</table>', text, re.DOTALL)[0]
    assert worst.count("<tr>") == 11


@pytest.mark.parametrize(
    ("labels", "form"),
    [
        (np.array(["a", "b", "c"])[IRIS[1]], np.ndarray.tolist),
        (IRIS[1] == 1, pd.Series),
        (IRIS[1].astype(float), torch.from_numpy),
        (IRIS[1], lambda y: y.reshape(-1, 1)),
    ],
    ids=["text", "bool", "float", "int"],
)
def test_labels_of_any_kind_are_compared(labels, form):
    X = IRIS[0]
    model = small(HeMLRNClassifier, fine_tune_epochs=0).fit(X, labels)
    assert f"{100 * model.score(X, labels):.1f} %" in page(model, pd.DataFrame(X), form(labels))


def test_wrong_rows_are_refused_in_a_sentence(tmp_path):
    X, y = IRIS
    model, path = small(HeMLRNClassifier, fine_tune_epochs=0).fit(X, y), tmp_path / "report.html"
    for given, message in (
        ((X, None), "got X_test without y_test"),
        ((None, y), "got y_test without X_test"),
        ((X, y[:-1]), "X_test has 150 rows, and y_test 149"),
        ((X, y + 1), "y_test holds the class 3, which the model does not know"),
        ((X[:, :2], y), "features"),
    ):
        with pytest.raises(ValueError, match=message):
            model.report(path, *given)
    regressor = small(HeMLRNRegressor, fine_tune_epochs=0).fit(X, y)
    with pytest.raises(ValueError, match="y_test has 2 targets, and the model 1"):
        regressor.report(path, X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="NaN"):
        regressor.report(path, X, np.where(y == 0, np.nan, y))
    assert not path.exists()


def test_only_fitted_models_of_this_package_have_reports(tmp_path):
    with pytest.raises(NotFittedError, match="not fitted"):
        HeMLGOPClassifier().report(tmp_path / "report.html")
    with pytest.raises(NotFittedError, match="not fitted"):
        HeMLGOPClassifier().plot()
    with pytest.raises(TypeError, match="got LogisticRegression"):
        write_report(LogisticRegression(), tmp_path / "report.html")
    with pytest.raises(FileNotFoundError, match="no folder"):
        small(HeMLRNClassifier, fine_tune_epochs=0).fit(*IRIS).report(tmp_path / "no" / "report.html")


def test_notebooks_show_the_diagram_and_the_drawing():
    model = small(HeMLRNClassifier, fine_tune_epochs=0)
    before = model._repr_html_()
    assert "sk-estimator" in before
    assert 'class="mark"' not in before
    model.fit(*IRIS)
    for shown in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "sk-estimator" in shown
        assert model.plot().svg in shown
    assert model._repr_mimebundle_()["text/plain"] == repr(model)
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")
    pipeline = make_pipeline(StandardScaler(), model).fit(*IRIS)
    assert "HeMLRNClassifier" in pipeline._repr_html_()
    assert pipeline[-1].plot().svg in pipeline[-1]._repr_html_()
