"""Operators of users: registered by name, after everything that they state was tried on random values.

Wrong shapes, non-finite values, missing gradients and facts that contradict each other are refused here and
not in the middle of a long run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.extras import require_torch
from .fixed_forms import FixedActivation, FixedNodal, FixedPool
from .kinds import Activation, Nodal, Operator, Pool, Separable
from .registry import add, registered

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["register_activation", "register_nodal", "register_pool"]

_FIXED: dict[type[Any], type] = {Nodal: FixedNodal, Pool: FixedPool, Activation: FixedActivation}
#: How far numpy's results may be from torch's, in double precision and relative to the largest.
_TOLERANCE = 1e-9

_Arguments = Callable[["Tensor"], "tuple[Tensor, ...]"]


def register_nodal(
    name: str, function: Callable[[Tensor, Tensor], Tensor], *, flops: int = 1, **facts: Any
) -> Nodal:
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
    **facts
        What else is known of the operator, for exports; see `opgrow.operators.Nodal`. ``formula`` is psi in
        numpy and ``slopes`` its derivatives by the weight and by the input, both compared with ``function``
        at once; ``c`` is a C expression, ``js`` one of JavaScript, ``text`` and ``latex`` write it in
        formulas, ``fixed`` is the operator in integers and ``onnx`` a builder of nodes.
        An export that needs a fact which is missing names it.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from opgrow.operators import register_nodal, unregister
    >>> cosine = register_nodal(
    ...     "cosine",
    ...     lambda y, w: torch.cos(w * y),
    ...     flops=2,
    ...     formula=lambda y, w: np.cos(w * y),
    ...     c="cosf(w * y)",
    ...     onnx=lambda graph, y, w: graph.add("Cos", graph.add("Mul", y, w)),
    ... )
    >>> cosine.name
    'cosine'
    >>> unregister("nodal", "cosine")
    """
    torch = require_torch("Registering an operator")

    def arguments(y: Tensor) -> tuple[Tensor, ...]:
        weight = torch.linspace(-1.5, 1.5, y.shape[1] * 4, dtype=y.dtype).reshape(1, y.shape[1], 4)
        return y[:, :, None], weight

    return _register(Nodal, name, function, flops, facts, arguments)


def register_pool(
    name: str,
    function: Callable[[Tensor], Tensor],
    *,
    flops: Callable[[int], int] | None = None,
    **facts: Any,
) -> Pool:
    """Add a pool operator that maps z of shape (N, D, d) to (N, d), for every D >= 1.

    See `opgrow.register_nodal` for the checks and `opgrow.operators.Pool` for the facts; ``flops`` takes D
    and returns the operations of one neuron.

    Examples
    --------
    >>> from opgrow.operators import register_pool, unregister
    >>> register_pool("mean", lambda z: z.mean(dim=1)).name
    'mean'
    >>> unregister("pool", "mean")
    """
    torch = require_torch("Registering an operator")

    def arguments(y: Tensor) -> tuple[Tensor, ...]:
        return (y[:, :, None] * torch.tensor([1.0, -0.5, 2.0], dtype=y.dtype),)

    return _register(Pool, name, function, flops or (lambda n: n), facts, arguments)


def register_activation(
    name: str, function: Callable[[Tensor], Tensor], *, flops: int = 1, **facts: Any
) -> Activation:
    """Add an elementwise activation f(x).

    See `opgrow.register_nodal` for the checks and `opgrow.operators.Activation` for the facts.

    Examples
    --------
    >>> import torch
    >>> from opgrow.operators import register_activation, unregister
    >>> register_activation("swish", torch.nn.functional.silu, flops=2).name
    'swish'
    >>> unregister("activation", "swish")
    """
    return _register(Activation, name, function, flops, facts, lambda y: (4 * y,))


