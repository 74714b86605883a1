"""What the parameters of the HeMLGOP family mean: their documentation, their checks, their translation.

Parameters are checked in `fit`, as scikit-learn does; every complaint names the parameter, what was given
and what was expected.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .engines import TuningSettings
from .growth import GrowthSettings, Problem
from .operators import library
from .scores import CRITERIA
from .search import SCORES, SearchSettings

__all__ = ["class_weights", "documentation", "fill_in", "translate"]

#: Above this many inputs, a perceptron is always among the tuned candidates.
_MANY_INPUTS = 16
_RIDGES = (0.1, 1.0, 10.0)

_PARAMETERS = """
    Parameters
    ----------
    n_min, n_step : int, default=40, 20
        Neurons of a layer's first block and of every further block.
    max_neurons, max_layers : int, default=200, 2
        Bounds on the width of a layer and on the depth.
    block_threshold, layer_threshold : float, default=1e-4
        Least relative improvement of the score by which a new block or layer is kept.
    ridge : "auto", float or sequence of float, default="auto"
        Regularisation of the closed-form head in the search; from several values the search's score
        chooses. "auto" is (0.1, 1, 10).
    operators : {"default", "paper", "pygop"} or list, default="default"
        The operator sets to search; see `opgrow.operators.library`.
    weight_range : "auto", float or sequence of float, default="auto"
        Random weights are uniform in [-range, range]; every range given is tried. "auto" is
        1.5 / sqrt(inputs).
    n_draws : int, default=1
        Random draws tried for each operator set and range.
    share_draws : bool, default=True
        Whether operator sets with the same nodal operator are compared on the same random weights.
    search_score : {"loo", "gcv", "loss", "accuracy"}, default="loo"
        What ranks the candidates: leave-one-out or generalised cross-validated squared error, squared
        training error, or accuracy (on validation data if there is some).
    tune_perceptron : "auto" or bool, default="auto"
        Whether the best candidate that multiplies and sums is tuned too, beside the search's winner, and
        the better one kept. "auto" does so for more than 16 inputs.
    criterion : {"auto", "accuracy", "brier", "loss"}, default="auto"
        What decides growth. "auto" is "brier" for classification and "loss" for regression.
    loss : {"auto", "cross_entropy", "mse"} or callable, default="auto"
        What tuning descends. "auto" is "cross_entropy" for classification and "mse" for regression. A
        callable takes outputs and targets, both (n, outputs), and returns one loss per row.
    learning_rates, epochs : sequences of float and int, default=(0.01, 0.001, 0.0001), (20, 40, 40)
        Schedule of the tuning of a block.
    patience : int or None, default=10
        Epochs without a better score after which a learning rate gives way to the next one; None never
        cuts the schedule short.
    batch_size : int, default=32
    dropout : float or sequence of float, default=(0.1, 0.3)
        Dropout on hidden features; from several values the first block chooses.
    input_dropout : float, default=0
    weight_decay : "auto" or float, default="auto"
        "auto" is 0.4 / number of training rows.
    max_norm : float or None, default=None
        Bound on the norm of each neuron's weights.
    optimizer : "adam" or callable, default="adam"
        A callable takes parameter groups and returns a torch optimiser.
    fine_tune_epochs, fine_tune_learning_rate : int and float, default=200, 5e-5
        Final tuning of the whole network, kept only if the score improves; 0 epochs turn it off.
    validation_fraction : float, default=0.2
        Part of the training data that only scores; 0 scores on the training data, and so does a part
        of fewer than 8 rows.
    standardize : bool, default=True
        Whether inputs are standardised inside the network.
    {extra}device : {"auto", "cpu"}, default="auto"
    n_jobs : int or None, default=None
        Threads; None uses as many as torch does, -1 all cores.
    callbacks : list of Callback, optional
    verbose : int, default=0
        1 shows live progress.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    network_ : Network, a torch module
    history_ : list of GrowthStep, everything that was tried
    """
_CLASS_WEIGHT = """class_weight : dict, "balanced" or None, default=None
    """


def documentation(summary: str, class_name: str) -> str:
    """The docstring of an estimator."""
    classifies = class_name.endswith("Classifier")
    example = _CLASSIFIER_EXAMPLE if classifies else _REGRESSOR_EXAMPLE
    text = _PARAMETERS.replace("{extra}", _CLASS_WEIGHT if classifies else "")
    return summary + "\n" + text + example.format(name=class_name)


_CLASSIFIER_EXAMPLE = """
    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import {name}
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = {name}(n_min=10, n_step=5, random_state=0).fit(X, y)
    >>> bool(clf.score(X, y) > 0.9)
    True
    """
_REGRESSOR_EXAMPLE = """
    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from opgrow import {name}
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = {name}(n_min=10, n_step=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.3)
    True
    """


def translate(p: Any, classification: bool) -> GrowthSettings:
    """Check an estimator's parameters and translate them; what depends on the data comes in `fill_in`."""
    _check_numbers(p)
    criterion, loss = p.criterion, p.loss
    if criterion == "auto":
        criterion = "brier" if classification else "loss"
    if isinstance(loss, str) and loss == "auto":
        loss = "cross_entropy" if classification else "mse"
    _check_choice("criterion", criterion, tuple(CRITERIA) if classification else ("loss",), auto=True)
    if not callable(loss):
        losses = ("mse", "cross_entropy") if classification else ("mse",)
        _check_choice("loss", loss, losses, auto=True, function=True)
    scores = SCORES if classification else tuple(s for s in SCORES if s != "accuracy")
    _check_choice("search_score", p.search_score, scores)
    if not callable(p.optimizer):
        _check_choice("optimizer", p.optimizer, ("adam",), function=True)
    _check_choice("device", p.device, ("auto", "cpu"))
    if not isinstance(p.tune_perceptron, bool | np.bool_):
        _check_choice("tune_perceptron", p.tune_perceptron, ("auto", True, False))
    rates = _values("learning_rates", p.learning_rates, lambda v: 0 <= v < np.inf, "at least 0", empty=True)
    epochs = tuple(p.epochs) if isinstance(p.epochs, Sequence | np.ndarray) else (p.epochs,)
    if not all(_is_integer(e) and e >= 0 for e in epochs):
        raise ValueError(f"epochs must be a sequence of integers of at least 0, got {p.epochs!r}")
    if len(rates) != len(epochs):
        raise ValueError(
            f"learning_rates and epochs must have the same length, got {len(rates)} and {len(epochs)}"
        )
    dropouts = _values("dropout", p.dropout, lambda v: 0 <= v < 1, "in [0, 1)")
    ridges: tuple[float, ...] = _RIDGES
    if not (isinstance(p.ridge, str) and p.ridge == "auto"):
        ridges = _values("ridge", p.ridge, lambda v: 0 < v < np.inf, "positive")
    n_threads = _n_threads(p.n_jobs)
    tuning = TuningSettings(
        loss=loss,
        learning_rates=rates,
        epochs=tuple(int(e) for e in epochs),
        patience=p.patience,
        batch_size=int(p.batch_size),
        dropout=dropouts[0],
        input_dropout=float(p.input_dropout),
        max_norm=p.max_norm,
        optimizer=p.optimizer,
        n_threads=n_threads,
    )
    return GrowthSettings(
        sets=tuple(library(p.operators)),
        search=SearchSettings(
            n_draws=int(p.n_draws),
            share_draws=bool(p.share_draws),
            ridges=ridges,
            score=p.search_score,
            n_threads=n_threads,
        ),
        tuning=tuning,
        fine_tuning=replace(
            tuning,
            learning_rates=(float(p.fine_tune_learning_rate),),
            epochs=(int(p.fine_tune_epochs),),
        ),
        criterion=criterion,
        n_min=int(p.n_min),
        n_step=int(p.n_step),
        max_neurons=int(p.max_neurons),
        max_layers=int(p.max_layers),
        block_threshold=float(p.block_threshold),
        layer_threshold=float(p.layer_threshold),
        dropouts=dropouts,
        logits=classification and loss != "mse",
    )


