"""Operator sets, which are what a Generalized Operational Perceptron can compute, and libraries of them.

A neuron combines input and weight with a *nodal* operator, reduces the results with a *pool* operator
and applies an *activation*.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .kinds import Activation, Nodal, Pool
from .registry import lookup

__all__ = ["PERCEPTRON", "OperatorSet", "library", "operator_sets"]

_PAPER = {
    "nodal": ("multiplication", "exponential", "harmonic", "quadratic", "gaussian", "dog"),
    "pool": ("sum", "correlation1", "correlation2", "maximum"),
    "activation": ("sigmoid", "tanh", "relu", "softplus", "inverse_absolute", "elu"),
}
# The operators of PyGOP 0.2.3 where they differ: (w y)^2 as quadratic, inputs and arguments clipped.
_PYGOP = {
    "nodal": ("multiplication", "exponential", "harmonic", "pygop_quadratic", "gaussian", "pygop_dog"),
    "pool": _PAPER["pool"],
    "activation": ("sigmoid", "relu", "tanh", "pygop_softplus", "inverse_absolute", "elu"),
}


@dataclass(frozen=True, order=True)
class OperatorSet:
    """What one block of neurons computes: a nodal, a pool and an activation operator, by name.

    Examples
    --------
    >>> from opgrow import OperatorSet
    >>> print(OperatorSet("gaussian", "sum", "tanh"))
    gaussian/sum/tanh
    """

    nodal: str
    pool: str
    activation: str

    def __post_init__(self) -> None:
        for kind in ("nodal", "pool", "activation"):
            lookup(kind, getattr(self, kind))

    def __str__(self) -> str:
        return f"{self.nodal}/{self.pool}/{self.activation}"

    @property
    def nodal_operator(self) -> Nodal:
        return lookup("nodal", self.nodal)  # type: ignore[return-value]

    @property
    def pool_operator(self) -> Pool:
        return lookup("pool", self.pool)  # type: ignore[return-value]

    @property
    def activation_operator(self) -> Activation:
        return lookup("activation", self.activation)  # type: ignore[return-value]

    @property
    def operators(self) -> tuple[Nodal, Pool, Activation]:
        return self.nodal_operator, self.pool_operator, self.activation_operator

    @property
    def codes(self) -> tuple[int, int, int] | None:
        """Codes of the compiled kernels, or None if one operator has only its torch function."""
        codes = tuple(operator.code for operator in self.operators)
        return None if None in codes else codes  # type: ignore[return-value]

    def flops(self, n_inputs: int) -> int:
        """Operations of one neuron with bias, before its batch norm."""
        nodal, pool, activation = self.operators
        return n_inputs * nodal.flops + pool.flops(n_inputs) + 1 + activation.flops


#: The classical neuron.
PERCEPTRON = OperatorSet("multiplication", "sum", "sigmoid")


def operator_sets(
    nodal: Iterable[str] = _PAPER["nodal"],
    pool: Iterable[str] = _PAPER["pool"],
    activation: Iterable[str] = _PAPER["activation"],
) -> list[OperatorSet]:
    """All combinations of the named operators; by default the 144 of the paper.

    Examples
    --------
    >>> from opgrow import operator_sets
    >>> len(operator_sets()), len(operator_sets(nodal=["multiplication"], pool=["sum"]))
    (144, 6)
    """
    for kind, names in (("nodal", nodal), ("pool", pool), ("activation", activation)):
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ValueError(f"{kind} must be a list of names, got {names!r}")
    return [OperatorSet(*names) for names in itertools.product(nodal, pool, activation)]


def library(operators: str | Sequence[OperatorSet | Sequence[str]] = "default") -> list[OperatorSet]:
    """The list of operator sets that an estimator's ``operators`` parameter stands for.

    Parameters
    ----------
    operators : {"default", "paper", "pygop"} or sequence
        "paper" is the 144 sets of the paper's Table 1, which is also the default; "pygop" is PyGOP's
        version of it; a sequence holds operator sets or triples of names.
    """
    if isinstance(operators, str):
        if operators in ("default", "paper"):
            return operator_sets()
        if operators == "pygop":
            return operator_sets(**_PYGOP)
        raise ValueError(
            f"operators must be 'default', 'paper', 'pygop' or a list of operator sets, got {operators!r}"
        )
    if not isinstance(operators, Iterable):
        raise ValueError(f"operators must be a name or a list of operator sets, got {operators!r}")
    sets: list[OperatorSet] = []
    for item in operators:
        if not isinstance(item, OperatorSet):
            if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 3:
                raise ValueError(
                    f"operators holds OperatorSets or (nodal, pool, activation) triples, got {item!r}"
                )
            item = OperatorSet(*item)
        if item not in sets:
            sets.append(item)
    if not sets:
        raise ValueError("operators is empty; at least one operator set is needed")
    return sets
