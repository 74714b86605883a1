"""The C source that computes with integers only; its formats and constants come from `c_fixed`."""

from __future__ import annotations

import numpy as np

from ..operators.kinds import stated
from . import c_text as text
from .buffers import CALL_DEPTH, FRAME_BYTES, buffers, route
from .c_fixed import FixedProgram, FixedStep
from .c_fixed_inputs import inputs_text, reading, squash_table
from .c_fixed_operators import fixed_operators
from .c_fixed_pools import pooled_call
from .c_platform import INLINE, size_checks
from .c_scores import ScoreText, public_functions
from .c_weights import described, types_of, weight_tables, weights_bytes
from .program import Step

__all__ = ["facts", "fixed_source"]

_STRUCTURES = """\
/* Sizes of a block of neurons, and the fractional bits of its numbers. */
struct block {
    int16_t n_inputs, n_neurons;
    int8_t x_bits, psi_bits, pair_bits, pooled_bits, out_bits;
};

/* out = scale * f(pooled + bias) / 2^scale_bits + shift; the weights have weight_bits fractional bits. */
struct neuron {
    int32_t bias, shift;
    int16_t scale;
    int8_t scale_bits, weight_bits;
};
"""


def fixed_source(fixed: FixedProgram, name: str, header: str) -> str:
    """Everything below the first comment of the C file."""
    program = fixed.program
    steps = [step.step for step in fixed.steps]
    hidden = {_kind(step.step): step.step for layer in fixed.layers for step in layer}
    functions = [
        *(_step_function(step, False) for step in hidden.values()),
        _step_function(program.head, True),
    ]
    public = _public_functions(fixed, name)
    inputs = inputs_text(fixed.inputs)
    operators = fixed_operators(
        (step.operators for step in steps),
        "\n".join([inputs, *functions, public]),
        fixed.digits,
        fixed.weights,
        fixed.narrow,
    )
    units = [_ROOT] if any(step.unit for step in steps) else []
    parts = [
        f'#include "{header}"\n\n#include <stdint.h>\n',
        INLINE,
        size_checks(["int16_t", "int32_t", *types_of(fixed.weights)]),
        weight_tables(fixed.weights, _weights(fixed), [("TABLE_AT", "uint16_t")], structures=True),
        _STRUCTURES,
        operators,
        *units,
        *([_SCALED] if any("scaled(" in function for function in functions) else []),
        *functions,
        inputs,
        *_arrays(fixed),
        *_limits(fixed),
        _outputs_function(fixed),
        public,
        _float_faces(fixed, name),
    ]
    return "\n".join(parts)


def facts(fixed: FixedProgram) -> list[str]:
    """Lines about the arithmetic and its costs."""
    program = fixed.program
    constants = 8 * program.n_inputs + weights_bytes(fixed.weights, [s.weight.size for s in fixed.steps])
    constants += 4 * len(fixed.head_limits or ())
    constants += 0 if fixed.inputs.bound is None else 2 * len(squash_table(fixed.inputs.bound))
    constants += sum(16 + 12 * step.step.n_neurons for step in fixed.steps)
    arrays = 2 * sum(buffers(program, True).values()) + 4 * program.n_outputs * (program.classes is not None)
    return [
        f"Arithmetic: integers alone, weights stored as {described(fixed.weights)}. The formats were found "
        "from calibration rows, and what exceeds them saturates. The header tells the formats of inputs and "
        "scores.",
        f"Constants: {constants} bytes, on AVR in flash, without the tables of functions, which take 132 "
        f"bytes each. No static RAM. Stack: {arrays} bytes of arrays; with frames of calls at most "
        f"{arrays + (CALL_DEPTH + 3) * FRAME_BYTES} bytes on AVR, Cortex-M and RISC-V.",
        "No allocation, no state, no recursion, no floating point. Compile with: cc -std=c99 -Os -c FILE.c",
    ]


def _kind(step: Step) -> tuple[object, bool]:
    return step.operators, step.unit


def _function_name(step: Step, head: bool) -> str:
    operators = step.operators
    name = f"{operators.nodal}_{operators.pool}_{operators.activation}"
    return name + ("_unit" if step.unit else "") + ("_head" if head else "")


