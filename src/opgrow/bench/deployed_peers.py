"""Other models where predictions are timed: as C by m2cgen, emlearn and micromlgen, and as ``predict``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import chdir
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..export.c_text import floating
from .c_programs import CFunction
from .runtimes import Candidate, Runtimes

__all__ = [
    "HIDDEN",
    "TREES",
    "by_emlearn",
    "by_m2cgen",
    "by_micromlgen",
    "on_raw_inputs",
    "peer_candidates",
    "scaled",
]

#: Numbers of trees and of hidden neurons that are tried.
TREES = (1, 3, 5, 10, 20, 50, 100)
HIDDEN = (4, 8, 16, 32, 60)
#: Cross-validated accuracy that the smallest model may lack to the best of its kind.
TOLERANCE = 0.005
#: Below the output of m2cgen: what makes a class of its scores.
_TWO = """
int model_predict(const double *x)
{
    return score((double *)x) > 0.0;
}
"""
_MANY = """
int model_predict(const double *x)
{
    double out[%(n)d];
    int best = 0;
    score((double *)x, out);
    for (int i = 1; i < %(n)d; i++) {
        if (out[i] > out[best]) best = i;
    }
    return best;
}
"""
_EMLEARN = """
#include "emlearn_model.h"

int model_predict(const float *x)
{
    return emlearn_model_predict(x, %(n)d);
}
"""
#: Around the C++ of micromlgen, whose inputs may have to be standardised.
_MICROMLGEN = """
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
%(text)s
%(constants)s
extern "C" int model_predict(const float *raw)
{
    static Eloquent::ML::Port::Model model;
    float x[%(n)d];
    for (int i = 0; i < %(n)d; i++) {
        x[i] = %(value)s;
    }
    return model.predict(x);
}
"""


def peer_candidates(runtimes: Runtimes) -> Iterator[Candidate]:
    """A forest, a multilayer perceptron and a logistic regression, as C and in Python."""
    forests = {n: RandomForestClassifier(n, min_samples_leaf=3, random_state=runtimes.seed) for n in TREES}
    n, forest = _smallest(runtimes, forests)
    expected = runtimes.codes(forest)
    name = f"random forest ({n} trees)"
    yield from by_m2cgen(runtimes, name, forest, expected)
    yield from by_emlearn(runtimes, name, forest, expected, method="inline", dtype="float")
    yield from by_micromlgen(runtimes, name, forest, expected)
    yield runtimes.predict(name, forest, expected)
    mlps = {n: scaled(MLPClassifier((n,), max_iter=1000, random_state=runtimes.seed)) for n in HIDDEN}
    n, mlp = _smallest(runtimes, mlps)
    expected = runtimes.codes(mlp)
    name = f"MLP ({n} hidden)"
    yield from by_emlearn(runtimes, name, on_raw_inputs(mlp), expected)
    yield runtimes.predict(name, mlp, expected)
    linear = scaled(LogisticRegression(max_iter=1000)).fit(runtimes.x, runtimes.y)
    expected = runtimes.codes(linear)
    yield from by_m2cgen(runtimes, "logistic regression", on_raw_inputs(linear), expected)
    yield runtimes.predict("logistic regression", linear, expected)


def _smallest(runtimes: Runtimes, models: dict[int, Any]) -> tuple[int, Any]:
    """The smallest model that is about as good as the best, by cross-validation on the training rows."""
    folds = StratifiedKFold(5, shuffle=True, random_state=runtimes.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = {n: cross_val_score(m, runtimes.x, runtimes.y, cv=folds).mean() for n, m in models.items()}
        chosen = next(n for n, score in scores.items() if score >= max(scores.values()) - TOLERANCE)
        return chosen, models[chosen].fit(runtimes.x, runtimes.y)


def by_m2cgen(runtimes: Runtimes, name: str, model: Any, expected: np.ndarray) -> Iterator[Candidate]:
    """A model as C by m2cgen."""
    if not runtimes.has("m2cgen", "bench"):
        return
    import m2cgen

    def write(path: Path) -> CFunction:
        n_classes = len(model.classes_)
        text = m2cgen.export_to_c(model)
        face = _MANY if "void score(" in text else _TWO
        path.write_text(text + face % {"n": n_classes})
        return CFunction(path, "model_predict", "double")

    yield from runtimes.compiled(name, "C by m2cgen", expected, write)


def by_emlearn(
    runtimes: Runtimes, name: str, model: Any, expected: np.ndarray, **options: str
) -> Iterator[Candidate]:
    """A model as C by emlearn."""
    if not runtimes.has("emlearn", "bench"):
        return
    with np.errstate():  # which importing it changes for the whole process
        import emlearn

    def write(path: Path) -> CFunction:
        with chdir(path.parent):  # it leaves files behind where it works
            converted = emlearn.convert(model, **options)
        converted.save(file=str(path.with_name("emlearn_model.h")), name="emlearn_model")
        path.write_text(_EMLEARN % {"n": runtimes.x.shape[1]})
        return CFunction(path, "model_predict", flags=(f"-I{emlearn.includedir}",))

    yield from runtimes.compiled(name, "C by emlearn", expected, write)


def by_micromlgen(runtimes: Runtimes, name: str, model: Any, expected: np.ndarray) -> Iterator[Candidate]:
    """A model, or a pipeline of a scaler and a model, as C++ by micromlgen."""
    if not runtimes.has("micromlgen", "bench"):
        return
    from micromlgen import port

    def write(path: Path) -> CFunction:
        constants, value, last = "", "raw[i]", model
        if hasattr(model, "steps"):
            scaler, last = model[0], model[-1]
            arrays = {"means": scaler.mean_, "factors": 1 / scaler.scale_}
            constants = "\n".join(
                f"static const float {key}[] = {{{', '.join(map(floating, values.tolist()))}}};"
                for key, values in arrays.items()
            )
            value = "(raw[i] - means[i]) * factors[i]"
        text = port(last, classname="Model").replace("#include <cstdarg>", "")
        names = {"text": text, "constants": constants, "n": runtimes.x.shape[1], "value": value}
        source = path.with_suffix(".cpp")
        source.write_text(_MICROMLGEN % names)
        return CFunction(source, "model_predict", flags=("-fno-exceptions", "-fno-threadsafe-statics"))

    yield from runtimes.compiled(name, "C++ by micromlgen", expected, write)


def scaled(model: Any) -> Any:
    """A pipeline that standardises the inputs of a model."""
    return make_pipeline(StandardScaler(), model)


def on_raw_inputs(pipeline: Any) -> Any:
    """The model of a pipeline with the scaler before it in its own weights."""
    scaler, model = pipeline[0], deepcopy(pipeline[-1])
    if hasattr(model, "coefs_"):
        first = model.coefs_[0] / scaler.scale_[:, None]
        model.intercepts_[0] = model.intercepts_[0] - scaler.mean_ @ first
        model.coefs_[0] = first
    else:
        model.coef_ = model.coef_ / scaler.scale_
        model.intercept_ = model.intercept_ - model.coef_ @ scaler.mean_
    return model
