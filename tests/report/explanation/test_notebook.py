"""What notebooks show is well-formed, says which view it is, and takes names from the data for text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_iris

from opgrow.report.explanation.shape import WORDS
from tests.report.explanation.models import fitted

EVIL = '<svg width="100" height="10" aria-hidden="true"><rect onload="alert(1)"/></svg>'
X, Y = load_iris(return_X_y=True)
TAGS = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "span"}
TAGS |= {"svg", "rect", "text", "path", "circle", "line", "title"}


@pytest.fixture(scope="module")
def explanation():
    colours = np.array(["<b>red</b>", "green", "blue"] * 20, dtype=object)
    table = {EVIL: np.linspace(-1, 1, 60), "colour": colours, "size": np.cos(np.arange(60))}
    return fitted("HeMLRNClassifier", table, np.array(["<i>", "no"])[np.arange(60) % 2]).explain(table)


def test_markup_in_names_and_levels_stays_text(explanation):
    for shown in (explanation._repr_html_(), explanation.row(0)._repr_html_()):
        tree = ElementTree.fromstring(shown)
        tags = {re.sub(r"\{.*\}", "", element.tag) for element in tree.iter()}
        assert tags <= TAGS
        assert not any("onload" in element.attrib for element in tree.iter())
        text = "".join(tree.itertext())
        assert EVIL in text or EVIL[:20] in text


def test_the_view_is_named_in_words(explanation):
    assert WORDS["averaged"] in "".join(ElementTree.fromstring(explanation._repr_html_()).itertext())
    way = explanation.row(0)
    text = "".join(ElementTree.fromstring(way._repr_html_()).itertext())
    assert WORDS["columns"] in text
    assert all(sentence in text for sentence in way.sentences)
    assert repr(way) == "\n".join(way.sentences)


def test_each_output_has_its_colour():
    html = fitted("HeMLRNClassifier", X, Y).explain(X)._repr_html_()
    legend = re.findall(r'color:(#[0-9a-f]+)">■</span> (\w+)', html)
    assert [name for _, name in legend] == ["0", "1", "2"]
    for colour, name in legend:
        assert html.count(f'stroke="{colour}" stroke-width="2"><title>{name}</title>') == 4


def test_estimators_show_scikit_learns_diagram_still():
    model = fitted("HeMLRNClassifier", X, Y)
    html = model._repr_html_()
    assert "sk-top-container" in html
    assert 'class="mark"' in html
