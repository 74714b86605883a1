"""One run: fit a model on a split of a table and measure it, in a process of its own.

Usage: python -m opgrow.bench.peers.one_run REQUEST

REQUEST is a JSON object with the fields of `opgrow.bench.peers.processes.Request`, and the answer is another.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import Any

import numpy as np

from . import metrics
from .folds import load_fold
from .inputs import inputs_of
from .models import build, form_of
from .sizes import n_parameters, structure
from .splits import TableSplit, load_split

__all__ = ["fit_and_measure", "main", "measure"]

#: What the argument of ``fit`` is called that names categories, by the start of the class's module.
_CATEGORY_ARGUMENTS = {
    "lightgbm": "categorical_feature",
    "catboost": "cat_features",
    "pytabkit": "cat_col_names",
}


def fit_and_measure(model_name: str, split: TableSplit, seed: int) -> dict[str, Any]:
    """What came of a run of a model that has a name."""
    return measure(build(model_name, split.task, seed), form_of(model_name), split)


def measure(model: Any, form: str, split: TableSplit) -> dict[str, Any]:
    """Metrics, seconds and sizes of a model. Preparing its inputs, which have a form, counts as fitting."""
    classes, y = None, split.y_train
    started, busy = time.perf_counter(), _cpu_seconds()
    if split.task == "classification":  # few training rows may lack a class
        classes, y = np.unique(split.y_train, return_inverse=True)
    x, x_test, categories = inputs_of(form, split)
    model.fit(x, y, **_about_categories(model, x, categories))
    result: dict[str, Any] = {
        "fit_seconds": time.perf_counter() - started,
        "fit_cpu_seconds": _cpu_seconds() - busy,
    }
    started = time.perf_counter()
    probabilities = model.predict_proba(x_test) if hasattr(model, "predict_proba") else None
    predicted = None if probabilities is not None else np.asarray(model.predict(x_test)).ravel()
    result["predict_seconds"] = time.perf_counter() - started
    if classes is None:
        assert predicted is not None
        result |= metrics.of_numbers(split.y_test, predicted.astype(np.float64), split.y_train)
    elif probabilities is None:
        assert predicted is not None
        result |= metrics.of_classes(split.y_test, classes[predicted.astype(int)])
    else:
        every = np.zeros((len(split.y_test), split.n_classes))
        every[:, classes] = probabilities
        result |= metrics.of_classes(split.y_test, every.argmax(axis=1))
        result |= metrics.of_probabilities(split.y_test, every)
    return result | {"parameters": n_parameters(model)} | structure(model)


def _about_categories(model: Any, x: Any, categories: list[Any]) -> dict[str, Any]:
    """Tell a model which columns are categories, by a parameter of its own or by an argument of ``fit``."""
    if not categories:
        return {}
    if "categorical_features" in model.get_params():
        # Of more categories than bins, the codes are taken as numbers.
        few = [place for place in categories if np.nanmax(x[:, place], initial=0) < model.max_bins]
        model.set_params(categorical_features=few)
        return {}
    return {_CATEGORY_ARGUMENTS[type(model).__module__.partition(".")[0]]: categories}


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


def _split(request: dict[str, Any]) -> TableSplit:
    if request["folds"] is not None:
        return load_fold(request["folds"], request["split"])
    return load_split(request["table"], request["split"], request["data"], request["max_rows"])


def main() -> None:
    """Answer the request of the command line; a failure is an answer, too."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a model prints goes elsewhere
    warnings.simplefilter("ignore")  # convergence notices of peers
    request = json.loads(sys.argv[1])
    result: dict[str, Any] = {}
    try:
        split = _split(request)
        result = {"task": split.task, "rows": len(split.y_train), "test_rows": len(split.y_test)}
        result |= {"status": "done", **fit_and_measure(request["model"], split, request["split"])}
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        result |= {"status": "failed", "message": f"{type(error).__name__}: {first}"}
    answer.write(json.dumps(result))
    answer.flush()


if __name__ == "__main__":
    main()
