"""The operator library: what a Generalized Operational Perceptron can compute.

A neuron combines input and weight with a *nodal* operator, reduces the results with a *pool* operator
and applies an *activation*. An operator has the facts that the rest of the package needs: its cost, and the
integer code under which the compiled kernels know it (``None`` for operators registered by users, which run
by their torch function). The formulas of the built-in ones are in `formulas`, and for torch in
`formulas_torch`, which is imported when the first of them is used.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ..common.extras import require_torch
from . import formulas

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "PERCEPTRON",
    "Activation",
    "Nodal",
    "OperatorSet",
    "Pool",
    "library",
    "operator_sets",
    "register_activation",
    "register_nodal",
    "register_pool",
    "registered",
    "unregister",
]


@dataclass(frozen=True)
class _Operator:
    """What the three kinds share; ``registered`` is the torch function of an operator of a user."""

    kind: ClassVar[str]
    _formulas: ClassVar[Any]
    name: str
    flops: Any = 1
    code: int | None = None
    registered: Callable[..., Any] | None = field(default=None, repr=False)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The operator as a differentiable torch function."""
        if self.registered is not None:
            return self.registered
        require_torch(f"The torch function of the {self.kind} operator {self.name!r}")
        from .formulas_torch import FUNCTIONS

        return FUNCTIONS[self.kind][self.name]

    @property
    def formula(self) -> Callable[..., Any]:
        """The operator as a numpy function; only built-in operators have one."""
        return self._formulas[self.name]


@dataclass(frozen=True)
class Nodal(_Operator):
    """psi(y, w): how one weight meets one input. ``flops`` counts one evaluation."""

    kind = "nodal"
    _formulas = formulas.NODALS


@dataclass(frozen=True)
class Pool(_Operator):
    """rho over the inputs: maps (N, D, d) to (N, d). ``flops(D)`` counts one neuron."""

    kind = "pool"
    _formulas = formulas.POOLS


@dataclass(frozen=True)
class Activation(_Operator):
    """f(x): elementwise. ``flops`` counts one evaluation."""

    kind = "activation"
    _formulas = formulas.ACTIVATIONS


Operator = Nodal | Pool | Activation

# Costs follow the convention of the paper's Table of FLOPs: every elementary operation of the printed
# formula counts once, guards do not count, and an activation of a perceptron counts 1.
_NODALS = (
    Nodal("multiplication", 1, 0),
    Nodal("exponential", 3, 1),
    Nodal("harmonic", 2, 2),
    Nodal("quadratic", 2, 3),
    Nodal("gaussian", 5, 4),
    Nodal("dog", 6, 5),
    Nodal("pygop_quadratic", 2, 6),
    Nodal("pygop_dog", 6, 7),
)
_POOLS = (
    Pool("sum", lambda n: n, 0),
    Pool("correlation1", lambda n: 2 * max(n - 1, 0), 1),
    Pool("correlation2", lambda n: 3 * max(n - 2, 0), 2),
    Pool("maximum", lambda n: n - 1, 3),
)
_ACTIVATIONS = (
    Activation("sigmoid", 1, 0),
    Activation("tanh", 1, 1),
    Activation("relu", 1, 2),
    Activation("softplus", 4, 3),
    Activation("inverse_absolute", 3, 4),
    Activation("elu", 3, 5),
    Activation("pygop_softplus", 4, 6),
    # Linear neurons: the memory of POPmem and the feature nodes of BLS. No library searches it.
    Activation("identity", 0, 7),
)

_REGISTRY: dict[str, dict[str, Operator]] = {
    "nodal": {op.name: op for op in _NODALS},
    "pool": {op.name: op for op in _POOLS},
    "activation": {op.name: op for op in _ACTIVATIONS},
}
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


def _lookup(kind: str, name: str) -> Operator:
    operators = _REGISTRY.get(kind)
    if operators is None:
        raise ValueError(f"kind must be 'nodal', 'pool' or 'activation', got {kind!r}")
    try:
        return operators[name]
    except (KeyError, TypeError):
        known = ", ".join(operators)
        raise ValueError(
            f"unknown {kind} operator {name!r}; registered are: {known} (add your own with "
            f"opgrow.register_{kind})"
        ) from None


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
        for kind in _REGISTRY:
            _lookup(kind, getattr(self, kind))

    def __str__(self) -> str:
        return f"{self.nodal}/{self.pool}/{self.activation}"

    @property
    def nodal_operator(self) -> Nodal:
        return _lookup("nodal", self.nodal)  # type: ignore[return-value]

    @property
    def pool_operator(self) -> Pool:
        return _lookup("pool", self.pool)  # type: ignore[return-value]

    @property
    def activation_operator(self) -> Activation:
        return _lookup("activation", self.activation)  # type: ignore[return-value]

    @property
    def codes(self) -> tuple[int, int, int] | None:
        """Codes of the compiled kernels, or None if one operator has only its torch function."""
        codes = (self.nodal_operator.code, self.pool_operator.code, self.activation_operator.code)
        return None if None in codes else codes  # type: ignore[return-value]

    def flops(self, n_inputs: int) -> int:
        """Operations of one neuron with bias, before its batch norm."""
        nodal, pool, activation = self.nodal_operator, self.pool_operator, self.activation_operator
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


def registered(kind: str) -> tuple[str, ...]:
    """Names of all registered operators of a kind: "nodal", "pool" or "activation"."""
    if kind not in _REGISTRY:
        raise ValueError(f"kind must be 'nodal', 'pool' or 'activation', got {kind!r}")
    return tuple(_REGISTRY[kind])


