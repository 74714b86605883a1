"""The function of a float program that makes the head's outputs of raw inputs.

Where the program learns on, the features that the head sees are a function of their own, ``features``: heads
that change read them as well.
"""

from __future__ import annotations

from .buffers import buffers, route
from .c_float_steps import call
from .program import Program

__all__ = ["for_each", "outputs_function", "outputs_of_features"]

_NAN = "out[j] = float_of(UINT32_C(0x7fc00000)); /* NaN */"


def outputs_function(program: Program, scaled: bool) -> str:
    """From raw inputs to the head's outputs."""
    # Not every pool reads every input.
    unknown = [*(f"    {line}" for line in for_each("j", program.n_outputs, _NAN)), "    return;"]
    lines, head_source = _layers(program, scaled, unknown)
    if program.limits_features and head_source == "x":  # which is the caller's
        n = program.n_inputs
        lines += [f"float seen[{n}];", *for_each("k", n, "seen[k] = x[k];")]
        head_source = "seen"
    lines += _within_limits(program, head_source)
    lines.append(call(program.head, "head", head_source, "out", scaled))
    name = "outputs" if program.window is None else "network_outputs"
    return _function(f"static void {name}(const float *x, float *out)", [*lines, *_limited(program)])


def outputs_of_features(program: Program, scaled: bool) -> str:
    """From raw inputs to the head's features, and from these to its outputs."""
    n = program.head.n_inputs
    lines, head_source = _layers(program, scaled, ["    return 0;"])
    lines += [*for_each("k", n, f"seen[k] = ({head_source})[k];"), "return 1;"]
    comment = "/* What the head sees; returns whether no input is NaN. */\n"
    features = _function("static int features(const float *x, float *seen)", lines)
    unknown = [f"    {line}" for line in for_each("j", program.n_outputs, _NAN)]
    lines = [f"float seen[{n}];", "if (!features(x, seen)) {", *unknown, "    return;", "}"]
    lines += _within_limits(program, "seen")
    lines += [call(program.head, "head", "seen", "out", scaled), *_limited(program)]
    return f"{comment}{features}\n" + _function("static void outputs(const float *x, float *out)", lines)


def _layers(program: Program, scaled: bool, unknown: list[str]) -> tuple[list[str], str]:
    """Statements that compute all layers, with what is done where an input is NaN; where the head reads."""
    lines = [f"float {key}[{size}];" for key, size in buffers(program, program.changes_input).items()]
    source = "x"
    if program.head_sees_input or program.changes_input:
        source = "b" if program.head_sees_input else "a"
    check = f"read_inputs(x, {source})" if program.changes_input else "known(x)"
    lines += [f"if (!{check}) {{", *unknown, "}"]
    if program.head_sees_input and not program.changes_input:
        lines += for_each("i", program.n_inputs, "b[i] = x[i];")
    places, head_source = route(program, source)
    for number, layer in enumerate(program.layers):
        for j, (step, (reads, writes)) in enumerate(zip(layer, places[number], strict=True), 1):
            lines.append(call(step, f"{number + 1}_{j}", reads, writes, scaled))
    return lines, head_source


def _within_limits(program: Program, source: str) -> list[str]:
    """Statements that keep what the head reads within the limits that a program may have."""
    if not program.limits_features:
        return []
    return for_each(
        "k",
        program.head.n_inputs,
        f"float *seen_k = {source} + k;",
        "const float low = FLOAT_AT(head_low + k), high = FLOAT_AT(head_high + k);",
        "*seen_k = *seen_k < low ? low : *seen_k > high ? high : *seen_k;",
    )


def _limited(program: Program) -> list[str]:
    """Statements that keep outputs within the limits that a program may have."""
    if program.output_low is None:
        return []
    return for_each(
        "j",
        program.n_outputs,
        "const float low = FLOAT_AT(output_low + j), high = FLOAT_AT(output_high + j);",
        "out[j] = out[j] < low ? low : out[j] > high ? high : out[j];",
    )


def for_each(index: str, count: int, *body: str) -> list[str]:
    """Lines of a loop."""
    inner = [f"    {line}" for line in body]
    return [f"for (int {index} = 0; {index} < {count}; {index}++) {{", *inner, "}"]


def _function(signature: str, lines: list[str]) -> str:
    return f"{signature}\n{{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"
