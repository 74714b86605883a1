"""The public functions of exported C, which turn the outputs of a network into probabilities and labels.

Both kinds of arithmetic have the same functions; they differ in the type of numbers and in how these are
exponentiated and divided.
"""

from __future__ import annotations

from dataclasses import dataclass

from .program import Program

__all__ = ["ScoreText", "public_functions"]

_NORMALISED = """\
{declarations}    outputs(x, out);
    largest = out[0];
    for (int j = 1; j < {n}; j++) {{
        largest = out[j] > largest ? out[j] : largest;
    }}
    for (int j = 0; j < {n}; j++) {{
{positive}        total += out[j];
    }}
    for (int j = 0; j < {n}; j++) {{
        {divide}
    }}
"""
_PREDICT = """
int {name}_predict(const {number} x[{upper}_N_INPUTS])
{{
    {number} out[{n}];
    int best = 0;
    {name}_scores(x, out);
    for (int j = {first}; j < {n}; j++) {{
{unknown}        best = out[j] > out[best] ? j : best;
    }}
    return best;
}}
"""


@dataclass(frozen=True)
class ScoreText:
    """What differs between floats and integers, as lines of C.

    Attributes
    ----------
    number : type of inputs and outputs
    declarations : of ``largest`` and ``total``
    positive : makes ``out[j]`` positive, by an exponential or, for squared errors, where it is not
    divide : divides ``out[j]`` by ``total``
    unknown : returns from the function that names a class if ``out[j]`` is NaN, which integers never are
    """

    number: str
    declarations: str
    positive: str
    divide: str
    unknown: str = ""


def public_functions(program: Program, name: str, text: ScoreText) -> str:
    """``NAME_scores`` and, for classifiers, ``NAME_predict``."""
    n, upper = program.n_outputs, name.upper()
    body, predict = "    outputs(x, out);\n", ""
    if program.classes is not None:
        parts = {"declarations": text.declarations, "positive": text.positive, "divide": text.divide}
        body = _NORMALISED.format(n=n, **parts)
        first = 0 if text.unknown else 1
        names = {"name": name, "upper": upper, "number": text.number}
        predict = _PREDICT.format(n=n, first=first, unknown=text.unknown, **names)
    inputs, outputs = f"{text.number} x[{upper}_N_INPUTS]", f"{text.number} out[{upper}_N_OUTPUTS]"
    return f"void {name}_scores(const {inputs},\n    {outputs})\n{{\n{body}}}\n{predict}"
