"""The C source that computes in single precision, with weights as floats or as small integers.

It calls no mathematical library, unless an operator that a user has registered does: exponentials, sines and
the like are polynomials (`opgrow.operators.single_precision`). What reads tables does so by macros, which on
AVR read flash.
"""

from __future__ import annotations

import numpy as np

from ..network.scaling import FARTHEST
from ..operators.single_precision import ERRORS
from . import c_text as text
from .buffers import FRAME_BYTES, stack_bytes
from .c_filling import filling_functions, sample_type
from .c_float_outputs import outputs_function, outputs_of_features
from .c_float_steps import step_constants, step_function, step_weights
from .c_learning import learning_functions
from .c_operators import GROUP, LANES, called_functions, needs_math, operator_functions, pool_function
from .c_platform import size_checks
from .c_scores import ScoreText, public_functions
from .c_weights import described, types_of, weight_tables, weights_bytes
from .c_window import constant_bytes, window_arrays, window_functions
from .learning import StartingHead
from .program import Program

__all__ = ["facts", "float_source", "input_constants", "input_factor"]

#: What the rest of a mean must come to, in units of the input's scale, to be worth a constant.
MEAN_REST = 5e-7


def float_source(
    program: Program, name: str, header: str, weights: str, learning: StartingHead | None = None
) -> str:
    """Everything below the first comment of the C file; with ``learning``, functions that learn on."""
    scaled = weights != "float32"
    kinds = {step.kind: step for step in program.steps}
    sets = [step.operators for step in program.steps]
    pools = {(operators.nodal, operators.pool): operators for operators in sets}
    functions = [
        operator_functions(sets),
        *(pool_function(operators, scaled) for operators in pools.values()),
        *(step_function(step, scaled) for step in kinds.values()),
        *_inputs(program),
        *_limits(program),
        *step_constants(program, weights),
        (outputs_function if learning is None else outputs_of_features)(program, scaled),
        *_window(program, name),
        _public_functions(program, name),
        "" if learning is None else learning_functions(program, name, learning),
    ]
    headers = "#include <float.h>\n" + ("#include <math.h>\n" if needs_math(sets) else "")
    parts = [
        f'#include "{header}"\n\n{headers}#include <stdint.h>\n',
        _MACROS.format(lanes=LANES),
        _GROUPS.format(group=GROUP) if scaled else "",
        size_checks(["float", *types_of(weights)]),
        weight_tables(weights, step_weights(program, weights), [("FLOAT_AT", "float")]),
        called_functions("\n".join(functions)),
        *functions,
    ]
    return "\n".join(part for part in parts if part)


_MACROS = """\
/* Neurons side by side. Without optimisation for size, loops over them become vector code. */
#define LANES {lanes}
#if defined(__GNUC__) && !defined(__OPTIMIZE_SIZE__)
#define FAST 1
#define INLINE inline __attribute__((always_inline))
#else
#define FAST 0
#define INLINE inline
#endif
#if FAST && !defined(__clang__) && __GNUC__ >= 8
#define EACH_LANE(k) _Pragma("GCC unroll 1") for (int k = 0; k < lanes; k++)
#else
#define EACH_LANE(k) for (int k = 0; k < lanes; k++)
#endif

/* What must be rounded to a float; volatile only where a compiler would not do so. */
#if defined(__FAST_MATH__) || !defined(FLT_EVAL_METHOD) || FLT_EVAL_METHOD != 0
#define ROUNDED volatile
#else
#define ROUNDED const
#endif
"""


_GROUPS = """\
#if FAST
/* The weights of {group} inputs as floats, all of them at once. */
#define READ_GROUP(v, w) \\
    float v[{group} * LANES]; \\
    for (int k = 0; k < {group} * lanes; k++) \\
        v[k] = (float)WEIGHT_AT(w + k)
#define GROUP_AT(v, at) v[at]
#endif
"""


def facts(program: Program, weights: str, learning: StartingHead | None = None) -> list[str]:
    """Lines about the arithmetic and its costs."""
    unit = 0 if weights == "float32" else 4
    constants = 0 if program.window is None else constant_bytes(program.window)
    constants += sum(4 * program.n_inputs for _ in input_constants(program))
    constants += 8 * program.n_outputs * (program.output_low is not None)
    constants += 8 * program.head.n_inputs * program.limits_features
    for step in program.steps:
        neuron = unit + 4 * (step.bias is not None) + 8 * (step.scale is not None)
        constants += step.n_neurons * neuron
    constants += weights_bytes(weights, [step.weight.size for step in program.steps])
    arrays, stack = stack_bytes(program)
    if learning is not None:
        constants += learning.n_bytes
        arrays, stack = arrays + 4 * learning.n_features, stack + 4 * learning.n_features + FRAME_BYTES
    stored = (
        ""
        if weights == "float32"
        else f", weights stored as {described(weights)} with a unit for each neuron"
    )
    own = max(ERRORS.values())
    library = ", link with -lm" if needs_math(step.operators for step in program.steps) else ""
    return [
        f"Arithmetic: single-precision floats{stored}. Exponentials, sines, logarithms and roots are "
        f"polynomials and steps of Newton, with errors of at most {own:.1g} of the value, in sines of 1. "
        "A NaN among the inputs makes all scores NaN"
        f"{', and the predicted class -1' if program.classes is not None else ''}.",
        f"Constants: {constants} bytes, on AVR in flash. No static RAM. Stack: {arrays} bytes of arrays; "
        f"with frames of calls at most {stack} bytes on AVR, Cortex-M and "
        "RISC-V.",
        f"No allocation, no state, no recursion. Compile with: cc -std=c99 -Os -c FILE.c{library}",
        "With -O3 in place of -Os it is faster and larger.",
    ]