def _register(
    kind: type[Any], name: str, function: Any, flops: Any, facts: dict[str, Any], arguments: _Arguments
) -> Any:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}", name):
        raise ValueError(f"an operator's name is letters, digits and underscores, got {name!r}")
    what = f"{kind.kind} operator {name!r}"
    if name in registered(kind.kind):
        raise ValueError(f"{what} is already registered")
    if not callable(flops) and (not isinstance(flops, int) or flops < 0):
        raise ValueError(f"flops of {what} must be a number, got {flops!r}")
    if not callable(function):
        raise TypeError(f"{what} needs a function, got {type(function).__name__}")
    _check_types(what, facts, kind)
    operator = kind(name=name, function=function, flops=flops, **facts)
    torch = require_torch("Registering an operator")
    generator = torch.Generator().manual_seed(0)
    for shape in ((5, 4), (3, 1), (1, 2)):
        for dtype in (torch.float32, torch.float64):
            y = torch.randn(shape, generator=generator, dtype=dtype)
            _check_function(operator, y.requires_grad_(), arguments)
            _check_numpy(operator, arguments(y.detach().double()))
    add(operator)
    return operator


def _check_types(what: str, facts: dict[str, Any], kind: type[Any]) -> None:
    names = [field.name for field in fields(kind) if field.name not in ("name", "function", "flops", "code")]
    for fact, value in facts.items():
        if fact not in names:
            raise TypeError(f"{what} cannot state {fact!r}; facts are: {', '.join(names)}")
        texts = dict.fromkeys(("c", "fold", "js", "text", "latex"), str)
        expected = (texts | {"window": int, "fixed": _FIXED[kind]}).get(fact)
        right = callable(value) if expected is None else isinstance(value, expected)
        if fact == "js" and right and re.search(r"</|<!--", value):
            raise ValueError(
                f"js of {what} must not contain '</' or '<!--', which could end the script of a page"
            )
        if not right and not (fact == "onnx" and isinstance(value, Separable)):
            wanted = "a function" if expected is None else f"of type {expected.__name__}"
            raise TypeError(f"{fact} of {what} must be {wanted}, got {type(value).__name__}")


def _shape(operator: Operator, arguments: tuple[Tensor, ...]) -> tuple[int, ...]:
    """The shape that the results of arguments should have."""
    shape = tuple(np.broadcast_shapes(*(a.shape for a in arguments)))
    return (shape[0], shape[2]) if operator.kind == "pool" else shape


def _check_function(operator: Operator, y: Tensor, arguments: _Arguments) -> None:
    import torch

    what, inputs = f"{operator.kind} operator {operator.name!r}", arguments(y)
    function: Callable[..., Any] = operator.function
    try:
        result = function(*inputs)
    except Exception as error:
        raise ValueError(f"{what} failed on random input of shape {tuple(y.shape)}: {error}") from error
    expected = _shape(operator, inputs)
    if not isinstance(result, torch.Tensor) or tuple(result.shape) != expected:
        returned = tuple(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
        raise ValueError(f"{what} returned {returned}, expected a tensor of shape {expected}")
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


def _check_numpy(operator: Operator, arguments: tuple[Tensor, ...]) -> None:
    """Compare what is stated in numpy with the torch function and its automatic derivatives."""
    import torch

    what = f"{operator.kind} operator {operator.name!r}"
    leaves = [a.detach().clone().requires_grad_() for a in torch.broadcast_tensors(*arguments)]
    function: Callable[..., Any] = operator.function
    result = function(*leaves)
    arrays = [leaf.detach().numpy() for leaf in leaves]
    formula: Callable[..., Any] | None = operator.formula
    if formula is not None:
        _check_equal(f"the numpy formula of {what}", formula(*arrays), result.detach().numpy())
    slopes: Callable[..., Any] | None = operator.slopes
    if slopes is not None:
        stated = slopes(*arrays)
        # By the weight and by the input, in this order, as in the engine.
        gradients = [g.numpy() for g in torch.autograd.grad(result.sum(), leaves)][::-1]
        for values, gradient in zip(stated if len(leaves) > 1 else [stated], gradients, strict=True):
            _check_equal(f"a slope of {what}", np.broadcast_to(values, gradient.shape), gradient)


def _check_equal(what: str, values: Any, expected: np.ndarray) -> None:
    if np.shape(values) != expected.shape:
        raise ValueError(f"{what} has shape {np.shape(values)}, expected {expected.shape}")
    difference = np.abs(values - expected).max()
    if not difference <= _TOLERANCE * max(1.0, np.abs(expected).max()):
        raise ValueError(f"{what} differs by {difference:.3g} from that of its torch function")
