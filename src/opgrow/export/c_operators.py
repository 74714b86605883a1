"""The operators of a program as C functions on floats, from the texts that they state; NaN stays NaN."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from ..operators import Activation, OperatorSet
from ..operators.kinds import stated

__all__ = ["activated", "operator_functions", "pool_function", "with_terms"]

_BOUNDED = """\
static float bounded(float x)
{
    return x < -10.0f ? -10.0f : x > 10.0f ? 10.0f : x;
}
"""


def operator_functions(sets: Iterable[OperatorSet]) -> str:
    """The functions psi_... and f_... of operator sets, and what they call."""
    sets = list(sets)
    parts = []
    for nodal in dict.fromkeys(s.nodal_operator for s in sets):
        parts.append(_function(f"psi_{nodal.name}(float y, float w)", stated(nodal.c)))
    for activation in dict.fromkeys(s.activation_operator for s in sets):
        if not _changes_nothing(activation):
            parts.append(_function(f"f_{activation.name}(float x)", stated(activation.c)))
    if any("bounded(" in part for part in parts):
        parts.insert(0, _BOUNDED)
    return "\n".join(parts)


def activated(activation: Activation, value: str) -> str:
    """The activation of a C expression; the expression itself where the activation changes nothing."""
    return value if _changes_nothing(activation) else f"f_{activation.name}({value})"


def _changes_nothing(activation: Activation) -> bool:
    return activation.c == "x"


def _function(signature: str, expression: str) -> str:
    return f"static float {signature}\n{{\n    return {expression};\n}}\n"


def pool_function(operators: OperatorSet, scaled: bool) -> str:
    """rho over the inputs of psi; ``scaled`` weights are integers in units of ``unit``."""
    nodal, pool = operators.nodal, operators.pool
    weight = "unit * (float)w[{i}]" if scaled else "w[{i}]"
    body = with_terms(stated(operators.pool_operator.c), f"psi_{nodal}(x[{{i}}], {weight})")
    unit = ", float unit" if scaled else ""
    return f"static float {nodal}_{pool}(const float *x, const weight_t *w, int n{unit})\n{{\n{body}}}\n"


def with_terms(pool: str, term: str) -> str:
    """The body of a pool's function with a term for every PSI(i), in which {i} is the input."""
    return textwrap.indent(re.sub(r"\bPSI\(([^()]*)\)", lambda match: term.format(i=match[1]), pool), "    ")
