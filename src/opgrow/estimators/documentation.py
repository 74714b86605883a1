"""The docstrings of the estimators, put together from their signatures.

A parameter keeps one name and one meaning across methods, so its text is written once, here. Defaults are
read from the signature; a family adds the texts of its own parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

__all__ = ["PARAMETERS", "documentation", "documented"]

Estimator = TypeVar("Estimator", bound=type)

#: Names, as they stand in a signature, to their type and description. Defaults come from the signature.
PARAMETERS = {
    "n_min, n_step": """int
        Neurons of a layer's first block and of every further block.""",
    "max_neurons, max_layers": """int
        Bounds on the width of a layer and on the depth.""",
    "preset": """{"balanced", "compact", "accurate"} or None
        Values of the parameters that are "auto". "balanced" averages 5 networks that grow by small blocks for
        as long as that helps. "compact" lets the smallest network that is about as good learn from
        such an average: it has at most 500 parameters where there are up to 20 inputs and 10 classes.
        "accurate" averages 15 networks, which are larger. None grows a single network. Two of three networks
        of an average have layers of one block, whose size held-out rows decide.""",
    "n_estimators": """int or "auto"
        Networks that are grown, each with other validation rows, and averaged. The average is one network
        with their blocks side by side.""",
    "distill": """"auto", int or None
        Neurons of one more network, which learns from what the others say of the training rows and takes
        their place: it is nearly as good as an average, and much smaller. None: there is none. With "auto",
        ``preset="compact"`` tries several numbers.""",
    "block_threshold, layer_threshold": """float
        Least relative improvement of the score by which a new block or layer is kept.""",
    "ridge": """"auto", float or sequence of float
        Regularisation of the closed-form head in the search; from several values the search's score
        chooses. "auto" is (0.1, 1, 10).""",
    "operators": """{"default", "paper", "pygop"} or list
        The operator sets to search; see `opgrow.operators.library`.""",
    "weight_range": """"auto", float or sequence of float
        Random weights are uniform in [-range, range]; every range given is tried. "auto" is
        1.5 / sqrt(inputs).""",
    "n_draws": """int
        Random draws tried for each operator set and range.""",
    "focus": """int or None
        Inputs on which each neuron concentrates in every second draw, where weights of the others are small;
        None: all draws are alike.""",
    "search_neurons": """int or None
        Neurons by which all operator sets are compared for a larger block; the best eight are then searched
        with all of its neurons. None: all sets are.""",
    "share_draws": """bool
        Whether operator sets with the same nodal operator are compared on the same random weights.""",
    "search_score": """{"loo", "gcv", "loss", "accuracy"}
        What ranks the candidates: leave-one-out or generalised cross-validated squared error, squared
        training error, or accuracy (on validation data if there is some).""",
    "tune_perceptron": """"auto" or bool
        Whether the best candidate that multiplies and sums is tuned too, beside the search's winner, which
        is then kept only if its score is better by 1 %. "auto" does so in layers of more than 16 inputs.""",
    "growth_rows": """int or None
        Rows from which blocks are searched and tuned, drawn where there are more of them and others
        validate; the head and the final tuning learn from all. None: blocks do, too.""",
    "fine_tune_ridge": """float or None
        Before the final tuning the head is solved anew by least squares on all rows, with so many times the
        number of rows as its ridge. None: the tuning begins with the head of the last block.""",
    "criterion": """{"auto", "accuracy", "brier", "loss"}
        What decides growth; "loss" is that of the tuning, or the squared error where nothing is tuned.
        "auto" is "brier" for classification and "loss" for regression.""",
    "target": """float or None
        Value of the criterion with which the growth ends.""",
    "loss": """{"auto", "cross_entropy", "mse"} or callable
        The loss that tuning minimises. "auto" is "cross_entropy" for classification and "mse" for
        regression. A callable takes outputs and targets, both (n, outputs), and returns one loss per row.""",
    "learning_rates, epochs": """sequences of float and int
        Schedule of the tuning of a block. Learning rates that are "auto" begin at 0.01 and fall to a tenth
        each time; for squared error they begin at 0.003 and fall to a sixth.""",
    "patience": """int or None
        Epochs without a better score after which a learning rate gives way to the next one; None never
        cuts the schedule short.""",
    "keep_state": """{"best", "last"}
        The state that a tuning ends with: that of the best score, its start included, or that of the last
        epoch. "last" makes nothing of a lucky epoch on few held-out rows, and can make a network worse.""",
    "batch_size": """"auto" or int
        "auto" is the power of 2 below a 64th of the training rows, from 32 to 512; in
        `opgrow.distributed.fit` from 256 to 4,096.""",
    "dropout": """float or sequence of float
        Dropout on hidden features; from several values the first block chooses.""",
    "input_dropout": "float",
    "weight_decay": """"auto" or float
        "auto" is 0.4 / number of training rows.""",
    "max_norm": """float or None
        Bound on the norm of each neuron's weights.""",
    "optimizer": """"adam" or callable
        A callable takes parameter groups and returns a torch optimiser.""",
    "fine_tune_epochs, fine_tune_learning_rate": """int and float
        Final tuning of the whole network, kept only if the score improves; 0 epochs turn it off.""",
    "fine_tune_schedule": """{"constant", "cosine"}
        Whether the learning rate of the final tuning is constant, until ``patience`` epochs have passed
        without a better score, or falls to 0 along a cosine.""",
    "fine_tune_dropout": """float or None
        Dropout in the final tuning; None: the same as in the tuning of blocks.""",
    "validation_fraction": """float
        Part of the training data that only scores; 0 scores on the training data, and so does a part
        of fewer than 8 rows.""",
    "standardize": """bool
        Whether inputs are standardised inside the network.""",
    "table": """TableEncoder or None
        What becomes of columns that are no numbers, or have gaps: an unfitted `opgrow.data.TableEncoder` with
        other parameters than its defaults. Parameters such as ``table__max_categories`` are its own.""",
    "class_weight": 'dict, "balanced" or None',
    "forgetting": """float
        Of the rows that ``partial_fit`` has seen, each counts so many times as much with each row after it: 1
        forgets nothing; with 0.999, the last 1,000 rows have about 63 % of the weight.""",
    "buffer_rows": """int
        Rows that are kept once ``partial_fit`` was called, for ``grow``: half of them are the last ones, the
        others a sample of all with as many of each class.""",
    "drift": """{"page_hinkley"}, detector or None
        What watches the errors of ``partial_fit``, each row predicted before it is learned. After a drift,
        older rows count less; then, and where errors have stalled, the network drops what no longer
        contributes and tries to grow. A detector is a `PageHinkley` or an object with ``update(x)`` and
        ``drift_detected``, such as those of river; model files have `PageHinkley` alone. None: the head alone
        changes.""",
    "warm_start": """bool
        True: `fit` goes on from what there is. A first call is like that of ``partial_fit``, any further one
        like ``grow``.""",
    "device": """{"auto", "cpu", "cuda", "cuda:N"}
        Where the network grows. "auto" takes a GPU if there is one and X has a million values or more.""",
    "n_jobs": """int or None
        Threads; None uses all cores, or as many as torch where it is imported; -1 all cores.""",
    "checkpoint_dir, checkpoint_seconds": """path and float, or None
        Folder in which the growth is saved after every step, and within long searches and tunings whenever
        so many seconds have passed. A later `fit` with the same data and parameters goes on from there, and
        grows the same network, bit for bit; another fit is refused. None: nothing is saved.""",
    "memory_limit": """int, str or None
        Bytes that rows may take, as a number or as text such as "2GB". Arrays that would take more are read
        in chunks. None: arrays are taken into memory, but for memory maps of more than a quarter of the
        machine's, and a source may take a quarter of that.""",
    "max_parameters, max_seconds": """int and float, or None
        Budgets of the whole fit: parameters that the network may have, and time after which growth ends with
        what it has. See ``MaxParameters`` and ``MaxSeconds`` in `opgrow.callbacks`.""",
    "callbacks": "list of Callback, optional",
    "verbose": """int
        1 shows progress on standard error: a line for each step, and a live line on terminals.""",
    "random_state": "int, RandomState or None",
}

