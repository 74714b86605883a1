"""The report in a real browser: drawn, explained on hovering, complete without a network."""

from __future__ import annotations

import re

import numpy as np
import pytest
from browser import NEEDED, PROGRAM, Browser
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from opgrow import BLSClassifier, HeMLGOPClassifier, HeMLGOPRegressor

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NEEDED)

QUICK = {"epochs": (5, 5), "fine_tune_epochs": 5, "random_state": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where pages are."""
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def browser(folder):
    with Browser(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def written(folder):
    """Reports by name, with their models."""
    result = {}
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :8]
    result["average"] = HeMLGOPClassifier(n_estimators=10, max_layers=1, distill=None, **QUICK), X, y
    X, y = load_iris(return_X_y=True, as_frame=True)
    evil = X.set_axis(["<script>alert(1)</script>", '"', "</title>", "petal width (cm)"], axis=1)
    names = np.array(["setosa", "<img src=x onerror=alert(2)>", "virginica"])
    result["classifier"] = HeMLGOPClassifier(n_estimators=1, **QUICK), evil, names[y]
    result["broad"] = BLSClassifier(block_threshold=-1.0, random_state=0), X, y
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    result["regressor"] = HeMLGOPRegressor(n_estimators=1, max_layers=2, **QUICK), X, y
    for name, (model, X, y) in result.items():
        model.fit(X[::2], y[::2]).report(folder / f"{name}.html", X[1::2], y[1::2])
    return {name: model for name, (model, _, _) in result.items()}


def tip(browser):
    return browser.look(
        "document.getElementById('tip').hidden ? null : document.getElementById('tip').innerText"
    )


@pytest.mark.parametrize("name", ["classifier", "average", "regressor", "broad"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (400, "light")])
def test_pages_are_drawn_without_complaints_or_fetching(name, width, scheme, written, folder, browser):
    page = folder / f"{name}.html"
    browser.fetched.clear()
    browser.complaints.clear()
    browser.open(page, width, scheme=scheme)
    browser.keep(f"report-{name}-{width}-{scheme}.png")
    assert browser.fetched == [page.as_uri()]
    assert browser.complaints == []
    hidden = sum(layer.n_neurons for layer in written[name].network_.layers)
    marks = "[...document.querySelectorAll('#network circle.mark')]"
    assert browser.look(f"{marks}.length") == hidden + written[name].network_.n_outputs
    assert browser.look(f"{marks}.every(m => m.getBoundingClientRect().width > 3)")
    # What is too wide scrolls in its own place, and not the page.
    assert browser.look("document.documentElement.scrollWidth") <= width
    ink = browser.look("getComputedStyle(document.querySelector('#network text')).fill")
    assert (min(map(int, re.findall(r"\d+", ink))) > 200) == (scheme == "dark")


@pytest.mark.parametrize("name", ["classifier", "average", "regressor", "broad"])
def test_texts_of_the_drawing_do_not_overlap(name, written, folder, browser):
    browser.open(folder / f"{name}.html")
    overlaps = browser.look("""(() => {
        const boxes = [...document.querySelectorAll('#network text')]
            .map(t => [t.textContent, t.getBoundingClientRect()]);
        const frame = document.querySelector('#network svg').getBoundingClientRect();
        const found = boxes.filter(([, b]) => b.left < frame.left - 1 || b.right > frame.right + 1);
        boxes.forEach(([, a], i) => boxes.slice(0, i).forEach(([words, b]) => {
            const across = a.right > b.left && b.right > a.left;
            if (across && a.bottom > b.top + 3 && b.bottom > a.top + 3) found.push([words, boxes[i][0]]);
        }));
        return found.map(([words, other]) => [words, String(other)]);
    })()""")
    assert overlaps == []


def test_hovering_over_a_neuron_names_its_operators(written, folder, browser):
    browser.open(folder / "classifier.html")
    assert tip(browser) is None
    network = written["classifier"].network_
    seen = 4  # the inputs are marks, too
    for number, layer in enumerate(network.layers, 1):
        for place, block in enumerate(layer, 1):
            browser.point_at("#network .mark", seen + block.n_neurons - 1)
            said = tip(browser).split("\n")
            assert said[0] == str(block.operator_set).replace("/", " / ")
            assert said[1] == f"layer {number}, block {place}, neuron {block.n_neurons} of {block.n_neurons}"
            seen += block.n_neurons
    browser.keep("report-hover.png", whole=False)
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert tip(browser) is None


def test_names_from_data_are_text_and_nothing_else(written, folder, browser):
    browser.complaints.clear()
    browser.open(folder / "classifier.html")
    browser.point_at("#network .mark", 0)
    assert tip(browser).startswith("<script>alert(1)</script>\n")
    assert browser.look("[...document.scripts].map(s => s.type)") == ["application/json", ""]
    assert browser.look("document.images.length") == 0
    assert "<img src=x onerror=alert(2)>" in browser.look("document.getElementById('classes').innerText")
    assert browser.complaints == []


def test_no_script_but_the_pages_own_may_run(written, folder, browser):
    text = (folder / "regressor.html").read_text()
    (folder / "injected.html").write_text(text.replace("</h1>", "</h1><script>window.ran = true</script>"))
    browser.open(folder / "injected.html")
    assert browser.look("window.ran === undefined")
    browser.point_at("#network .mark", 0)
    assert tip(browser)


def test_arrow_keys_walk_from_neuron_to_neuron(written, folder, browser):
    browser.open(folder / "regressor.html")
    browser.look("document.querySelector('#network svg').focus()")
    browser.press("ArrowRight")
    first = tip(browser)
    browser.press("ArrowRight")
    assert first.startswith("age")
    assert tip(browser).startswith("sex")
    browser.press("ArrowLeft")
    assert tip(browser) == first
    browser.press("Escape")
    assert tip(browser) is None


def test_other_charts_have_tips_too(written, folder, browser):
    browser.open(folder / "classifier.html")
    browser.point_at("#confusion rect[fill-opacity]", 0)
    assert tip(browser).startswith("true ")
    browser.open(folder / "regressor.html")
    browser.point_at("#scatter-1 circle:last-of-type")  # which lies on top
    assert tip(browser).startswith("row 220:")
