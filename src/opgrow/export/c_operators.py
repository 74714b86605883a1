"""The operators as C functions on floats: the formulas of `opgrow.operators`, with a NaN that stays a NaN.

Where several formulas are equal, the one that keeps the most digits in single precision was taken.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["operator_functions", "pool_function"]

_BOUNDED = """\
static float bounded(float x)
{
    return x < -10.0f ? -10.0f : x > 10.0f ? 10.0f : x;
}
"""

#: psi(y, w): how an input meets a weight.
NODALS = {
    "multiplication": "w * y",
    "exponential": "expm1f(bounded(w * y))",
    "harmonic": "sinf(w * y)",
    "quadratic": "w * (y * y)",
    "gaussian": "w * expf(bounded(-w * (y * y)))",
    "dog": "w * y * expf(bounded(-w * (y * y)))",
    "pygop_quadratic": "(w * bounded(y)) * (w * bounded(y))",
    "pygop_dog": "w * y * expf(bounded(-w * (bounded(y) * bounded(y))))",
}

#: f(x); identity needs no function.
ACTIVATIONS = {
    "sigmoid": "1.0f / (1.0f + expf(-x))",
    "tanh": "tanhf(x)",
    "relu": "x < 0.0f ? 0.0f : x",
    "softplus": "(x < 0.0f ? -x : 0.0f) + log1pf(expf(-fabsf(x)))",
    "inverse_absolute": "x / (1.0f + fabsf(x))",
    "elu": "x < 0.0f ? expm1f(x) : x",
    "pygop_softplus": "(x < 0.0f ? -bounded(x) : 0.0f) + log1pf(expf(-fabsf(bounded(x))))",
}

#: The pools; PSI(i) stands for psi of input i.
_POOLS = {
    "sum": """\
    /* In parts of 16, whose sums lose fewer digits than one long sum. */
    float total = 0.0f;
    for (int i = 0; i < n;) {
        const int end = n - i > 16 ? i + 16 : n;
        float part = 0.0f;
        for (; i < end; i++) {
            part += PSI(i);
        }
        total += part;
    }
    return total;
""",
    "correlation1": """\
    float total = 0.0f, before = PSI(0);
    for (int i = 1; i < n; i++) {
        const float now = PSI(i);
        total += before * now;
        before = now;
    }
    return total;
""",
    "correlation2": """\
    float total = 0.0f, first = PSI(0);
    float second = n > 1 ? PSI(1) : 0.0f;
    for (int i = 2; i < n; i++) {
        const float third = PSI(i);
        total += first * second * third;
        first = second;
        second = third;
    }
    return total;
""",
    "maximum": """\
    float largest = PSI(0);
    for (int i = 1; i < n; i++) {
        const float now = PSI(i);
        if (now > largest || now != now) {
            largest = now;
        }
    }
    return largest;
""",
}


def operator_functions(nodals: Iterable[str], activations: Iterable[str]) -> str:
    """The functions psi_... and f_... that are named, and what they call."""
    parts = []
    for name in nodals:
        parts.append(_function(f"psi_{name}(float y, float w)", NODALS[name]))
    for name in activations:
        if name in ACTIVATIONS:
            parts.append(_function(f"f_{name}(float x)", ACTIVATIONS[name]))
    if any("bounded(" in part for part in parts):
        parts.insert(0, _BOUNDED)
    return "\n".join(parts)


def _function(signature: str, expression: str) -> str:
    return f"static float {signature}\n{{\n    return {expression};\n}}\n"


def pool_function(nodal: str, pool: str, scaled: bool) -> str:
    """rho over the inputs of psi; ``scaled`` weights are integers in units of ``unit``."""
    weight = "unit * (float)w[{i}]" if scaled else "w[{i}]"
    body = _POOLS[pool]
    for index in ("0", "1", "i"):
        body = body.replace(f"PSI({index})", f"psi_{nodal}(x[{index}], {weight.format(i=index)})")
    unit = ", float unit" if scaled else ""
    return f"static float {nodal}_{pool}(const float *x, const weight_t *w, int n{unit})\n{{\n{body}}}\n"
