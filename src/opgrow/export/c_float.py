"""The C source that computes in single precision, with weights as floats or as small integers.

Weights are stored neuron by neuron, and each neuron's constants side by side: the unit of its integer
weights, its bias, and the scale and shift of its batch norm, whichever of these it has.
"""

from __future__ import annotations

import numpy as np

from ..network.scaling import FARTHEST
from ..operators import Activation
from . import c_text as text
from .buffers import CALL_DEPTH, FRAME_BYTES, buffers, route
from .c_operators import activated, operator_functions, pool_function
from .c_scores import ScoreText, public_functions
from .program import Program, Step

__all__ = ["facts", "float_source", "input_constants", "quantized"]

#: C type and bytes of a weight.
_WEIGHTS = {"float32": ("float", 4), "int16": ("int16_t", 2), "int8": ("int8_t", 1)}
#: What the rest of a mean must come to, in units of the input's scale, to be worth a constant.
MEAN_REST = 6e-8


def float_source(program: Program, name: str, header: str, weights: str) -> str:
    """Everything below the first comment of the C file."""
    scaled = weights != "float32"
    kinds = {step.kind: step for step in program.steps}
    sets = [step.operators for step in program.steps]
    pools = {(operators.nodal, operators.pool): operators for operators in sets}
    parts = [
        f'#include "{header}"\n\n#include <math.h>\n' + ("#include <stdint.h>\n" if scaled else ""),
        f"typedef {_WEIGHTS[weights][0]} weight_t;\n",
        operator_functions(sets),
        *(pool_function(operators, scaled) for operators in pools.values()),
        *(_step_function(step, scaled) for step in kinds.values()),
        *_input_arrays(program),
        *_squashing(program),
        *_limits(program),
        *_step_arrays(program, weights),
        _outputs_function(program, scaled),
        _public_functions(program, name),
    ]
    return "\n".join(parts)


def facts(program: Program, weights: str) -> list[str]:
    """Lines about the arithmetic and its costs."""
    unit = 0 if weights == "float32" else 4
    constants = sum(4 * program.n_inputs for _ in input_constants(program))
    constants += 8 * program.n_outputs * (program.output_low is not None)
    for step in program.steps:
        neuron = unit + 4 * (step.bias is not None) + 8 * (step.scale is not None)
        constants += step.weight.size * _WEIGHTS[weights][1] + step.n_neurons * neuron
    arrays = 4 * (
        sum(buffers(program, program.changes_input).values())
        + program.n_outputs * (program.classes is not None)
    )
    stored = "" if weights == "float32" else f", weights stored as {weights} with a unit for each neuron"
    return [
        f"Arithmetic: single-precision floats{stored}. A NaN among the inputs makes all scores NaN"
        f"{', and the predicted class -1' if program.classes is not None else ''}.",
        f"Constants: {constants} bytes. Arrays on the stack: {arrays} bytes; with the frames of at most "
        f"{CALL_DEPTH} nested calls, those of <math.h> not counted, about "
        f"{arrays + CALL_DEPTH * FRAME_BYTES} bytes (an estimate).",
        "No allocation, no state, no recursion. Compile with: cc -std=c99 -Os -c FILE.c, link with -lm.",
    ]


# --- constants ---


def input_constants(program: Program) -> dict[str, np.ndarray]:
    """Names and values of what standardises the input; none where nothing does."""
    if not program.standardizes:
        return {}
    mean, scale = program.input_mean, program.input_scale
    constants = {"input_mean": mean.astype(np.float32)}
    rest = mean - constants["input_mean"].astype(np.float64)
    # A large mean with a small deviation needs more digits than a float has.
    if (np.abs(rest) > MEAN_REST * scale).any():
        constants["input_mean_rest"] = rest
    return {**constants, "input_scale": scale}


def _input_arrays(program: Program) -> list[str]:
    return [
        text.array(f"float {name}[{program.n_inputs}]", [values.astype(np.float32)])
        for name, values in input_constants(program).items()
    ]


