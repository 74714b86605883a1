"""The settings that the HeMLGOP paper names for its methods, and what it leaves open."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from .published import METHODS, check_names
from .published_datasets import DATASETS

__all__ = ["SETTINGS", "UNSTATED", "PublishedSettings", "settings"]


@dataclass(frozen=True)
class PublishedSettings:
    """Settings that the paper names for a method, under the names of our parameters.

    Candidates are tuples (``ridge``, ``alpha``, ``mu``, ``weight_decay``, ``max_norm``, ``dropout``);
    ``learning_rates`` and ``epochs`` are one schedule, ``widths`` one template. Weight decay and max-norm are
    alternatives. None means that the method does not have it or that the paper does not say.
    """

    method: str
    size: str
    ridge: tuple[float, ...] | None = None
    alpha: tuple[float, ...] | None = None
    mu: tuple[float, ...] | None = None
    admm_iterations: int | None = None
    operator_sets: int | None = None
    n_min: int | None = None
    n_step: int | None = None
    max_neurons: int | None = None
    widths: tuple[int, ...] | None = None
    max_layers: int | None = None
    criterion: str = "accuracy"
    block_threshold: float | None = None
    layer_threshold: float | None = None
    weight_decay: tuple[float, ...] | None = None
    max_norm: tuple[float, ...] | None = None
    dropout: tuple[float, ...] | None = None
    input_dropout: float | None = None
    learning_rates: tuple[float, ...] | None = None
    epochs: tuple[int, ...] | None = None
    fine_tune_learning_rate: float | None = None
    fine_tune_epochs: int | None = None
    note: str = ""

    def grid(self) -> tuple[dict[str, Any], ...]:
        """The combinations of its candidates, as parameters of our estimators, dropout left out as well.

        Of several ridges the operator search chooses by itself, block by block.
        """
        axes: list[tuple[dict[str, Any], ...]] = [({"ridge": self.ridge},)] if self.operator_sets else []
        for name in ("alpha", "mu") if self.operator_sets else ("ridge", "alpha", "mu"):
            values = getattr(self, name)
            axes += [tuple({name: value} for value in values)] if values else []
        if self.dropout and self.max_norm and self.weight_decay:
            decays = ({"weight_decay": value, "max_norm": None} for value in self.weight_decay)
            norms = ({"weight_decay": 0.0, "max_norm": value} for value in self.max_norm)
            axes += [(*decays, *norms), tuple({"dropout": value} for value in (*self.dropout, 0.0))]
        return tuple(dict(ChainMap(*reversed(chosen))) for chosen in product(*axes))


#: What the text leaves open.
UNSTATED = (
    "how the hyper-parameters were selected, above all on the small data sets, which have no validation part",
    "which of the candidates were selected for a figure",
    "which rows were for training and testing, whether classes were stratified, whether runs shared a split",
    "how inputs were scaled",
    "range of the uniform random weights",
    "optimiser and batch size",
    "loss of the tuning; the appendix assumes the squared error",
    "bound on the depth of HeMLGOP, HoMLGOP, HeMLRN, HoMLRN and PLN",
    "activation of PMLP",
    "target of POP and PMLP, where the relative criterion is not meant to replace it",
    "random neurons that a layer of PLN starts with, and nodes of each kind in a step of BLS",
    "whether PLN and BLS were fine-tuned too",
    "how parameters and FLOPs were counted",
    "machine and number of threads behind the training times",
    "spread over the three runs",
)


_DECADES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
_IN_STEPS = {"n_min": 40, "n_step": 20, "block_threshold": 1e-4}
_IN_LAYERS = {"layer_threshold": 1e-4}
_SEARCHED = {"operator_sets": 6 * 4 * 6}
_GROWN = {**_IN_STEPS, **_IN_LAYERS, **_SEARCHED, "ridge": (0.1, 1.0, 10.0), "max_neurons": 200}
_RANDOM = {**_IN_STEPS, "ridge": _DECADES, "mu": _DECADES, "admm_iterations": 500, "max_neurons": 300}
_REGULARISED = {"weight_decay": (1e-4,), "max_norm": (1.0, 2.0, 3.0), "dropout": (0.5, 0.3, 0.1)}
_FINE_TUNED = {**_REGULARISED, "fine_tune_learning_rate": 5e-5, "fine_tune_epochs": 200}

# What depends on the size of the data set: the inputs of the large ones are deep features.
_INPUTS: dict[str, dict[str, Any]] = {"small": {}, "large": {"input_dropout": 0.2}}
_TEMPLATE: dict[str, dict[str, Any]] = {
    "small": {"widths": (200,) * 4, "max_layers": 4},
    "large": {"widths": (200,) * 8, "max_layers": 8},
}
_SCHEDULE: dict[str, dict[str, Any]] = {
    "small": {"learning_rates": (0.01, 0.001, 0.0001), "epochs": (20, 40, 40)},
    "large": {
        "learning_rates": (0.01, 0.005, 0.001, 0.0005, 0.0001, 0.00001),
        "epochs": (100, 100, 100, 100, 100),
        "note": "Six learning rates are printed for five numbers of epochs.",
    },
}


def _settings(size: str) -> Iterator[PublishedSettings]:
    """What the text says about groups of methods, put together for each of them."""
    tuned = {**_FINE_TUNED, **_INPUTS[size]}
    trained = {**tuned, **_SCHEDULE[size]}
    stated: dict[str, dict[str, Any]] = {
        "HeMLGOP": {**_GROWN, **trained},
        "HoMLGOP": {**_GROWN, **trained},
        "HeMLRN": {**_GROWN, **tuned},
        "HoMLRN": {**_GROWN, **tuned},
        "POP": {**_TEMPLATE[size], **_IN_LAYERS, **_SEARCHED, **trained},
        "PMLP": {**_TEMPLATE[size], **_IN_LAYERS, **trained},
        "PLN": {**_RANDOM, **_IN_LAYERS, "alpha": _DECADES},
        "BLS": {**_RANDOM, "max_layers": 2},
    }
    for method in METHODS:
        yield PublishedSettings(method, size, **stated[method])


#: By method and size of the data set. For POP on large ones the paper has a template, but no run.
SETTINGS = {(one.method, size): one for size in ("small", "large") for one in _settings(size)}


def settings(dataset: str, method: str) -> PublishedSettings:
    """The settings that the paper names for a method on data sets of this size.

    Examples
    --------
    >>> settings("pima", "HeMLGOP").epochs, settings("pima", "PMLP").widths
    ((20, 40, 40), (200, 200, 200, 200))
    """
    check_names(dataset, method)
    return SETTINGS[method, DATASETS[dataset].size]