_SCALED = """\
/* What a neuron yields of the value of its activation. */
static INLINE int32_t scaled(const struct neuron *neuron, int32_t value)
{
    return rescale_and_add((int64_t)value * neuron->scale, neuron->scale_bits, neuron->shift);
}
"""
_STEP = """\
static void {function}(const struct block *block, const int16_t *x,
    weights_t w, const struct neuron *neurons, {kind} *out)
{{
    struct block b;
    COPY(b, block);
    for (int j = 0; j < b.n_neurons; j++, w += b.n_inputs) {{
        struct neuron neuron;
        int32_t z;
        COPY(neuron, neurons + j);
        z = {pooled};
        z = scaled(&neuron, f_{activation}(z, b.pooled_bits));
        out[j] = {store};
    }}
}}
"""
_UNIT = """\
static void {function}(const struct block *block, const int16_t *x,
    weights_t w, const struct neuron *neurons, int16_t *out)
{{
    struct block b;
    uint64_t squares = 0;
    int64_t norm;
    COPY(b, block);
    for (int j = 0; j < b.n_neurons; j++, w += b.n_inputs) {{
        struct neuron neuron;
        int32_t pooled;
        COPY(neuron, neurons + j);
        pooled = {pooled};
        out[j] = (int16_t)within(pooled, INT16_MAX);
        squares += (uint64_t)((int32_t)out[j] * out[j]);
    }}
    /* The norm with 8 fractional bits. */
    norm = squares > 0 ? (int64_t)root(squares << 16) : 256;
    for (int j = 0; j < b.n_neurons; j++) {{
        const int32_t z = (int32_t)((int64_t)out[j] * (INT32_C(1) << 23) / norm);
        out[j] = (int16_t)within(rescale(f_{activation}(z, 15), {after} - b.out_bits), INT16_MAX);
    }}
}}
"""
_ROOT = """\
static uint32_t root(uint64_t square)
{
    uint64_t result = 0;
    for (uint64_t bit = UINT64_C(1) << 62; bit != 0; bit >>= 2) {
        if (square >= result + bit) {
            square -= result + bit;
            result = (result >> 1) + bit;
        } else {
            result >>= 1;
        }
    }
    return (uint32_t)result;
}
"""


def _step_function(step: Step, head: bool) -> str:
    operators = step.operators
    pooled = pooled_call(operators)
    function = _function_name(step, head)
    if step.unit:
        after = stated(operators.activation_operator.fixed).result_bits(15)
        return _UNIT.format(function=function, pooled=pooled, activation=operators.activation, after=after)
    store = "z" if head else "(int16_t)within(z, INT16_MAX)"
    return _STEP.format(
        function=function,
        pooled=pooled,
        activation=operators.activation,
        kind="int32_t" if head else "int16_t",
        store=store,
    )


def _places(fixed: FixedProgram) -> list[tuple[str, FixedStep]]:
    return [(place, step) for (place, _), step in zip(fixed.program.places, fixed.steps, strict=True)]


def _weights(fixed: FixedProgram) -> dict[str, list[np.ndarray]]:
    return {place: [*step.weight] for place, step in _places(fixed)}


def _arrays(fixed: FixedProgram) -> list[str]:
    parts = []
    for place, step in _places(fixed):
        shape = (step.step.n_inputs, step.step.n_neurons)
        bits = (step.x_bits, step.psi_bits, step.pair_bits, step.pooled_bits, step.out_bits)
        parts.append(
            f"static const struct block block_{place} IN_FLASH = {{{', '.join(map(str, shape + bits))}}};\n"
        )
        parts.append(
            text.table(f"struct neuron neurons_{place}[{step.step.n_neurons}] IN_FLASH", step.neurons)
        )
    return parts


def _limits(fixed: FixedProgram) -> list[str]:
    parts = []
    if fixed.head_limits is not None:
        parts = [
            "/* What the head reads stays between these. */\nstruct range {\n    int16_t low, high;\n};\n",
            text.table(f"struct range ranges[{len(fixed.head_limits)}] IN_FLASH", fixed.head_limits),
        ]
    if fixed.limits is not None:
        parts += [
            "/* Outputs stay between these. */\nstruct limits {\n    int32_t low, high;\n};\n",
            text.table(f"struct limits limits[{len(fixed.limits)}] IN_FLASH", fixed.limits),
        ]
    return parts