_REST = """
    Attributes
    ----------
    network_ : Network
    table_ : TableEncoder or None, what became of the columns, if X was not a matrix of finite numbers
    history_ : list of GrowthStep, everything that was tried

    Examples
    --------
    >>> from sklearn.datasets import load_{data}
    >>> from opgrow import {name}
    >>> X, y = load_{data}(return_X_y=True)
    >>> {model} = {name}({arguments}, random_state=0).fit(X, y)
    >>> bool({model}.score(X, y) > {score})
    True
    """


def documentation(
    summary: str,
    class_name: str,
    init: Callable[..., Any],
    arguments: str,
    own: Mapping[str, str] | None = None,
) -> str:
    """The docstring of an estimator.

    Parameters
    ----------
    summary : first line
    class_name : of a "...Classifier" or "...Regressor"
    init : the class or its ``__init__``, whose signature has the parameters and their defaults
    arguments : what the example sets so that it is quick, as text
    own : texts of a family's own parameters, or other texts than those in `PARAMETERS`
    """
    signature = [p for p in inspect.signature(init).parameters.values() if p.name != "self"]
    classifies = class_name.endswith("Classifier")
    rest = _REST.format(
        name=class_name,
        arguments=arguments,
        data="iris" if classifies else "diabetes",
        model="clf" if classifies else "model",
        score=0.9 if classifies else 0.3,
    )
    listed = _entries(signature, PARAMETERS | dict(own or {}))
    return f"{summary}\n\n    Parameters\n    ----------\n{listed}{rest}"


def documented(
    summary: str, arguments: str, own: Mapping[str, str] | None = None
) -> Callable[[Estimator], Estimator]:
    """Give an estimator the docstring that `documentation` makes."""

    def decorate(estimator: Estimator) -> Estimator:
        estimator.__doc__ = documentation(summary, estimator.__name__, estimator, arguments, own)
        return estimator

    return decorate


def _entries(signature: Sequence[inspect.Parameter], texts: Mapping[str, str]) -> str:
    """Every parameter in the order of the signature; neighbours that have a text in common are one entry."""
    entries, start = "", 0
    while start < len(signature):
        ends = range(len(signature), start, -1)
        names = [", ".join(p.name for p in signature[start:end]) for end in ends]
        described = [(name, end) for name, end in zip(names, ends, strict=True) if name in texts]
        if not described:
            raise KeyError(f"the parameter {signature[start].name!r} has no text")
        name, end = described[0]  # the text that describes the most parameters
        kind, _, description = texts[name].partition("\n")
        shown = dict.fromkeys(_shown(p.default) for p in signature[start:end])
        default = "" if kind.endswith("optional") else f", default={', '.join(shown)}"
        entries += f"    {name} : {kind}{default}\n" + (f"{description}\n" if description else "")
        start = end
    return entries


def _shown(default: Any) -> str:
    """A default as it is written by hand: "auto", 1e-4, 0."""
    if isinstance(default, str):
        return f'"{default}"'
    if not isinstance(default, float):
        return repr(default)
    if 0 < abs(default) < 1e-3:
        return np.format_float_scientific(default, trim="-", exp_digits=1)
    return f"{default:g}"
