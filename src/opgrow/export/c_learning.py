"""The functions of an exported float program that learn on: a state of the caller's, its update, its head.

What they compute is explained in `opgrow.export.learning`. Outputs need no weights: eliminating a row of
features by R gives numbers whose products with T are the head's outputs.
"""

from __future__ import annotations

from . import c_text as text
from .buffers import FRAME_BYTES, stack_bytes
from .c_scores import ScoreText, probabilities_function
from .learning import StartingHead
from .program import Program

__all__ = ["learning_declarations", "learning_functions"]

#: Features are learned from up to this size: squares and their sums stay finite.
_LARGEST = "1e15f"
#: Parts of a penalty that are not worth a rotation.
_SLIGHT = "0.001f"


def learning_declarations(program: Program, name: str, start: StartingHead) -> str:
    """The state and the functions, for the header."""
    upper = name.upper()
    members = "".join(f"    float {key}[{len(array)}];\n" for key, array in start.members.items())
    stack = stack_bytes(program)[1] + 4 * (start.n_features + 1 + program.n_outputs) + 2 * FRAME_BYTES
    target = "int target" if program.classes is not None else f"const float target[{upper}_N_OUTPUTS]"
    words = "the index of its class" if program.classes is not None else "its targets"
    state, row = f"const {name}_state *state", f"const float x[{upper}_N_INPUTS]"
    predict = f"int {name}_predict_with({state}, {row});\n" if program.classes is not None else ""
    return (
        f"/* A head that learns on: {start.n_bytes} bytes, which the caller owns, and may copy and keep.\n"
        f" * Calls take at most {stack} bytes of the stack. */\n"
        f"#define {upper}_STATE_BYTES {start.n_bytes}\n"
        f"typedef struct {{\n{members}}} {name}_state;\n"
        f"typedef char {name}_state_has_{start.n_bytes}_bytes"
        f"[sizeof({name}_state) == {upper}_STATE_BYTES ? 1 : -1];\n\n"
        f"/* The head that the model has; call it first. */\nvoid {name}_start({name}_state *state);\n\n"
        f"/* Learn from a row and {words}. Returns 1, or 0 for a row that the model would refuse,\n"
        " * such as one with a NaN: then the state stays as it is. */\n"
        f"int {name}_learn({name}_state *state, {row}, {target});\n\n"
        f"/* As the functions without a state, with the head of the state. */\n{predict}"
        f"void {name}_scores_with({state}, {row},\n    float out[{upper}_N_OUTPUTS]);\n"
    )


def learning_functions(program: Program, name: str, start: StartingHead) -> str:
    """The tables of the start and the functions."""
    upper, p, n = name.upper(), start.n_features, program.n_outputs
    tables = [text.array(f"float start_of_{key}[{len(v)}] IN_FLASH", [v]) for key, v in start.members.items()]
    copies = "".join(
        f"    copied(state->{key}, start_of_{key}, {len(array)});\n" for key, array in start.members.items()
    )
    names: dict[str, str | int] = {"name": name, "upper": upper, "p": p, "n": n, "n_inputs": program.n_inputs}
    numbers = {"forgetting": text.floating(start.forgetting), "penalty": text.floating(start.penalty)}
    parts = [
        _FORGETTING.format(**names, **numbers),
        *tables,
        *_shift(start),
        _START.format(**names, copies=copies),
        _ROTATED.format(**names),
        _PENALISED.format(**names, **numbers, slight=_SLIGHT),
        _learn(program, start, names),
        _outputs_with(start, names),
        _public(program, names),
    ]
    return "\n".join(parts)


