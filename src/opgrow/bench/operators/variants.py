"""The variants of HeMLGOP that are compared, and the questions that pairs of them answer.

A variant has a name like a model of `opgrow.bench.models`, and may say after it which operators are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...estimators.by_method import estimators_of
from ...operators import OperatorSet, operator_sets
from ..models import ABLATIONS, check_model, split_name, split_names

__all__ = [
    "EQUAL",
    "FULL",
    "PERCEPTRONS",
    "QUESTIONS",
    "VARIANTS",
    "Question",
    "build",
    "chosen",
    "questions_of",
]

#: One network with everything else at its default: what the others are compared with.
FULL = "HeMLGOP preset=null"
_NODALS = tuple(dict.fromkeys(one.nodal for one in operator_sets()))
_POOLS = tuple(dict.fromkeys(one.pool for one in operator_sets()))

#: The operator sets of variants that have fewer than all, by what their names end with.
_OPERATORS: dict[str, list[OperatorSet]] = {
    "perceptrons only": operator_sets(nodal=["multiplication"], pool=["sum"]),
    **{f"without {name}": operator_sets(nodal=[one for one in _NODALS if one != name]) for name in _NODALS},
    **{f"without {name}": operator_sets(pool=[one for one in _POOLS if one != name]) for name in _POOLS},
}
PERCEPTRONS = f"{FULL} perceptrons only"
_EQUAL = " at equal size"
#: Both with at most as many parameters as the smaller of `FULL` and `PERCEPTRONS` has on the same split.
EQUAL = (f"{FULL}{_EQUAL}", f"{PERCEPTRONS}{_EQUAL}")


@dataclass(frozen=True)
class Question:
    """What is asked, and the two variants whose difference answers it."""

    text: str
    first: str
    second: str


def _blocks(n_min: int, n_step: int, method: str = "HeMLGOP") -> str:
    return f"{method} preset=null n_min={n_min} n_step={n_step}"


QUESTIONS = (
    Question("all operators, against multiplication and sum alone", FULL, PERCEPTRONS),
    Question(
        "the same, without the preference for perceptrons", f"{FULL} tune_perceptron=false", PERCEPTRONS
    ),
    Question("the same, both with at most the parameters of the smaller one", *EQUAL),
    *(
        Question(f"with the nodal operator {name}, against without", FULL, f"{FULL} without {name}")
        for name in _NODALS
    ),
    *(Question(f"with the pool {name}, against without", FULL, f"{FULL} without {name}") for name in _POOLS),
    Question("heterogeneous layers, against homogeneous", FULL, "HoMLGOP preset=null"),
    Question("the same, in blocks of 2 and 1", _blocks(2, 1), _blocks(2, 1, "HoMLGOP")),
    Question("tuned blocks, against random until the end", FULL, "HeMLRN preset=null"),
    Question("blocks of 40 and 20, against 2 and 1", _blocks(40, 20), _blocks(2, 1)),
)
#: All variants that a question is about, `FULL` first.
VARIANTS = tuple(dict.fromkeys(name for one in QUESTIONS for name in (one.first, one.second)))


def chosen(text: str) -> list[str]:
    """The variants of a list separated by commas, in which "operators" and "ablations" are groups."""
    groups: dict[str, Sequence[str]] = {"operators": VARIANTS, "ablations": ABLATIONS}
    names = [name for given in split_names(text) for name in groups.get(given, (given,))]
    for name in names:
        check_model(_parts(name)[0])
    needed = [FULL, PERCEPTRONS] if set(names) & set(EQUAL) else [FULL]
    return list(dict.fromkeys([*needed, *names]))


def questions_of(names: Sequence[str]) -> list[Question]:
    """The questions that variants can answer; of a variant in none of them, what it changes."""
    asked = [one for one in QUESTIONS if {one.first, one.second} <= set(names)]
    others = [name for name in names if name not in VARIANTS]
    return [*asked, *(Question(f"the default, against {_changed(name)}", FULL, name) for name in others)]


def build(name: str, task: str, seed: int, max_parameters: int | None = None) -> Any:
    """The unfitted variant of a name, on one thread of the CPU."""
    model, operators = _parts(name)
    method, _, parameters = split_name(model)
    settings: dict[str, Any] = {
        "random_state": seed,
        "n_jobs": 1,
        "device": "cpu",
        "max_parameters": max_parameters,
    }
    if operators:
        settings["operators"] = _OPERATORS[operators]
    return estimators_of(task)[method](**(settings | parameters))


def _parts(name: str) -> tuple[str, str]:
    """The model that a name begins with, and the operators that it ends with, if it does."""
    name = name.removesuffix(_EQUAL)
    for ending in _OPERATORS:
        if name.endswith(f" {ending}"):
            return name.removesuffix(f" {ending}"), ending
    return name, ""


def _changed(name: str) -> str:
    return name.removeprefix(f"{FULL} ").replace(" preset=null", "")