# --- constants ---


def input_constants(program: Program) -> dict[str, np.ndarray]:
    """Names and values of what standardises the input; none where nothing does."""
    if not program.standardizes:
        return {}
    mean = program.input_mean
    constants = {"input_mean": mean.astype(np.float32)}
    rest = mean - constants["input_mean"].astype(np.float64)
    # A large mean with a small deviation needs more digits than a float has.
    if (np.abs(rest) > MEAN_REST * program.input_scale).any():
        constants["input_mean_rest"] = rest
    return {**constants, "input_factor": input_factor(program)}


def input_factor(program: Program) -> np.ndarray:
    """What differences from the mean are multiplied by; the bound is part of it."""
    bound = 1.0 if program.input_bound is None else program.input_bound
    # Processors may take smaller numbers for 0, and 0 times infinity is no number.
    return np.maximum(1 / (program.input_scale * bound), float(np.finfo(np.float32).tiny))


def _inputs(program: Program) -> list[str]:
    """The constants of the inputs, and the function that makes the network's input of raw values."""
    if not program.changes_input:
        return [_KNOWN.format(n=program.n_inputs)]
    arrays = [
        text.array(f"float {name}[{program.n_inputs}] IN_FLASH", [values.astype(np.float32)])
        for name, values in input_constants(program).items()
    ]
    value = "x[i]"
    if program.standardizes:
        rest = " - FLOAT_AT(input_mean_rest + i)" if "input_mean_rest" in input_constants(program) else ""
        difference = "x[i] - FLOAT_AT(input_mean + i)"
        difference = f"({difference}){rest}" if rest else difference
        value = f"({difference}) * FLOAT_AT(input_factor + i)"
    squashed = []
    if program.input_bound is not None:
        if not program.standardizes:
            value = f"x[i] / {text.floating(program.input_bound)}"
        value = f"squashed({value})"
        squashed = [_SQUASHED.format(bound=text.floating(program.input_bound), far=text.floating(FARTHEST))]
    return [*arrays, *squashed, _STANDARDISED.format(n=program.n_inputs, value=value)]


_KNOWN = """\
/* Whether no input is NaN. */
static int known(const float *x)
{{
    int unknown = 0;
    for (int i = 0; i < {n}; i++) {{
        unknown |= x[i] != x[i];
    }}
    return !unknown;
}}
"""
_SQUASHED = """\
/* The network's input, which stays within {bound} however far away u, the standardised one, is. */
static INLINE float squashed(float u)
{{
    u = within(u, {far});
    return {bound} * u * inverse_root(1.0f + u * u);
}}
"""
_STANDARDISED = """\
static INLINE float standardised(const float *x, int i)
{{
    return {value};
}}

/* The network's inputs; returns whether no input is NaN. */
static int read_inputs(const float *x, float *restrict out)
{{
    enum {{ lanes = LANES }};
    int unknown[LANES] = {{0}}, i = 0;
    for (; FAST && i + LANES <= {n}; i += LANES) {{
        EACH_LANE(k) {{
            unknown[k] |= x[i + k] != x[i + k];
            out[i + k] = standardised(x, i + k);
        }}
    }}
    for (; i < {n}; i++) {{
        unknown[0] |= x[i] != x[i];
        out[i] = standardised(x, i);
    }}
    EACH_LANE(k) {{
        unknown[0] |= unknown[k];
    }}
    return !unknown[0];
}}
"""


def _limits(program: Program) -> list[str]:
    names = ("head_low", "head_high", "output_low", "output_high")
    limits = {name: getattr(program, name) for name in names}
    return [
        text.array(f"float {name}[{len(values)}] IN_FLASH", [values.astype(np.float32)])
        for name, values in limits.items()
        if values is not None
    ]


def _window(program: Program, name: str) -> list[str]:
    """The tables and functions that make the network's input of a window."""
    window = program.window
    return [] if window is None else [*window_arrays(window), *window_functions(window, name)]


_SOFTMAX = """\
        out[j] = exponential(out[j] - largest);
"""
_SHARE = """\
        /* Positive outputs are shares; where there is none, a softmax keeps their order. */
        out[j] = !(largest > 0.0f) ? exponential(out[j] - largest) : out[j] < 0.0f ? 0.0f : out[j] / largest;
"""
_UNKNOWN = """\
        if (out[j] != out[j]) {
            return -1; /* NaN */
        }
"""
#: Differences of outputs that probabilities tell apart; an infinite output makes these NaN.
_CLOSE = "(!(out[best] - out[j] > 1e-5f) || out[best] > 3.4e38f)"


def _public_functions(program: Program, name: str) -> str:
    shares, window = program.loss == "mse", program.window
    scores = ScoreText(
        "float",
        "float",
        _SHARE if shares else _SOFTMAX,
        "out[j] /= total;",
        None if shares else _CLOSE,
        _UNKNOWN,
        None if window is None else sample_type(name),
    )
    filling = "" if window is None else filling_functions(window, name)
    return public_functions(program, name, scores) + filling
