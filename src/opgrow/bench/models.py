"""The models of the experiments: our methods, by names that say everything about them.

A name is a method, or a method with parameters ("HeMLGOP n_draws=2"). The grids of methods are the paper's,
as far as it names them; of several values of ridge or dropout, a method chooses by itself.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

from ..common.assignments import parse_parameters
from ..estimators.by_method import estimators_of
from ..growth.methods import METHODS
from ..growth.methods.hemlgop import BlockGrowth

__all__ = [
    "ABLATIONS",
    "check_model",
    "grid_of",
    "methods",
    "model_names",
    "split_name",
    "split_names",
]


def methods() -> dict[str, type[Any]]:
    """The classifiers of all methods, by name."""
    return dict(estimators_of("classification"))


_POWERS = tuple(10.0**power for power in range(-3, 4))
#: Weight decay, or a bound on the norm of each neuron's weights.
_REGULARISATION: tuple[dict[str, Any], ...] = (
    {"weight_decay": 1e-4},
    *({"weight_decay": 0.0, "max_norm": most} for most in (1.0, 2.0, 3.0)),
)
#: One network with the paper's schedule.
_PAPERS: dict[str, Any] = {"preset": None, "epochs": (20, 40, 40), "patience": 10}
#: What is tried of methods that grow block by block.
_OF_BLOCKS = tuple(
    _PAPERS | {"ridge": (0.1, 1.0, 10.0), "dropout": (0.1, 0.3, 0.5)} | r for r in _REGULARISATION
)
#: What is tried of other methods; POP and its kin, which are not here, are too slow for that.
_GRIDS: dict[str, tuple[dict[str, Any], ...]] = {
    "PMLP": tuple(
        {"widths": (200,) * 4, "dropout": d} | r for d, r in product((0.1, 0.3, 0.5), _REGULARISATION)
    ),
    "PLN": tuple({"ridge": ridge, "alpha": alpha} for ridge, alpha in product(_POWERS, _POWERS)),
    "BLS": tuple({"ridge": ridge, "mu": mu} for ridge, mu in product(_POWERS, _POWERS)),
}


def grid_of(method: str) -> tuple[dict[str, Any], ...]:
    """What is tried of a method, one set of parameters after the other."""
    if method in METHODS and issubclass(METHODS[method].growth, BlockGrowth):
        return _OF_BLOCKS
    return _GRIDS.get(method, ({},))


_ALONE = "HeMLGOP preset=null"
#: What readers ask of each part of HeMLGOP: the same with one thing changed, and the methods without a part.
ABLATIONS = (
    _ALONE,
    *("HoMLGOP preset=null", "HeMLRN preset=null", "HoMLRN preset=null"),
    *(
        f"{_ALONE} {change}"
        for change in (
            *("share_draws=false", "n_draws=1", "focus=null", "search_neurons=null"),
            *("weight_range=1", "weight_range=6.28"),
            *("epochs=[0,0,0]", "fine_tune_epochs=0", "epochs=[0,0,0] fine_tune_epochs=0"),
            *("n_min=10 n_step=5", "n_min=20 n_step=10", "n_min=80 n_step=40"),
            *("search_score=accuracy", "max_layers=1"),
        )
    ),
)


def _groups() -> dict[str, tuple[str, ...]]:
    """Names that stand for several models."""
    return {"methods": tuple(methods()), "ablations": ABLATIONS}


def split_names(text: str) -> list[str]:
    """The names in a list separated by commas; commas in brackets belong to values.

    Examples
    --------
    >>> split_names("HeMLGOP, PMLP widths=[20,20]")
    ['HeMLGOP', 'PMLP widths=[20,20]']
    """
    return [name.strip() for name in re.split(r",(?![^\[]*\])", text)]


def model_names(text: str) -> list[str]:
    """The models of a list separated by commas, in which groups have names.

    Examples
    --------
    >>> model_names("HeMLGOP, PMLP widths=[20,20], HeMLGOP")
    ['HeMLGOP', 'PMLP widths=[20,20]']
    """
    groups = _groups()
    return list(dict.fromkeys(model for name in split_names(text) for model in groups.get(name, (name,))))


def split_name(name: str) -> tuple[str, dict[str, Any]]:
    """The method that a name means, and the parameters that it gives."""
    method, *assignments = name.split()
    return method, parse_parameters(assignments)


def check_model(name: str) -> None:
    """Complain about a model that does not exist, or has no such parameter."""
    method, parameters = split_name(name) if name.strip() else ("", {})
    classes = methods()
    if method not in classes:
        raise ValueError(f"unknown model {method!r}; known are: {', '.join(classes)}")
    known = classes[method]._get_param_names() if parameters else []
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"{method} has no parameter {parameter!r}; it has: {', '.join(known)}")