_FORGETTING = """\
/* By how much a row counts less with each row after it; -D{upper}_FORGETTING=0.999f changes it. */
#ifndef {upper}_FORGETTING
#define {upper}_FORGETTING {forgetting}
#endif
"""
_START = """\
static void copied(float *to, const float *from, int count)
{{
    for (int i = 0; i < count; i++) {{
        to[i] = FLOAT_AT(from + i);
    }}
}}

void {name}_start({name}_state *state)
{{
{copies}}}
"""
_ROTATED = """\
/* Rotates a row of a weight into some columns of the factor, without square roots (Gentleman 1973). What is
 * left of the row takes its place; returns the weight that is left. */
static float rotated({name}_state *state, float *x, float *y, int first, int end, float weight)
{{
    float *r = state->factor + first * {p} - first * (first - 1) / 2;
    for (int i = first; i < end; i++) {{
        const float v = x[i], before = state->weight[i], after = before + weight * v * v;
        const int tells = after > FLT_MIN;
        const float gain = tells ? weight * v / after : 0.0f;
        for (int k = i + 1; k <= {p}; k++, r++) {{
            x[k] -= v * *r;
            *r += gain * x[k];
        }}
        for (int j = 0; j < {n}; j++) {{
            float *t = state->target + i * {n} + j;
            y[j] -= v * *t;
            *t += gain * y[j];
        }}
        if (tells) {{
            weight *= before / after;
            state->weight[i] = after;
        }}
    }}
    return weight;
}}
"""
_PENALISED = """\
/* Brings the penalties of features to their share of the variance that these have now, the farthest first.
 * With forgetting they fade like rows: then more of them are brought, and a little above their share. */
static void penalised({name}_state *state, float *x, float *y)
{{
    const float fading = {p}.0f * (1.0f - {upper}_FORGETTING);
    const int turns = 1 + (int)(20.0f * fading);
    const float unit = {penalty} * (1.0f + 0.5f * fading / (float)turns);
    for (int turn = 0; turn < turns; turn++) {{
        int first = 0;
        float farthest = {slight}, more = 0.0f;
        for (int k = 0; k < {p}; k++) {{
            const float mean = state->factor[k], variance = state->spread[k] / state->weight[0];
            const float wanted = unit * (variance > 1e-12f * mean * mean ? variance : 1.0f);
            float missing = wanted - state->ridge[k], part;
            missing = missing < -0.5f * state->ridge[k] ? -0.5f * state->ridge[k] : missing;
            part = size_of(missing) / state->ridge[k];
            if (part > farthest) {{
                first = k + 1;
                farthest = part;
                more = missing;
            }}
        }}
        if (first == 0) {{
            return;
        }}
        for (int k = 0; k <= {p}; k++) {{
            x[k] = k == first ? 1.0f : 0.0f;
        }}
        for (int j = 0; j < {n}; j++) {{
            y[j] = 0.0f;
        }}
        state->ridge[first - 1] += more;
        (void)rotated(state, x, y, first, {p} + 1, more);
    }}
}}
"""


def _shift(start: StartingHead) -> list[str]:
    if start.shift is None:
        return []
    return [text.array(f"float target_shift[{len(start.shift)}] IN_FLASH", [start.shift])]


_LEARN = """\
int {name}_learn({name}_state *state, const float x[{upper}_N_INPUTS], {target})
{{
    float seen[{p} + 1], y[{n}], weight;
    for (int i = 0; i < {n_inputs}; i++) {{
        if (!(size_of(x[i]) <= FLT_MAX)) {{
            return 0;
        }}
    }}
{refused}    seen[0] = 1.0f;
    if (!features(x, seen + 1)) {{
        return 0;
    }}
    for (int k = 1; k <= {p}; k++) {{
        if (!(size_of(seen[k]) <= {largest})) {{
            return 0;
        }}
    }}
    for (int j = 0; j < {n}; j++) {{
{given}    }}
    if ({upper}_FORGETTING < 1.0f) {{
        state->weight[0] *= {upper}_FORGETTING;
        for (int k = 0; k < {p}; k++) {{
            state->weight[k + 1] *= {upper}_FORGETTING;
            state->spread[k] *= {upper}_FORGETTING;
            state->ridge[k] *= {upper}_FORGETTING;
        }}
    }}
    weight = rotated(state, seen, y, 0, 1, 1.0f);
    for (int k = 0; k < {p}; k++) {{
        state->spread[k] += weight * seen[k + 1] * seen[k + 1];
    }}
    (void)rotated(state, seen, y, 1, {p} + 1, weight);
    penalised(state, seen, y);
    return 1;
}}
"""
_REFUSED_CLASS = """\
    if (target < 0 || target >= {n}) {{
        return 0;
    }}
"""
_REFUSED_VALUE = """\
    for (int j = 0; j < {n}; j++) {{
        if (!(size_of(target[j]) <= FLT_MAX)) {{
            return 0;
        }}
    }}
"""
_SEEN_VALUE = """\
        state->low[j] = target[j] < state->low[j] ? target[j] : state->low[j];
        state->high[j] = target[j] > state->high[j] ? target[j] : state->high[j];
"""


