"""All operators, by kind and name: the built-in ones, and those that users have registered."""

from __future__ import annotations

from . import activation, nodal, pool, pygop
from .kinds import Operator

__all__ = ["add", "built_in", "lookup", "registered", "unregister"]


def _by_name(*operators: Operator) -> dict[str, Operator]:
    return {
        operator.name: operator for operator in sorted(operators, key=lambda operator: operator.code or 0)
    }


_REGISTRY: dict[str, dict[str, Operator]] = {
    "nodal": _by_name(*nodal.NODALS, *pygop.NODALS),
    "pool": _by_name(*pool.POOLS),
    "activation": _by_name(*activation.ACTIVATIONS, *pygop.ACTIVATIONS),
}


def _of_kind(kind: str) -> dict[str, Operator]:
    if kind not in _REGISTRY:
        raise ValueError(f"kind must be 'nodal', 'pool' or 'activation', got {kind!r}")
    return _REGISTRY[kind]


def lookup(kind: str, name: str) -> Operator:
    """The operator of a kind that goes by a name."""
    operators = _of_kind(kind)
    try:
        return operators[name]
    except (KeyError, TypeError):
        names = ", ".join(operators)
        raise ValueError(
            f"unknown {kind} operator {name!r}; registered are: {names} (add your own with "
            f"opgrow.register_{kind})"
        ) from None


def registered(kind: str) -> tuple[str, ...]:
    """Names of all registered operators of a kind: "nodal", "pool" or "activation"."""
    return tuple(_of_kind(kind))


def built_in(kind: str) -> tuple[str, ...]:
    """Names of the operators of a kind that the compiled kernels have, in the order of their codes."""
    return tuple(name for name, operator in _of_kind(kind).items() if operator.code is not None)


def add(operator: Operator) -> None:
    """Let an operator be found by its name."""
    _REGISTRY[operator.kind][operator.name] = operator


def unregister(kind: str, name: str) -> None:
    """Remove an operator that was registered by a user; built-in operators stay."""
    if lookup(kind, name).code is not None:
        raise ValueError(f"{name!r} is a built-in {kind} operator and cannot be removed")
    del _REGISTRY[kind][name]
