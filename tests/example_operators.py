"""A nodal operator, a pool and an activation of a user, with everything that can be stated about them."""

from __future__ import annotations

import numpy as np
import torch

from opgrow import register_activation, register_nodal, register_pool
from opgrow.operators import FixedActivation, FixedNodal, FixedPool, unregister

__all__ = ["SET", "register", "remove"]

#: The operator set that they make up.
SET = ("rational", "mean", "swish")
_ONE = 1 << 30


def register() -> None:
    register_nodal(
        "rational",
        lambda y, w: w * y / (1 + (w * y).square()),
        flops=4,
        formula=lambda y, w: w * y / (1 + np.square(w * y)),
        slopes=_rational_slopes,
        c="w * y / (1.0f + (w * y) * (w * y))",
        js="w * y / (1 + (w * y) ** 2)",
        fixed=FixedNodal(
            """\
const int64_t t = within(rescale((int64_t)w * y, w_bits + x_bits - 16), INT32_C(1) << 24);
return psi(t * (INT64_C(1) << 32) / ((INT64_C(1) << 32) + t * t), 16 - psi_bits);
""",
            _fixed_rational,
        ),
        onnx=_onnx_rational,
    )
    register_pool(
        "mean",
        lambda z: z.mean(dim=1),
        flops=lambda n: n + 1,
        formula=lambda z: z.mean(axis=1),
        slopes=lambda z: np.full_like(z, 1 / z.shape[1]),
        c="""\
float total = 0.0f;
for (int i = 0; i < n; i++) {
    total += PSI(i);
}
return total / (float)n;
""",
        js="let total = 0;\nfor (let i = 0; i < n; i++) total += PSI(i);\nreturn total / n;\n",
        fixed=FixedPool(
            """\
int64_t total = 0;
for (int i = 0; i < n; i++) {
    total += PSI(i);
}
return rescale(total / n, BITS - pooled_bits);
""",
            lambda arithmetic, psi, bits, pair_bits, most: (_quotient(psi.sum(axis=2), psi.shape[2]), bits),
        ),
        onnx=lambda graph, z: graph.add("ReduceMean", z, axes=[1], keepdims=0),
    )
    register_activation(
        "swish",
        torch.nn.functional.silu,
        flops=5,
        formula=lambda x: x / (1 + np.exp(-x)),
        slopes=_swish_slopes,
        c="x / (1.0f + expf(-x))",
        js="x / (1 + exp(-x))",
        fixed=FixedActivation(
            """\
const int64_t one = (int64_t)1 << 30, e = exponential(-rescale(z < 0 ? -z : z, bits - 20), 30);
return rescale(z * ((z < 0 ? e << 30 : one << 30) / (one + e)), 30);
""",
            _fixed_swish,
        ),
        onnx=lambda graph, x: graph.add("Mul", x, graph.add("Sigmoid", x)),
    )


def remove() -> None:
    for kind, name in zip(("nodal", "pool", "activation"), SET, strict=True):
        unregister(kind, name)


def _rational_slopes(y, w):
    slope = (1 - np.square(w * y)) / np.square(1 + np.square(w * y))
    return y * slope, w * slope


def _quotient(value, divisor):
    """Rounded towards 0, as in C."""
    return np.sign(value) * (np.abs(value) // divisor)


def _fixed_rational(arithmetic, y, w, w_bits, x_bits, bits):
    t = arithmetic.within(arithmetic.rescale(w * y, w_bits + x_bits - 16), 1 << 24)
    return _quotient(t << 32, (1 << 32) + t * t), 16 - bits


def _onnx_rational(graph, y, w):
    t = graph.add("Mul", y, w)
    return graph.add("Div", t, graph.add("Add", graph.add("Mul", t, t), graph.constant(1)))


def _swish_slopes(x):
    s = 1 / (1 + np.exp(-x))
    return s * (1 + x * (1 - s))


def _fixed_swish(arithmetic, z, bits):
    e = arithmetic.exponential(-arithmetic.rescale(np.abs(z), bits - 20), 30)
    return arithmetic.rescale(z * (np.where(z < 0, e << 30, _ONE << 30) // (_ONE + e)), 30)
