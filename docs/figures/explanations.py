"""The pictures of docs/explanations.md: what a network grown on the breast cancer data does.

They are drawn by matplotlib, each version of which writes other bytes: no test compares them.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from opgrow import HeMLGOPClassifier

__all__ = ["drawings"]


def drawings() -> dict[str, str]:
    """The pictures, by their path from the root of the repository."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "opgrow", "svg.fonttype": "none"}  # the same file in every run

    from opgrow.report import plot_growth, plot_neuron, plot_row

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    X_train, X_test, y_train, _ = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    clf = HeMLGOPClassifier(preset=None, max_layers=1, random_state=0).fit(X_train, y_train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # test rows far outside the training data
        explanation = clf.explain(X_test)
    figures = {
        "explanation": explanation.plot(n_columns=5),
        "explanation-row": plot_row(explanation, 6).figure,
        "explanation-neuron": plot_neuron(explanation, explanation.neuron_order[0])[0].figure,
        "explanation-growth": plot_growth(clf).figure,
    }
    return {f"docs/images/{name}.svg": _svg(figure) for name, figure in figures.items()}


def _svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None}, facecolor="white")
    return text.getvalue()
