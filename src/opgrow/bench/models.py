"""The models of the experiments: our methods, by names that say everything about them.

A name is a method, or a method with parameters ("HeMLGOP n_draws=2"). "HeMLGOP.paper" has the settings of the
paper's experiments, and its grid; "HeMLGOP" has our defaults.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from ..common.assignments import parse_parameters
from ..estimators.by_method import estimators_of
from .published import METHODS as PUBLISHED_METHODS
from .published_settings import SETTINGS

__all__ = [
    "ABLATIONS",
    "OF_PAPER",
    "build",
    "check_model",
    "grid_of",
    "methods",
    "model_names",
    "split_name",
    "split_names",
]


#: What follows a method that has the settings of the paper's experiments.
OF_PAPER = ".paper"
#: Methods that train hundreds of candidates for each layer, for which no grid is tried.
_TOO_SLOW = ("POP",)


def methods() -> dict[str, type[Any]]:
    """The classifiers of all methods, by name."""
    return dict(estimators_of("classification"))


def grid_of(name: str, size: str) -> tuple[dict[str, Any], ...]:
    """What is tried of a model on a "small" or "large" problem, one set of parameters after the other.

    The paper's grids are for its own settings of its methods; our defaults, and methods that train hundreds
    of candidates for each layer, have nothing to choose.

    Examples
    --------
    >>> len(grid_of("PMLP.paper", "small")), grid_of("PMLP", "small")
    (16, ({},))
    """
    method, of_paper, _ = split_name(name)
    if not of_paper or (method, size) not in SETTINGS or method in _TOO_SLOW:
        return ({},)
    return SETTINGS[method, size].grid()


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
    paper = tuple(f"{method}{OF_PAPER}" for method in PUBLISHED_METHODS)
    return {
        "methods": tuple(methods()),
        "ablations": ABLATIONS,
        "paper": paper,
        "ours": PUBLISHED_METHODS,
    }


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


def split_name(name: str) -> tuple[str, bool, dict[str, Any]]:
    """The method that a name means, whether with the paper's settings, and the parameters that it gives.

    Examples
    --------
    >>> split_name("HeMLGOP.paper dropout=0.5")
    ('HeMLGOP', True, {'dropout': 0.5})
    """
    first, *assignments = name.split() or [""]
    return first.removesuffix(OF_PAPER), first.endswith(OF_PAPER), parse_parameters(assignments)


def build(name: str, size: str, seed: int, **changes: Any) -> Any:
    """The estimator of a name, for a "small" or a "large" problem; parameters in the name come first."""
    method, of_paper, parameters = split_name(name)
    cls = methods()[method]
    make = partial(cls.paper, size) if of_paper else cls
    return make(random_state=seed, **(changes | parameters))


def check_model(name: str) -> None:
    """Complain about a model that does not exist, or has no such parameter."""
    method, _, parameters = split_name(name)
    classes = methods()
    if method not in classes:
        raise ValueError(f"unknown model {method!r}; known are: {', '.join(classes)}")
    known = classes[method]._get_param_names() if parameters else []
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"{method} has no parameter {parameter!r}; it has: {', '.join(known)}")
