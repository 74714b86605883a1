"""The operators of a program as C functions on floats, from what they state; NaN stays NaN.

Neurons are computed four at a time, in `LANES`, with their weights side by side, and inputs four at a time:
compilers turn the loops over lanes into vector code, and sums of four lose fewer digits than one long sum.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from ..operators import Activation, OperatorSet, Pool
from ..operators.kinds import stated
from ..operators.single_precision import C_FUNCTIONS

__all__ = [
    "GROUP",
    "LANES",
    "activated",
    "called_functions",
    "is_linear",
    "needs_math",
    "operator_functions",
    "pool_function",
    "with_terms",
]

#: Neurons side by side, and inputs whose terms are added up before they are added to the sum.
LANES = 4
GROUP = 4


def called_functions(code: str) -> str:
    """The functions of single precision that a C text calls."""
    parts: list[str] = []
    for name, function in reversed(C_FUNCTIONS.items()):
        if re.search(rf"\b{name}\(", code):
            parts.insert(0, function)
            code += function
    return "\n".join(parts)


def needs_math(sets: Iterable[OperatorSet]) -> bool:
    """Whether there are operators of users, which may call ``<math.h>``."""
    return any(operator.code is None for s in sets for operator in s.operators)


def operator_functions(sets: Iterable[OperatorSet]) -> str:
    """The functions psi_..., fold_... and f_... of operator sets."""
    sets = list(sets)
    parts = []
    for nodal in dict.fromkeys(s.nodal_operator for s in sets):
        parts.append(_function(f"psi_{nodal.name}(float y, float w)", stated(nodal.c)))
    for pool in dict.fromkeys(s.pool_operator for s in sets):
        if pool.window is None and pool.fold is not None:
            parts.append(_function(f"fold_{pool.name}(float total, float psi)", pool.fold))
    for activation in dict.fromkeys(s.activation_operator for s in sets):
        if not _changes_nothing(activation):
            parts.append(_function(f"f_{activation.name}(float x)", stated(activation.c)))
    return "\n".join(parts)


def activated(activation: Activation, value: str) -> str:
    """The activation of a C expression; the expression itself where the activation changes nothing."""
    return value if _changes_nothing(activation) else f"f_{activation.name}({value})"


def _changes_nothing(activation: Activation) -> bool:
    return activation.c == "x"


def _function(signature: str, expression: str) -> str:
    return f"static INLINE float {signature}\n{{\n    return {expression};\n}}\n"


def is_linear(operators: OperatorSet) -> bool:
    """Whether the unit of integer weights is a factor of the pooled value."""
    fixed = operators.nodal_operator.fixed
    return operators.pool_operator.window == 1 and fixed is not None and fixed.exact is not None


def pool_function(operators: OperatorSet, scaled: bool) -> str:
    """rho over the inputs of psi, for ``lanes`` neurons; ``scaled`` weights are integers in units."""
    nodal, pool = operators.nodal, operators.pool_operator
    weight = "(float)WEIGHT_AT(w + {at})" if scaled else "WEIGHT_AT(w + {at})"
    if scaled and not is_linear(operators):
        weight = f"FLOAT_AT(unit + k) * {weight}"
    unit = ", const float *unit" if scaled and not is_linear(operators) else ""
    term = f"psi_{nodal}(x[{{i}}], {weight})"
    head = (
        f"static INLINE void {nodal}_{operators.pool}(const float *x, int n, int lanes,\n"
        f"    weights_t w{unit}, float *total)\n{{\n"
    )
    if pool.window is not None:
        return head + _windowed(pool.window, term, scaled) + "}\n"
    if pool.fold is not None:
        return head + _folded(pool, term, scaled) + "}\n"
    one, given = f"{nodal}_{operators.pool}_of_one", ", unit + k" if unit else ""
    term = term.replace("unit + k", "unit").replace("{at}", "lanes * ({i})")
    body = with_terms(stated(pool.c), term)
    return (
        f"static float {one}(const float *x, int n, int lanes, weights_t w{unit})\n{{\n{body}}}\n\n"
        f"{head}    for (int k = 0; k < lanes; k++) {{\n"
        f"        total[k] = {one}(x, n, lanes, w + k{given});\n    }}\n}}\n"
    )


def with_terms(pool: str, term: str) -> str:
    """The body of a pool's function with a term for every PSI(i), in which {i} is the input."""
    return textwrap.indent(re.sub(r"\bPSI\(([^()]*)\)", lambda match: term.format(i=match[1]), pool), "    ")