def _squashing(program: Program) -> list[str]:
    if program.input_bound is None:
        return []
    return [_SQUASHED.format(bound=text.floating(program.input_bound), far=text.floating(FARTHEST))]


def _limits(program: Program) -> list[str]:
    return [
        text.array(f"float {name}[{program.n_outputs}]", [values.astype(np.float32)])
        for name, values in (("output_low", program.output_low), ("output_high", program.output_high))
        if values is not None
    ]


def _named_steps(program: Program) -> list[tuple[str, Step]]:
    named = [
        (f"{i}_{j}", step) for i, layer in enumerate(program.layers, 1) for j, step in enumerate(layer, 1)
    ]
    return [*named, ("head", program.head)]


def _step_arrays(program: Program, weights: str) -> list[str]:
    parts = []
    for place, step in _named_steps(program):
        values: np.ndarray = step.weight.astype(np.float32)
        columns = []
        if weights != "float32":
            values, unit = quantized(step.weight, weights)
            columns.append(unit)
        columns += [c for c in (step.bias, step.scale, step.shift) if c is not None]
        parts.append(text.array(f"weight_t weights_{place}[{values.size}]", values))
        if columns:
            table = np.stack(columns, axis=1).astype(np.float32)
            parts.append(text.array(f"float constants_{place}[{table.size}]", table))
    return parts


def quantized(weight: np.ndarray, weights: str) -> tuple[np.ndarray, np.ndarray]:
    """Integers (n_neurons, n_inputs) and each neuron's unit: the largest weight takes the whole range."""
    limit = np.iinfo(weights).max
    unit = np.abs(weight).max(axis=1) / limit
    unit = np.where(unit < np.finfo(np.float32).tiny, 1.0, unit).astype(np.float32).astype(np.float64)
    return np.rint(weight / unit[:, None]).clip(-limit, limit).astype(weights), unit


# --- functions ---


def _function_name(step: Step) -> str:
    """Such as gaussian_sum_tanh; what it has not got is part of the name."""
    operators = step.operators
    kind = {
        (True, True): "",
        (True, False): "_unscaled",
        (False, True): "_unbiased",
        (False, False): "_bare",
    }[step.bias is not None, step.scale is not None]
    name = f"{operators.nodal}_{operators.pool}_{operators.activation}"
    return name + ("_unit" if step.unit else kind)


def _step_function(step: Step, scaled: bool) -> str:
    constants = _constant_names(step, scaled)
    pooled = f"{step.operators.nodal}_{step.operators.pool}(x, w, n_inputs"
    pooled += f", c[{constants.index('unit')}])" if scaled else ")"
    table = ", const float *c" if constants else ""
    head = (
        f"static void {_function_name(step)}(const float *x, int n_inputs, int n_neurons,\n"
        f"    const weight_t *w{table}, float *out)\n{{\n"
    )
    activation = step.operators.activation_operator
    advance = ["w += n_inputs;"] + ([f"c += {len(constants)};"] if constants else [])
    if step.unit:
        return head + _unit_body(pooled, activation, advance)
    z = pooled + (f" + c[{constants.index('bias')}]" if "bias" in constants else "")
    value = activated(activation, z)
    if "scale" in constants:
        factor = f"({z})" if value == z else value
        value = f"c[{constants.index('scale')}] * {factor} + c[{constants.index('shift')}]"
    return head + _loop([f"out[j] = {value};", *advance]) + "}\n"


def _constant_names(step: Step, scaled: bool) -> list[str]:
    names = ["unit"] if scaled else []
    names += ["bias"] if step.bias is not None else []
    return names + (["scale", "shift"] if step.scale is not None else [])


def _loop(lines: list[str]) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"    for (int j = 0; j < n_neurons; j++) {{\n{body}    }}\n"