def fill_in(p: Any, settings: GrowthSettings, problem: Problem) -> GrowthSettings:
    """Settings whose automatic values depend on the size of the data."""
    decay = 0.4 / len(problem.x) if p.weight_decay == "auto" else float(p.weight_decay)
    ranges: tuple[float, ...] = (1.5 / float(np.sqrt(problem.n_inputs)),)
    if not (isinstance(p.weight_range, str) and p.weight_range == "auto"):
        ranges = _values("weight_range", p.weight_range, lambda v: 0 < v < np.inf, "positive")
    also = problem.n_inputs > _MANY_INPUTS if p.tune_perceptron == "auto" else p.tune_perceptron
    plain = frozenset(s for s in settings.sets if (s.nodal, s.pool) == ("multiplication", "sum"))
    return replace(
        settings,
        search=replace(settings.search, weight_ranges=ranges, rivals=plain if also else frozenset()),
        tuning=replace(settings.tuning, weight_decay=decay),
        fine_tuning=replace(settings.fine_tuning, weight_decay=decay),
    )


def class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """A weight for every row, from a dictionary or "balanced" (inversely proportional to class counts)."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(codes, minlength=len(classes))
        return (len(codes) / (len(classes) * counts))[codes]
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must be a dictionary, 'balanced' or None, got {class_weight!r}")
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight names the class {unknown[0]!r}, but y has only {labels}")
    weights = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError(f"class weights must be finite, at least 0 and not all 0, got {class_weight!r}")
    return weights[codes]


def _n_threads(n_jobs: Any) -> int:
    if n_jobs is None:
        return torch.get_num_threads()
    if not _is_integer(n_jobs) or (n_jobs < 1 and n_jobs != -1):
        raise ValueError(f"n_jobs must be None, -1 or an integer of at least 1, got {n_jobs!r}")
    if n_jobs == -1:
        import joblib

        return int(joblib.cpu_count())
    return int(n_jobs)


def _check_numbers(p: Any) -> None:
    for name, least in (
        ("n_min", 1),
        ("n_step", 1),
        ("max_neurons", 1),
        ("max_layers", 1),
        ("n_draws", 1),
        ("batch_size", 1),
        ("fine_tune_epochs", 0),
    ):
        _check_integer(name, getattr(p, name), least)
    if p.patience is not None:
        _check_integer("patience", p.patience, 1, " or None")
    for name, low, high in (
        ("block_threshold", -np.inf, np.inf),
        ("layer_threshold", -np.inf, np.inf),
        ("input_dropout", 0.0, 0.999),
        ("fine_tune_learning_rate", 0.0, 1e6),
        ("validation_fraction", 0.0, 0.9),
    ):
        _check_number(name, getattr(p, name), low, high)
    if not (isinstance(p.weight_decay, str) and p.weight_decay == "auto"):
        _check_number("weight_decay", p.weight_decay, 0.0, 1e6, "'auto' or ")
    if p.max_norm is not None:
        _check_number("max_norm", p.max_norm, 1e-6, np.inf, "None or ")


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _check_integer(name: str, value: Any, least: int, otherwise: str = "") -> None:
    if not _is_integer(value) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}{otherwise}, got {value!r}")


def _check_number(name: str, value: Any, low: float, high: float, otherwise: str = "") -> None:
    if not _is_number(value) or not low <= value <= high:
        raise ValueError(f"{name} must be {otherwise}a number in [{low:g}, {high:g}], got {value!r}")


def _check_choice(
    name: str, value: Any, choices: tuple[Any, ...], *, auto: bool = False, function: bool = False
) -> None:
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in ((*(("auto",) if auto else ()), *choices)))
        also = " or a function" if function else ""
        raise ValueError(f"{name} must be one of {listed}{also}, got {value!r}")


def _values(
    name: str, given: Any, allowed: Callable[[float], bool], rule: str, *, empty: bool = False
) -> tuple[float, ...]:
    """One number or a sequence of numbers, each checked."""
    values = (given,) if _is_number(given) else given
    listed = not isinstance(values, str) and isinstance(values, Sequence | np.ndarray)
    if not listed or not (empty or len(values)) or not all(_is_number(v) and allowed(v) for v in values):
        raise ValueError(f"{name} must be a number or a sequence of numbers, each {rule}, got {given!r}")
    return tuple(float(v) for v in values)
