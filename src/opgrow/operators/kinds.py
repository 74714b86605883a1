"""The three kinds of operators, and the facts that an operator states about itself.

Whatever the package does with an operator it reads from these facts: the reference computes by ``function``,
fixed-point formats and the checks of exports by ``formula``, exports write ``c``, ``fixed`` and ``onnx``, and
pages that move ``js``. The compiled engine and the Triton kernels know the built-in operators by their
``code``. A fact that is None is not known, and what needs it says so (`check_facts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .fixed_forms import Array, FixedActivation, FixedNodal, FixedPool

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Activation",
    "Nodal",
    "Operator",
    "Pool",
    "Separable",
    "check_facts",
    "stated",
]

#: What an operator is given to build its part of an ONNX graph with: `opgrow.export.onnx_graph.Graph`.
Graph = Any


@dataclass(frozen=True)
class Separable:
    """psi(y, w) = v(y) u(w): ONNX nodes for v, and u of the weights, which is computed at export.

    Products of neighbours are again such products, so that sums and correlations become matrix products.

    Attributes
    ----------
    inputs : function (graph, y)
    weights : numpy function of the weights
    """

    inputs: Callable[[Graph, str], str]
    weights: Callable[[Array], Array]


@dataclass(frozen=True, kw_only=True)
class Nodal:
    """psi(y, w): how one weight meets one input.

    Attributes
    ----------
    name : str
    function : psi in torch, for inputs and weights that broadcast
    flops : elementary operations of one evaluation
    code : of the compiled kernels; None for operators registered by users, which run by ``function``
    formula : psi in numpy
    slopes : (y, w) to the derivatives by the weight and by the input, in numpy
    single : psi in single precision as ``c`` computes it; None for ``formula``
    c : psi as a C expression of floats y and w, which may call the functions of ``single_precision``, such as
        ``bounded(x)``, x within [-10, 10]
    js : the same in JavaScript, in double precision; functions of ``Math`` need no prefix
    text : psi as a numpy expression in which {y}, {w} and {minus_w} are replaced; what has to be within
        [-10, 10] is between {clip} and {end}
    latex : the same as a LaTeX formula, without bounds
    fixed : FixedNodal
    onnx : function (graph, y, w) of y (rows, D, 1) and w (D, d), or `Separable`
    """

    kind: ClassVar[str] = "nodal"
    name: str
    function: Callable[[Tensor, Tensor], Tensor] = field(repr=False)
    flops: int = 1
    code: int | None = None
    formula: Callable[[Array, Array], Array] | None = field(default=None, repr=False)
    slopes: Callable[[Array, Array], tuple[Array, Array]] | None = field(default=None, repr=False)
    single: Callable[[Array, Array], Array] | None = field(default=None, repr=False)
    c: str | None = field(default=None, repr=False)
    js: str | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)
    latex: str | None = field(default=None, repr=False)
    fixed: FixedNodal | None = field(default=None, repr=False)
    onnx: Callable[[Graph, str, str], str] | Separable | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Pool:
    """rho over the inputs: maps (N, D, d) to (N, d).

    Attributes
    ----------
    name : str
    function : rho in torch
    flops : function of D that counts the operations of one neuron
    code : of the compiled kernels; None for operators registered by users, which run by ``function``
    formula : rho in numpy
    slopes : z (N, D, d) to the derivatives by every z, in numpy
    window : neighbouring inputs whose psi are multiplied before they are added up, if that is what rho does
    fold : for others, a C expression of ``total``, at first the first psi, and of the next ``psi``
    c : for others, body of a C function in which PSI(i) is psi of input i < n; slower than ``fold``
    js : body of a JavaScript function in which PSI(i) is the same; functions of ``Math`` need no prefix
    fixed : FixedPool
    onnx : function (graph, z) of z (rows, D, d), if there is no window
    """

    kind: ClassVar[str] = "pool"
    name: str
    function: Callable[[Tensor], Tensor] = field(repr=False)
    flops: Callable[[int], int] = field(default=lambda n: n, repr=False)
    code: int | None = None
    formula: Callable[[Array], Array] | None = field(default=None, repr=False)
    slopes: Callable[[Array], Array] | None = field(default=None, repr=False)
    window: int | None = None
    fold: str | None = field(default=None, repr=False)
    c: str | None = field(default=None, repr=False)
    js: str | None = field(default=None, repr=False)
    fixed: FixedPool | None = field(default=None, repr=False)
    onnx: Callable[[Graph, str], str] | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Activation:
    """f(x): elementwise.

    Attributes
    ----------
    name : str
    function : f in torch
    flops : elementary operations of one evaluation
    code : of the compiled kernels; None for operators registered by users, which run by ``function``
    formula : f in numpy
    slopes : the derivative in numpy
    single : f in single precision as ``c`` computes it; None for ``formula``
    c : f as a C expression of float x, which may call the functions of ``single_precision``
    js : the same in JavaScript, in double precision; functions of ``Math`` need no prefix
    text : f as a numpy expression in which {x} is replaced
    latex : the same as a LaTeX formula
    fixed : FixedActivation
    onnx : function (graph, x)
    """

    kind: ClassVar[str] = "activation"
    name: str
    function: Callable[[Tensor], Tensor] = field(repr=False)
    flops: int = 1
    code: int | None = None
    formula: Callable[[Array], Array] | None = field(default=None, repr=False)
    slopes: Callable[[Array], Array] | None = field(default=None, repr=False)
    single: Callable[[Array], Array] | None = field(default=None, repr=False)
    c: str | None = field(default=None, repr=False)
    js: str | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)
    latex: str | None = field(default=None, repr=False)
    fixed: FixedActivation | None = field(default=None, repr=False)
    onnx: Callable[[Graph, str], str] | None = field(default=None, repr=False)


Operator = Nodal | Pool | Activation
_Fact = TypeVar("_Fact")

#: What a fact is in a sentence.
_FACTS = {
    "formula": "numpy formula",
    "c": "C text",
    "js": "JavaScript text",
    "text": "text",
    "latex": "LaTeX",
    "fixed": "fixed-point form",
    "onnx": "ONNX nodes",
}


def check_facts(operator: Operator, facts: Sequence[str], where: str) -> None:
    """Refuse an operator that was registered without facts that are needed, in one sentence."""
    for fact in facts:
        if getattr(operator, fact) is None and not _follows(operator, fact):
            kind, name = operator.kind, operator.name
            raise ValueError(
                f"The {kind} operator {name!r} cannot be exported to {where}: it was registered without its "
                f"{_FACTS[fact]}, {fact}=... of opgrow.register_{kind}."
            )


def _follows(operator: Operator, fact: str) -> bool:
    """Whether a fact of a pool follows from others."""
    if not isinstance(operator, Pool) or fact not in ("onnx", "c"):
        return False
    return operator.window is not None or (fact == "c" and operator.fold is not None)


def stated(fact: _Fact | None) -> _Fact:
    """A fact that `check_facts` has found to be there."""
    assert fact is not None
    return fact
