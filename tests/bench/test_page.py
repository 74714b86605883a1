"""The page of a study stands alone, shows tables and figures, and escapes whatever comes from data."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from opgrow.bench.page import page
from opgrow.bench.runs import DONE, Run
from opgrow.bench.study import Study

STEPS = [
    {
        "kind": "block",
        "layer": 1,
        "block": 1,
        "accepted": True,
        "parameters": 9,
        "score": 0.2,
        "curve": [[0.9, 0.3], [0.5, 0.2]],
    },
    {
        "kind": "fine-tune",
        "layer": 1,
        "block": 0,
        "accepted": False,
        "parameters": 9,
        "score": 0.2,
        "curve": [[0.4, 0.2]],
    },
]
EVIL = '<img src=x onerror=alert("&")>'


def result(accuracy, model):
    actual = {"status": DONE, "accuracy": accuracy, "seconds": 0.5, "parameters": 100, "flops": 200}
    if model.startswith("He"):
        actual |= {"operators": [{"layer": 1, "set": "gaussian/sum/tanh", "neurons": 40}], "steps": STEPS}
    return actual


def made(datasets=("pima", "iris", "wine"), models=("HeMLGOP", "HeMLRN", "MLP 60"), n_splits=6, **changes):
    study = Study(list(datasets), list(models), Path("out"), n_splits=n_splits, **changes)
    results = [
        (Run(name, split, model), result(0.7 + 0.01 * split + 0.02 * number, model))
        for name in datasets
        for split in range(n_splits)
        for number, model in enumerate(models)
    ]
    return page(study, results, f"opgrow bench paper --out {EVIL}")


class Outline(HTMLParser):
    """Tags that are open, identifiers, and addresses that a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.open, self.names, self.fetched, self.tags = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        known = dict(attrs)
        if "id" in known:
            self.names.append(known["id"])
        self.fetched += [known[key] for key in ("src", "href") if key in known]
        if tag not in ("meta", "br", "line", "rect", "circle", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("line", "rect", "circle", "path"):
            assert self.open.pop() == tag


def outline(text):
    actual = Outline()
    actual.feed(text)
    assert actual.open == []
    return actual


def test_the_page_has_the_tables_and_figures_of_the_paper():
    actual = outline(made())
    assert {"accuracy", "parameters", "seconds", "flops", "calibration", "ranks"} <= set(actual.names)
    assert {"operators-nodal", "operators-pool", "operators-activations"} <= set(actual.names)
    assert {"sizes-pima", "curves-pima-loss", "curves-pima-score"} <= set(actual.names)
    assert actual.tags.count("table") == 5 + 1 + 3  # differences, and the paired tests of each dataset


def test_what_was_run_as_printed_is_shown_where_there_is_some():
    text = made(models=("HeMLGOP", "HeMLGOP.paper"))
    assert "how a HeMLGOP.paper grew, score" in text
    assert "accuracy that decides" in text
    assert "how a HeMLGOP grew" not in text


def test_the_papers_medians_stand_beside_the_means_of_many_splits():
    actual = outline(made(protocol="splits"))
    assert "accuracy-paper" in actual.names
    assert "accuracy-paper" not in outline(made(protocol="splits", n_splits=3)).names


def test_nothing_is_fetched_and_no_script_runs():
    text = made()
    actual = outline(text)
    assert actual.fetched == []
    assert "script" not in actual.tags
    assert not re.search(r"url\(|@import", text)


def test_published_figures_are_on_the_page():
    assert "[81.81]" in made(models=("HeMLGOP.paper", "HeMLGOP"))
    assert "[81.81]" not in made(models=("HeMLGOP",))


def test_names_are_escaped():
    text = made(datasets=(EVIL, "iris", "wine"))
    assert EVIL not in text
    assert "img" not in outline(text).tags


@pytest.mark.parametrize("select", ["inner", "none", "test"])
def test_an_optimistic_page_says_so(select):
    assert ("Optimistic" in made(select=select)) == (select == "test")


def test_a_small_study_has_no_tests_and_no_ranks():
    actual = outline(made(datasets=("iris",), models=("PLN",), n_splits=1))
    assert "ranks" not in actual.names
    assert actual.tags.count("table") == 5