def _at(term: str, number: int) -> str:
    """psi of input i + number."""
    place = {0: "k", 1: "lanes + k"}.get(number, f"{number} * lanes + k")
    return term.format(i=f"i + {number}" if number else "i", at=place)


def _loops(start: list[str], first: int, group: list[str], one: list[str], scaled: bool) -> tuple[str, str]:
    """What is done with each lane: at the start, and with groups of inputs and those that are left."""
    read = ["    READ_GROUP(v, w);"] if scaled else []
    if scaled:
        group = [line.replace("(float)WEIGHT_AT(w + ", "GROUP_AT(v, ") for line in group]
    groups = [
        f"for (; i + {GROUP} <= n; i += {GROUP}, w += {GROUP} * lanes) {{",
        *read,
        *_lanes(group, 1),
        "}",
    ]
    # How many are left is said in a way that compilers see to be less than a group.
    left = f"n - {first}" if first else "n"
    rest = [
        f"for (int rest = ({left}) & {GROUP - 1}; rest > 0; rest--, i++, w += lanes) {{".replace("(n)", "n"),
        *_lanes(one, 1),
        "}",
    ]
    advance = [f"w += {first} * lanes;".replace("1 * ", "")] if first else []
    before = "".join(f"    {line}\n" for line in [f"int i = {first};", *_lanes(start, 0), *advance])
    return before, "".join(f"    {line}\n" for line in [*groups, *rest])


def _lanes(body: list[str], depth: int) -> list[str]:
    loop = ["EACH_LANE(k) {", *(f"    {line}" for line in body), "}"]
    return [f"{'    ' * depth}{line}" for line in loop]


#: The same sums in one loop, for code that is to be small.
_SMALL = """\
    for (int count; i < n; i += count, w += count * lanes) {{
        count = n - i < {group} ? 1 : {group};
        for (int k = 0; k < lanes; k++) {{
            float t = {start};
            for (int g = 0; g < count; g++) {{
                const float p = {psi};
                t {update};
{shift}            }}
            total[k] {end} t;
        }}
    }}
"""


def _small(term: str, start: str, update: str, shift: list[str], end: str) -> str:
    psi = term.format(i="i + g", at="g * lanes + k")
    lines = "".join(f"                {line}\n" for line in shift)
    return _SMALL.format(group=GROUP, psi=psi, start=start, update=update, shift=lines, end=end)


def _windowed(window: int, term: str, scaled: bool) -> str:
    """Sums of products of so many neighbours; those before the first input are 0."""
    kept = [f"before{number}" for number in range(window - 1, 0, -1)]
    names = [f"{name}[k]" for name in kept]
    group = [f"const float p{number} = {_at(term, number)};" for number in range(GROUP)]
    seen = [*names, *(f"p{number}" for number in range(GROUP))]
    products = [" * ".join(seen[number : number + window]) for number in range(GROUP)]
    group.append(f"total[k] += {' + '.join(products)};")
    group += [f"{name} = {value};" for name, value in zip(names, seen[GROUP:], strict=True)]
    product = " * ".join([*names, "p"])
    shift = [f"{name} = {value};" for name, value in zip(names, [*names, "p"][1:], strict=True)]
    one = [f"const float p = {_at(term, 0)};", f"total[k] += {product};", *shift]
    start = ["total[k] = 0.0f;", *(f"{name} = 0.0f;" for name in names)]
    declared = f"    float {', '.join(f'{name}[LANES]' for name in kept)};\n" if kept else ""
    before, fast = _loops(start, 0, group, one, scaled)
    small = _small(term, "0.0f", f"+= {product}", shift, "+=")
    return f"{declared}{before}#if FAST\n{fast}#else\n{small}#endif\n"


def _folded(pool: Pool, term: str, scaled: bool) -> str:
    fold = f"fold_{pool.name}"
    one = [f"total[k] = {fold}(total[k], {_at(term, 0)});"]
    group = ["float t = total[k];"]
    group += [f"t = {fold}(t, {_at(term, number)});" for number in range(GROUP)]
    start = f"total[k] = {term.format(i='0', at='k')};"
    before, fast = _loops([start], 1, [*group, "total[k] = t;"], one, scaled)
    small = _small(term, "total[k]", f"= {fold}(t, p)", [], "=")
    return f"{before}#if FAST\n{fast}#else\n{small}#endif\n"