def register_nodal(name: str, function: Callable[[Tensor, Tensor], Tensor], *, flops: int = 1) -> Nodal:
    """Add a nodal operator psi(y, w) under a name.

    Parameters
    ----------
    name : str
        A new name, used in operator sets and in saved models.
    function : callable
        Elementwise torch function of inputs ``y`` (N, D, 1) and weights ``w`` (1, D, d), which broadcast
        to (N, D, d). It is tried on random values at once: wrong shapes, non-finite values or missing
        gradients are refused here and not in the middle of a long run.
    flops : int, default=1
        Elementary operations of one evaluation, for the size reports.

    Examples
    --------
    >>> import torch
    >>> from opgrow.operators import register_nodal, unregister
    >>> register_nodal("cosine", lambda y, w: torch.cos(w * y), flops=2).name
    'cosine'
    >>> unregister("nodal", "cosine")
    """
    torch = require_torch("Registering an operator")

    def trial(y: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        weight = torch.linspace(-1.5, 1.5, y.shape[1] * 4, dtype=y.dtype).reshape(1, y.shape[1], 4)
        return function(y[:, :, None], weight), (*y.shape, 4)

    return _register(Nodal(name, flops, registered=function), trial)  # type: ignore[return-value]


def register_pool(
    name: str, function: Callable[[Tensor], Tensor], *, flops: Callable[[int], int] | None = None
) -> Pool:
    """Add a pool operator that maps z of shape (N, D, d) to (N, d), for every D >= 1.

    See `opgrow.register_nodal` for the checks; ``flops`` takes D and returns the operations of one neuron.

    Examples
    --------
    >>> from opgrow.operators import register_pool, unregister
    >>> register_pool("mean", lambda z: z.mean(dim=1)).name
    'mean'
    >>> unregister("pool", "mean")
    """
    torch = require_torch("Registering an operator")

    def trial(y: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        factors = torch.tensor([1.0, -0.5, 2.0], dtype=y.dtype)
        return function(y[:, :, None] * factors), (y.shape[0], 3)

    return _register(Pool(name, flops or (lambda n: n), registered=function), trial)  # type: ignore[return-value]


def register_activation(name: str, function: Callable[[Tensor], Tensor], *, flops: int = 1) -> Activation:
    """Add an elementwise activation f(x). See `opgrow.register_nodal` for the checks.

    Examples
    --------
    >>> import torch
    >>> from opgrow.operators import register_activation, unregister
    >>> register_activation("swish", torch.nn.functional.silu, flops=2).name
    'swish'
    >>> unregister("activation", "swish")
    """

    def trial(y: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        return function(4 * y), tuple(y.shape)

    return _register(Activation(name, flops, registered=function), trial)  # type: ignore[return-value]


def unregister(kind: str, name: str) -> None:
    """Remove an operator that was registered by a user; built-in operators stay."""
    if _lookup(kind, name).code is not None:
        raise ValueError(f"{name!r} is a built-in {kind} operator and cannot be removed")
    del _REGISTRY[kind][name]


def _register(operator: Operator, trial: Callable[[Tensor], tuple[Tensor, tuple[int, ...]]]) -> Operator:
    kind, name = operator.kind, operator.name
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}", name):
        raise ValueError(f"an operator's name is letters, digits and underscores, got {name!r}")
    if name in _REGISTRY[kind]:
        raise ValueError(f"{kind} operator {name!r} is already registered")
    if not callable(operator.flops) and (not isinstance(operator.flops, int) or operator.flops < 0):
        raise ValueError(f"flops of {kind} operator {name!r} must be a number, got {operator.flops!r}")
    if not callable(operator.registered):
        given = type(operator.registered).__name__
        raise TypeError(f"{kind} operator {name!r} needs a function, got {given}")
    torch = require_torch("Registering an operator")
    generator = torch.Generator().manual_seed(0)
    for shape in ((5, 4), (3, 1), (1, 2)):
        for dtype in (torch.float32, torch.float64):
            y = torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()
            _check_trial(kind, name, y, trial)
    _REGISTRY[kind][name] = operator
    return operator


def _check_trial(
    kind: str, name: str, y: Tensor, trial: Callable[[Tensor], tuple[Tensor, tuple[int, ...]]]
) -> None:
    import torch

    what = f"{kind} operator {name!r}"
    try:
        result, expected = trial(y)
    except Exception as error:
        raise ValueError(f"{what} failed on random input of shape {tuple(y.shape)}: {error}") from error
    if not isinstance(result, torch.Tensor) or tuple(result.shape) != expected:
        given = tuple(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
        raise ValueError(f"{what} returned {given}, expected a tensor of shape {expected}")
    if result.dtype != y.dtype:
        raise ValueError(f"{what} returned {result.dtype} for {y.dtype} input; it must keep the data type")
    if not torch.isfinite(result).all():
        raise ValueError(f"{what} returned non-finite values for ordinary input; guard it (clamp arguments)")
    if not result.requires_grad:
        raise ValueError(f"{what} is not differentiable: its result does not depend on its input in autograd")
    try:
        (gradient,) = torch.autograd.grad(result.sum(), y)
    except RuntimeError as error:
        raise ValueError(f"{what} is not differentiable: {error}") from error
    if not torch.isfinite(gradient).all():
        raise ValueError(f"{what} has non-finite gradients for ordinary input")