def _learn(program: Program, start: StartingHead, names: dict[str, str | int]) -> str:
    if program.classes is not None:
        target, refused = "int target", _REFUSED_CLASS
        given = f"        y[j] = j == target ? {text.floating(start.hot)} : 0.0f;\n"
    else:
        target, refused = f"const float target[{names['upper']}_N_OUTPUTS]", _REFUSED_VALUE
        given = "        y[j] = target[j] - FLOAT_AT(target_shift + j);\n"
        given += "" if start.low is None else _SEEN_VALUE
    return _LEARN.format(
        **names, target=target, refused=refused.format(**names), given=given, largest=_LARGEST
    )


_OUTPUTS_WITH = """\
static void outputs_with(const {name}_state *state, const float *x, float *out)
{{
    const float *r = state->factor, *t = state->target;
    float seen[{p} + 1];
    const int known_inputs = features(x, seen + 1);
    seen[0] = 1.0f;
    for (int j = 0; j < {n}; j++) {{
        out[j] = known_inputs ? 0.0f : float_of(UINT32_C(0x7fc00000)); /* NaN */
    }}
    for (int i = 0; known_inputs && i <= {p}; i++) {{
        for (int k = i + 1; k <= {p}; k++, r++) {{
            seen[k] -= seen[i] * *r;
        }}
        for (int j = 0; j < {n}; j++, t++) {{
            out[j] += seen[i] * *t;
        }}
    }}
{limited}}}
"""
_SHIFTED = """\
    for (int j = 0; j < {n}; j++) {{
        out[j] += FLOAT_AT(target_shift + j);
    }}
"""
_LIMITED = """\
    for (int j = 0; j < {n}; j++) {{
        const float reach = {margin} * (state->high[j] - state->low[j]);
        const float low = state->low[j] - reach, high = state->high[j] + reach;
        out[j] = out[j] < low ? low : out[j] > high ? high : out[j];
    }}
"""


def _outputs_with(start: StartingHead, names: dict[str, str | int]) -> str:
    limited = "" if start.shift is None else _SHIFTED.format(**names)
    if start.low is not None:
        limited += _LIMITED.format(**names, margin=text.floating(start.margin))
    return _OUTPUTS_WITH.format(**names, limited=limited)


_SCORES_WITH = """\
void {name}_scores_with(const {name}_state *state, const float x[{upper}_N_INPUTS],
    float out[{upper}_N_OUTPUTS])
{{
    outputs_with(state, x, out);
{share}}}
"""
_PREDICT_WITH = """
int {name}_predict_with(const {name}_state *state, const float x[{upper}_N_INPUTS])
{{
    float out[{n}];
    {name}_scores_with(state, x, out);
    return first_of_the_largest(out);
}}
"""


def _public(program: Program, names: dict[str, str | int]) -> str:
    """Scores are a softmax of the state's outputs, also where those of the model's head are shares."""
    if program.classes is None:
        return _SCORES_WITH.format(**names, share="")
    function, before = "probabilities", ""
    if program.loss == "mse":
        function = "softmax"
        softmax = ScoreText(
            "float", "float", "        out[j] = exponential(out[j] - largest);\n", "out[j] /= total;", None
        )
        before = probabilities_function(program.n_outputs, softmax, function)
    scores = _SCORES_WITH.format(**names, share=f"    {function}(out);\n")
    return before + scores + _PREDICT_WITH.format(**names)
