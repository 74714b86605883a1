"""A report as somebody reads it who was sent it: words, real rows, reasons, and the keyboard alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from browser import NEEDED, PROGRAM, Browser
from moving_page import frame_of, opened, said, set_input, settled
from sklearn.datasets import load_iris

from opgrow import HeMLGOPClassifier
from opgrow.report.live.data import as_json
from opgrow.report.live.table import values_of
from tests.report.live.tables import EVIL, fitted
from tests.report.test_page import small

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NEEDED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reading")


@pytest.fixture(scope="module")
def browser(folder):
    with Browser(folder) as opened_browser:
        yield opened_browser


@pytest.fixture(scope="module")
def sales(folder):
    """A model and its rows, and a page about it."""
    model, X, y = fitted("sales")
    model.report(folder / "sales.html", X, y)
    return model, X


def test_contributions_of_few_inputs_and_their_sentences_are_those_of_python(folder, browser):
    """Over the same rows and all orders; many inputs are a sample of both."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X[::2], y[::2]
    model = small(HeMLGOPClassifier).fit(X, y)
    model.report(folder / "iris.html", X, y)
    opened(browser, folder, "iris")
    assert "A network that predicts target" in browser.look("document.querySelector('h1').textContent")
    way = model.explain(X).row(browser.look("opgrow.state.row"))
    first, second = np.argsort(-way.raw)[:2]
    why = browser.look("opgrow.state.why")
    expected = way.columns.values[:, first] - way.columns.values[:, second]
    np.testing.assert_allclose(why["values"], expected, rtol=1e-4, atol=1e-5)
    words = browser.look("document.getElementById('why-words').textContent")
    assert words == " ".join(way.sentences[1:3])
    note = browser.look("document.getElementById('why-words').parentElement.textContent")
    assert "rows and all orders of the inputs" in note
    # On average, inputs and neurons start from the same number.
    assert browser.look("opgrow.state.sums.base") == pytest.approx(why["base"], rel=1e-5, abs=1e-5)


def test_the_tab_key_walks_through_the_page_from_top_to_bottom(sales, folder, browser):
    """Every control can be reached, has a name for screen readers, and is seen to have the focus."""
    opened(browser, folder, "sales")
    browser.look("document.querySelectorAll('details').forEach(d => { d.open = false; })")
    wanted = browser.look(
        "[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]')]"
        ".filter(e => e.checkVisibility({ visibilityProperty: true })).length"
    )
    browser.look("document.activeElement.blur()")
    places = []
    here = "[...document.querySelectorAll('*')].indexOf(document.activeElement)"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    for _ in range(wanted):
        browser.press("Tab")
        places.append(browser.look(here))
        assert browser.look(outline) != "none"
    assert len(set(places)) == wanted
    assert places == sorted(places)
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    roles = ("slider", "spinbutton", "combobox", "checkbox", "button", "link", "image", "searchbox")
    controls = [node for node in nodes if not node.get("ignored") and node["role"]["value"] in roles]
    assert len(controls) > wanted
    assert [node["role"]["value"] for node in controls if not node["name"]["value"].strip()] == []


def test_the_browsers_own_keys_move_a_slider_of_whole_numbers(sales, folder, browser):
    model, X = sales
    opened(browser, folder, "sales")
    age = list(X.columns).index(EVIL)
    set_input(browser, age, "50")
    browser.look(f"document.getElementById('input-{age}').focus()")
    for key, value in (("ArrowRight", 51), ("ArrowLeft", 50), ("ArrowDown", 49)):
        browser.press(key)
        settled(browser)
        assert browser.look("opgrow.state.values")[age] == value
    expected = model.predict_proba(frame_of(X, browser.look("opgrow.state.values")))[0]
    assert f"{100 * expected.max():.1f} %" in said(browser)


def test_a_page_on_a_real_table_predicts_every_test_row_as_python(data_home, folder, browser):
    table = pd.read_csv(data_home / "classification" / "titanic.csv")
    X, y = table.drop(columns="target"), table["target"].rename("survived")
    model = HeMLGOPClassifier(preset=None, random_state=0).fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    assert X.isna().any().sum() > 1
    assert X.select_dtypes("number").shape[1] < X.shape[1]
    model.report(folder / "titanic.html", X, y)
    values, expected = values_of(model, X, model.network_rows(X)), model.predict_proba(X)
    opened(browser, folder, "titanic")
    rows = as_json(values.rows(range(values.n_rows)))
    shares = np.array(browser.look(f"{rows}.map(row => opgrow.model.predict(row).shares)"))
    np.testing.assert_allclose(shares, expected, rtol=1e-4, atol=1e-5)
    assert browser.look("document.querySelector('.caption').textContent") == "Prediction of survived"
