"""The functions of a float program that compute neurons, and the tables that they read.

Weights lie in tiles of `LANES` neurons, in a tile input by input; so do the constants of neurons: the unit of
integer weights, the bias, and the scale and shift of a batch norm, whichever of these there are. The last
tile has what is left.
"""

from __future__ import annotations

import numpy as np

from . import c_text as text
from .c_operators import LANES, activated, is_linear
from .c_storage import STORAGES
from .program import Program, Step

__all__ = ["call", "constant_names", "quantized", "step_constants", "step_function", "step_weights"]


def step_weights(program: Program, weights: str) -> dict[str, list[np.ndarray]]:
    """The weights of each step as they are stored, in the order of the tiles."""
    tables = {}
    for place, step in program.places:
        values = (
            step.weight.astype(np.float32) if weights == "float32" else quantized(step.weight, weights)[0]
        )
        tiles = [values[j : j + LANES].T for j in range(0, step.n_neurons, LANES)]
        tables[place] = (
            [row for tile in tiles for row in tile] if step.n_inputs < 16 else [t.ravel() for t in tiles]
        )
    return tables


def step_constants(program: Program, weights: str) -> list[str]:
    """Tables of the constants of all steps."""
    parts = []
    for place, step in program.places:
        columns = [quantized(step.weight, weights)[1]] if weights != "float32" else []
        columns += [c for c in (step.bias, step.scale, step.shift) if c is not None]
        if columns:
            table = np.stack(columns).astype(np.float32)
            rows = [table[:, j : j + LANES].ravel() for j in range(0, step.n_neurons, LANES)]
            parts.append(text.array(f"float constants_{place}[{table.size}] IN_FLASH", rows))
    return parts


def quantized(weight: np.ndarray, weights: str) -> tuple[np.ndarray, np.ndarray]:
    """Integers (n_neurons, n_inputs) and each neuron's unit."""
    stored = STORAGES[weights]
    unit = stored.units(weight)
    unit = np.where(unit < np.finfo(np.float32).tiny, 1.0, unit).astype(np.float32).astype(np.float64)
    return stored.rounded(weight / unit[:, None]), unit


def constant_names(step: Step, scaled: bool) -> list[str]:
    """The constants of each neuron, in order."""
    names = ["unit"] if scaled else []
    names += ["bias"] if step.bias is not None else []
    return names + (["scale", "shift"] if step.scale is not None else [])


def call(step: Step, place: str, source: str, target: str, scaled: bool) -> str:
    """The call of a step's function."""
    table = f", constants_{place}" if constant_names(step, scaled) else ""
    sizes = f"{step.n_inputs}, {step.n_neurons}"
    return f"{_function_name(step)}({source}, {sizes}, weights_{place}{table}, {target});"


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


_TILE = """\
static INLINE void {name}_tile(const float *x, int n, int lanes, weights_t w{table},
    float *restrict out)
{{
    float z[LANES];
    {pooled};
    EACH_LANE(k) {{
        z[k] = {value};
    }}
    EACH_LANE(k) {{
        out[k] = z[k];
    }}
}}
"""
_STEP = """\
static void {name}(const float *x, int n_inputs, int n_neurons,
    weights_t w{table}, float *out)
{{
{declarations}    int j;
    for (j = 0; j < n_neurons; j += LANES) {{
        const int lanes = n_neurons - j < LANES ? n_neurons - j : LANES;
        if (FAST && lanes == LANES) {{
            {name}_tile(x, n_inputs, LANES, w{given}, out + j);
        }} else {{
            {name}_tile(x, n_inputs, FAST ? lanes & (LANES - 1) : lanes, w{given}, out + j);
        }}
        w += LANES * n_inputs;
{advance}    }}
{after}}}
"""
#: Pooled values divided by the largest and then by their norm, so that no square overflows.
_UNIT = """\
    for (j = 0; j < n_neurons; j++) {{
        const float size = size_of(out[j]);
        largest = size > largest ? size : largest;
    }}
    for (j = 0; j < n_neurons; j++) {{
        out[j] /= largest > 0.0f ? largest : 1.0f;
        squares += out[j] * out[j];
    }}
    squares = squares > 0.0f ? inverse_root(squares) : 1.0f;
    for (j = 0; j < n_neurons; j++) {{
        out[j] = {value};
    }}
"""


def step_function(step: Step, scaled: bool) -> str:
    """The function that computes the neurons of steps of a kind."""
    constants, operators = constant_names(step, scaled), step.operators
    table = ", const float *c" if constants else ""
    linear = is_linear(operators)
    unit = ", c" if scaled and not linear else ""
    z = "FLOAT_AT(c + k) * z[k]" if scaled and linear else "z[k]"
    declarations, after = "", ""
    if step.unit:
        value = z
        declarations = "    float largest = 0.0f, squares = 0.0f;\n"
        after = _UNIT.format(value=activated(operators.activation_operator, "out[j] * squares"))
    else:
        value = _value(step, z, constants)
    name = _function_name(step)
    tile = _TILE.format(
        name=name,
        table=table,
        pooled=f"{operators.nodal}_{operators.pool}(x, n, lanes, w{unit}, z)",
        value=value,
    )
    if value == "z[k]":
        tile = tile.replace("    EACH_LANE(k) {\n        z[k] = z[k];\n    }\n", "")
    advance = f"        c += {len(constants)} * LANES;\n" if constants else ""
    given = ", c" if constants else ""
    step_text = _STEP.format(
        name=name, table=table, declarations=declarations, given=given, advance=advance, after=after
    )
    return f"{tile}\n{step_text}"


def _value(step: Step, z: str, constants: list[str]) -> str:
    """What a neuron yields of its pooled value."""

    def constant(name: str) -> str:
        number = constants.index(name)
        place = {0: "k", 1: "lanes + k"}.get(number, f"{number} * lanes + k")
        return f"FLOAT_AT(c + {place})"

    z += f" + {constant('bias')}" if "bias" in constants else ""
    value = activated(step.operators.activation_operator, z)
    if "scale" not in constants:
        return value
    factor = f"({z})" if value == z else value
    return f"{constant('scale')} * {factor} + {constant('shift')}"
