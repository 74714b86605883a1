"""Figures of reports, compared with scikit-learn's."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn import metrics

from opgrow.report.matrix import confusion_matrix
from opgrow.report.quality import ClassQuality, NumberQuality

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def classified():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, 300)  # and nothing of the last class
    probabilities = rng.dirichlet(np.ones(5), 300)
    probabilities[np.arange(300), codes] += 0.6
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return codes, probabilities, probabilities.argmax(axis=1)


def test_figures_of_classes_are_scikit_learns(classified):
    codes, probabilities, predicted = classified
    quality = ClassQuality.of(*classified)
    wanted = metrics.precision_recall_fscore_support(codes, predicted, labels=np.arange(5), zero_division=0)
    for actual, expected in zip(
        (quality.precision, quality.recall, quality.f1, quality.support), wanted, strict=True
    ):
        assert actual == pytest.approx(expected)
    assert (quality.confusion == metrics.confusion_matrix(codes, predicted, labels=np.arange(5))).all()
    assert quality.scores["accuracy"] == metrics.accuracy_score(codes, predicted)
    assert quality.scores["log_loss"] == pytest.approx(
        metrics.log_loss(codes, probabilities, labels=np.arange(5))
    )
    assert quality.scores["most_frequent"] == np.bincount(codes).max() / 300
    assert quality.bins[0].sum() == 300


def test_figures_of_numbers_are_scikit_learns():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(50, 2)) * [1, 100]
    predicted = values + rng.normal(size=(50, 2))
    quality = NumberQuality.of(values, predicted)
    assert quality.by_target[1]["r2"] == pytest.approx(metrics.r2_score(values[:, 1], predicted[:, 1]))
    assert quality.by_target[0]["rmse"] == pytest.approx(np.sqrt(np.mean((values - predicted)[:, 0] ** 2)))
    assert quality.scores["mae"] == pytest.approx(np.abs(values - predicted).mean())


@pytest.mark.parametrize("n", [2, 10, 102])
def test_a_confusion_matrix_has_a_cell_for_each_count(n):
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 3, (n, n))
    counts[0, 1] = 0
    drawn = confusion_matrix(counts, [f"<{i}>" for i in range(n)])
    root = ElementTree.fromstring(drawn)
    cells = [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    assert len(cells) == np.count_nonzero(counts)
    said = {cell.find(f"{SVG}title").text.split(" (")[0] for cell in cells}
    row, column = np.argwhere(counts)[-1]
    assert f"true <{row}>, predicted <{column}>: {counts[row, column]}" in said
    labels = [text.text for text in root.iter(f"{SVG}text")]
    assert ("<1>" in labels) == (n <= 30)
    width, height = map(float, root.get("viewBox").split()[2:])
    assert max(float(cell.get("x")) + float(cell.get("width")) for cell in cells) <= width
    assert max(float(cell.get("y")) + float(cell.get("height")) for cell in cells) <= height


def test_the_colour_of_a_cell_is_its_share_of_the_row():
    root = ElementTree.fromstring(confusion_matrix(np.array([[9, 1], [500, 500]]), ["a", "b"]))
    cells = [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    strong, weak, wrong, right = (float(cell.get("fill-opacity")) for cell in cells)
    assert strong > right == wrong > weak
    assert cells[0].get("fill") == cells[3].get("fill") != cells[1].get("fill") == cells[2].get("fill")
