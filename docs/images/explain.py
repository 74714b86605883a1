"""Draw the pictures of docs/explanations.md: what a network grown on the breast cancer data does.

Run with: python docs/images/explain.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.hashsalt": "opgrow", "svg.fonttype": "none"}  # the same file in every run

from sklearn.datasets import load_breast_cancer  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402

from opgrow import HeMLGOPClassifier  # noqa: E402
from opgrow.report import plot_growth, plot_neuron, plot_row  # noqa: E402

HERE = Path(__file__).parent

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
clf = HeMLGOPClassifier(preset=None, max_layers=1, random_state=0).fit(X_train, y_train)
explanation = clf.explain(X_test)
print(clf.network_, clf.score(X_test, y_test))
print(explanation, explanation.row(6), sep="\n")


def save(figure: object, name: str) -> None:
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None}, facecolor="white")  # type: ignore[attr-defined]


save(explanation.plot(n_columns=5), "explanation")
save(plot_row(explanation, 6).figure, "explanation-row")
save(plot_neuron(explanation, explanation.neuron_order[0])[0].figure, "explanation-neuron")
save(plot_growth(clf).figure, "explanation-growth")