def _unit_body(pooled: str, activation: Activation, advance: list[str]) -> str:
    """Pooled values divided by the largest and then by their norm, so that no square overflows."""
    return (
        "    float largest = 0.0f, squares = 0.0f;\n"
        + _loop(
            [
                f"out[j] = {pooled};",
                *advance,
                "if (fabsf(out[j]) > largest) {",
                "    largest = fabsf(out[j]);",
                "}",
            ]
        )
        + _loop(
            [
                "out[j] /= largest > 0.0f ? largest : 1.0f;",
                "squares += out[j] * out[j];",
            ]
        )
        + "    const float norm = squares > 0.0f ? sqrtf(squares) : 1.0f;\n"
        + _loop([f"out[j] = {activated(activation, 'out[j] / norm')};"])
        + "}\n"
    )


def _outputs_function(program: Program, scaled: bool) -> str:
    """From raw inputs to the head's outputs."""
    lines = [f"float {key}[{size}];" for key, size in buffers(program, program.changes_input).items()]
    source = "x"
    if program.head_sees_input or program.changes_input:
        source = "b" if program.head_sees_input else "a"
        lines += _for_each("i", program.n_inputs, f"{source}[i] = {_network_input(program)};")
    places, head_source = route(program, source)
    for number, layer in enumerate(program.layers):
        for j, (step, (reads, writes)) in enumerate(zip(layer, places[number], strict=True), 1):
            lines.append(_call(step, f"{number + 1}_{j}", reads, writes, scaled))
    lines.append(_call(program.head, "head", head_source, "out", scaled))
    if program.output_low is not None:
        clamped = "out[j] < output_low[j] ? output_low[j] : out[j] > output_high[j] ? output_high[j] : out[j]"
        lines += _for_each("j", program.n_outputs, f"out[j] = {clamped};")
    # Not every pool reads every input; a NaN is known by not being equal to itself.
    spread = _for_each("j", program.n_outputs, "out[j] = x[i] != x[i] ? x[i] : out[j];")
    lines += _for_each("i", program.n_inputs, *spread)
    body = "".join(f"    {line}\n" for line in lines)
    return f"static void outputs(const float *x, float *out)\n{{\n{body}}}\n"


def _for_each(index: str, count: int, *body: str) -> list[str]:
    inner = [f"    {line}" for line in body]
    return [f"for (int {index} = 0; {index} < {count}; {index}++) {{", *inner, "}"]


def _network_input(program: Program) -> str:
    """The input i that the network sees, from x[i]."""
    value = "x[i]"
    if program.standardizes:
        rest = " - input_mean_rest[i]" if "input_mean_rest" in input_constants(program) else ""
        difference = f"((x[i] - input_mean[i]){rest})" if rest else "(x[i] - input_mean[i])"
        value = f"{difference} / input_scale[i]"
    return value if program.input_bound is None else f"squashed({value})"


_SQUASHED = """\
/* The network's input, which stays within {bound} however far away the standardised one is. */
static float squashed(float z)
{{
    float u = z / {bound};
    u = u < -{far} ? -{far} : u > {far} ? {far} : u;
    return {bound} * u / sqrtf(1.0f + u * u);
}}
"""


def _call(step: Step, place: str, source: str, target: str, scaled: bool) -> str:
    table = f", constants_{place}" if _constant_names(step, scaled) else ""
    sizes = f"{step.n_inputs}, {step.n_neurons}"
    return f"{_function_name(step)}({source}, {sizes}, weights_{place}{table}, {target});"


_DECLARATIONS = """\
    float largest, total = 0.0f;
"""
_SOFTMAX = """\
        out[j] = expf(out[j] - largest);
"""
_SHARE = """\
        /* Positive outputs are shares; where there is none, a softmax keeps their order. */
        out[j] = !(largest > 0.0f) ? expf(out[j] - largest) : out[j] < 0.0f ? 0.0f : out[j] / largest;
"""
_UNKNOWN = """\
        if (out[j] != out[j]) {
            return -1; /* NaN */
        }
"""


def _public_functions(program: Program, name: str) -> str:
    positive = _SHARE if program.loss == "mse" else _SOFTMAX
    scores = ScoreText("float", _DECLARATIONS, positive, "out[j] /= total;", _UNKNOWN)
    return public_functions(program, name, scores)