def _outputs_function(fixed: FixedProgram) -> str:
    """From raw inputs to the head's outputs."""
    program = fixed.program
    lines = [f"int16_t {key}[{size}];" for key, size in buffers(program, True).items()]
    source = "b" if program.head_sees_input else "a"
    lines += reading(fixed.inputs, source)
    places, head_source = route(program, source)
    for number, layer in enumerate(fixed.layers):
        for j, (step, (reads, writes)) in enumerate(zip(layer, places[number], strict=True), 1):
            lines.append(_call(step.step, f"{number + 1}_{j}", reads, writes, False))
    if fixed.head_limits is not None:
        lines += [
            f"for (int k = 0; k < {len(fixed.head_limits)}; k++) {{",
            f"    int16_t *seen = {head_source} + k;",
            "    struct range range;",
            "    COPY(range, ranges + k);",
            "    *seen = *seen < range.low ? range.low : *seen > range.high ? range.high : *seen;",
            "}",
        ]
    lines.append(_call(program.head, "head", head_source, "out", True))
    if fixed.limits is not None:
        lines += [
            f"for (int j = 0; j < {program.n_outputs}; j++) {{",
            "    struct limits limit;",
            "    COPY(limit, limits + j);",
            "    out[j] = out[j] < limit.low ? limit.low : out[j] > limit.high ? limit.high : out[j];",
            "}",
        ]
    body = "".join(f"    {line}\n" for line in lines)
    return f"static void outputs(const int32_t *x, int32_t *out)\n{{\n{body}}}\n"


def _call(step: Step, place: str, source: str, target: str, head: bool) -> str:
    name = _function_name(step, head)
    return f"{name}(&block_{place}, {source}, weights_{place}, neurons_{place}, {target});"


#: With more classes all probabilities may be small.
_MANY_CLASSES = 256
#: So many exponentials can be added up in 32 bits.
_MOST_IN_32_BITS = 2**16 - 1
_SOFTMAX = """\
        out[j] = exponential(rescale((int64_t)out[j] - largest, {bits}), 15);
"""
_SHARE = """\
        /* Positive outputs are shares; where there is none, a softmax keeps their order. */
        out[j] = largest > 0 ? (out[j] > 0 ? out[j] : 0)
            : exponential(rescale((int64_t)out[j] - largest, {bits}), 15);
"""


def _public_functions(fixed: FixedProgram, name: str) -> str:
    shares, bits = fixed.program.loss == "mse", fixed.head.out_bits
    positive = _SHARE if shares else _SOFTMAX
    # Outputs that are a 64th apart have different probabilities, unless there are many hundreds of classes.
    apart = None if shares else f"(int64_t)out[best] - out[j] < {1 << max(bits - 6, 0)}"
    # Exponentials are at most 2^15.
    wide = shares or fixed.program.n_outputs > _MOST_IN_32_BITS
    divided = "(int64_t)out[j] * 65536 / total" if wide else "((uint32_t)out[j] << 16) / (uint32_t)total"
    scores = ScoreText(
        "int32_t",
        "int64_t" if wide else "int32_t",
        positive.format(bits=bits - 20),  # to the 20 fractional bits of exponents
        f"out[j] = (int32_t)({divided});",
        apart if fixed.program.n_outputs <= _MANY_CLASSES else None,
    )
    return public_functions(fixed.program, name, scores)


_FLOAT = """\
#ifdef {upper}_FLOAT
#include <math.h>

/* Integers have no NaN: 1 where there is one among the inputs, which then counts as 0. */
static int convert(const float *x, int32_t *fixed)
{{
    static const int8_t bits[{n_inputs}] = {{{bits}}};
    int unknown = 0;
    for (int i = 0; i < {n_inputs}; i++) {{
        const float v = ldexpf(x[i], bits[i]);
        unknown = unknown || v != v;
        fixed[i] = v >= 2147483520.0f ? INT32_MAX
            : v <= -2147483520.0f ? -INT32_MAX : v != v ? 0 : (int32_t)lrintf(v);
    }}
    return unknown;
}}

void {name}_scores_float(const float x[{upper}_N_INPUTS],
    float out[{upper}_N_OUTPUTS])
{{
    int32_t fixed[{n_inputs}], scores[{n}];
    const int unknown = convert(x, fixed);
    {name}_scores(fixed, scores);
    for (int j = 0; j < {n}; j++) {{
        out[j] = unknown ? NAN : ldexpf((float)scores[j], -{upper}_OUTPUT_BITS);
    }}
}}
{predict}#endif
"""
_FLOAT_PREDICT = """
int {name}_predict_float(const float x[{upper}_N_INPUTS])
{{
    int32_t fixed[{n_inputs}];
    return convert(x, fixed) ? -1 : {name}_predict(fixed);
}}
"""


def _float_faces(fixed: FixedProgram, name: str) -> str:
    program = fixed.program
    names = {"name": name, "upper": name.upper(), "n_inputs": program.n_inputs, "n": program.n_outputs}
    predict = _FLOAT_PREDICT.format(**names) if program.classes is not None else ""
    return _FLOAT.format(**names, bits=", ".join(map(str, fixed.inputs.bits)), predict=predict)
