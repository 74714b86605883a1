"""``opgrow demo``: grow a network on a bundled data set, beside two models that everybody knows."""

from __future__ import annotations

import time
import warnings
from typing import Annotated, Any

import typer

from opgrow.cli import common, options

__all__ = ["demo"]


def demo(
    dataset: Annotated[
        str,
        typer.Option(help="digits, breast_cancer, wine, iris, diabetes, or a file with a column 'target'."),
    ] = "digits",
    seed: Annotated[int, typer.Option(help="Seed of the models; the split into 60 and 40 % is fixed.")] = 0,
    as_json: options.TablesJson = False,
) -> None:
    """Grow a network on the handwritten digits and compare it with scikit-learn.

    The same 60 % of the rows train a HeMLGOP, a linear model and a multilayer perceptron with two layers of
    200 neurons; the other 40 % score them.
    """
    from sklearn.model_selection import train_test_split

    from opgrow.rows import datasets

    data = datasets.load(dataset)
    strata = data.target if data.task == "classification" else None
    parts = train_test_split(data.data, data.target, test_size=0.4, stratify=strata, random_state=0)
    grown, rows = _compare(data.task, seed, *parts)
    metric = "accuracy" if data.task == "classification" else "R2"
    if as_json:
        common.print_json(
            {
                "dataset": dataset,
                "task": data.task,
                "metric": metric,
                "training_rows": len(parts[0]),
                "test_rows": len(parts[1]),
                "results": rows,
                "topology": grown.network_.topology(),
                "network": grown.network_.describe(),
            }
        )
        return
    console = common.console()
    console.print(_table(f"{dataset}: {len(parts[0])} rows to train, {len(parts[1])} to test", metric, rows))
    console.print()
    console.print(repr(grown.network_), soft_wrap=True)


def _compare(
    task: str, seed: int, x: Any, x_test: Any, y: Any, y_test: Any
) -> tuple[Any, list[dict[str, Any]]]:
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from opgrow.estimators import HeMLGOPClassifier, HeMLGOPRegressor
    from opgrow.estimators.listeners.progress import Progress

    classes = task == "classification"
    rows: list[dict[str, Any]] = []

    def measure(name: str, model: Any) -> Any:
        clock = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a perceptron that has not converged is a result, too
            model.fit(x, y)
        seconds = round(time.perf_counter() - clock, 3)
        score = round(float(model.score(x_test, y_test)), 4)
        parameters, flops = _size(model)
        rows.append(
            {"model": name, "score": score, "parameters": parameters, "flops": flops, "seconds": seconds}
        )
        return model

    with Progress() as progress:
        cls = HeMLGOPClassifier if classes else HeMLGOPRegressor
        grown = measure("HeMLGOP", cls(random_state=seed, callbacks=[progress]))
    linear = LogisticRegression(max_iter=1000) if classes else LinearRegression()
    measure(type(linear).__name__, make_pipeline(StandardScaler(), linear))
    perceptron = (MLPClassifier if classes else MLPRegressor)(
        hidden_layer_sizes=(200, 200), random_state=seed
    )
    measure(f"{type(perceptron).__name__}(200, 200)", make_pipeline(StandardScaler(), perceptron))
    return grown, rows


def _size(model: Any) -> tuple[int, int]:
    """Parameters and operations for one sample, counted as the network counts its own."""
    import numpy as np

    if hasattr(model, "network_"):
        return model.network_.n_parameters(), model.network_.flops()
    last = model[-1]
    if hasattr(last, "coefs_"):
        weights, biases = sum(w.size for w in last.coefs_), [b.size for b in last.intercepts_]
        return weights + sum(biases), 2 * weights + sum(biases) + sum(biases[:-1])
    weights, bias = last.coef_.size, np.size(last.intercept_)
    return weights + bias, 2 * weights + bias


def _table(title: str, metric: str, rows: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("model")
    for name in (f"test {metric}", "parameters", "FLOPs", "seconds"):
        table.add_column(name, justify="right")
    for row in rows:
        figures = (
            f"{row['score']:.4f}",
            f"{row['parameters']:,}",
            f"{row['flops']:,}",
            f"{row['seconds']:.2f}",
        )
        table.add_row(row["model"], *figures)
    return table
