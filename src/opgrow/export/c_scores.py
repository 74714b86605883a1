"""The public functions of exported C, which turn the outputs of a network into probabilities and labels.

Both kinds of arithmetic have the same functions; they differ in the type of numbers and in how these are
exponentiated and divided. A class is named from the outputs, without an exponential, unless two of them are
so close that their probabilities may be rounded to the same number.
"""

from __future__ import annotations

from dataclasses import dataclass

from .program import Program

__all__ = ["ScoreText", "public_functions"]

_PROBABILITIES = """\
static void probabilities({number} *out)
{{
    {number} largest = out[0];
    {total} total = 0;
    for (int j = 1; j < {n}; j++) {{
        largest = out[j] > largest ? out[j] : largest;
    }}
    for (int j = 0; j < {n}; j++) {{
{positive}        total += out[j];
    }}
    for (int j = 0; j < {n}; j++) {{
        {divide}
    }}
}}

"""
_PREDICT = """
static int first_of_the_largest(const {number} *out)
{{
    int best = 0;
    for (int j = {first}; j < {n}; j++) {{
{unknown}        best = out[j] > out[best] ? j : best;
    }}
    return best;
}}

int {name}_predict(const {inputs} x[{upper}_N_INPUTS])
{{
    {number} out[{n}];
    int best;
    outputs(x, out);
    best = first_of_the_largest(out);
{certain}    probabilities(out);
    return first_of_the_largest(out);
}}
"""
_CERTAIN = """\
    for (int j = 0; j < {n}; j++) {{
        if (best >= 0 && j != best && {close}) {{
            best = -1; /* The probabilities decide. */
        }}
    }}
    if (best >= 0) {{
        return best;
    }}
"""


@dataclass(frozen=True)
class ScoreText:
    """What differs between floats and integers, as lines of C.

    Attributes
    ----------
    number, total : types of inputs and outputs, and of the sum of these
    positive : makes ``out[j]`` positive, by an exponential or, for squared errors, where it is not
    divide : divides ``out[j]`` by ``total``
    close : whether ``out[j]`` may have the probability of ``out[best]``; None where it is as quick to look
    unknown : returns from the function that names a class if ``out[j]`` is NaN, which integers never are
    sample : type of inputs, where it is another
    """

    number: str
    total: str
    positive: str
    divide: str
    close: str | None
    unknown: str = ""
    sample: str | None = None

    @property
    def inputs(self) -> str:
        return self.sample or self.number


def public_functions(program: Program, name: str, text: ScoreText) -> str:
    """``NAME_scores`` and, for classifiers, ``NAME_predict``."""
    n, upper = program.n_outputs, name.upper()
    before, body, predict = "", "    outputs(x, out);\n", ""
    if program.classes is not None:
        parts = {"number": text.number, "total": text.total, "positive": text.positive, "divide": text.divide}
        before = _PROBABILITIES.format(n=n, **parts)
        body += "    probabilities(out);\n"
        certain = "" if text.close is None else _CERTAIN.format(n=n, close=text.close)
        predict = _PREDICT.format(
            n=n,
            name=name,
            upper=upper,
            number=text.number,
            inputs=text.inputs,
            first=0 if text.unknown else 1,
            unknown=text.unknown,
            certain=certain,
        )
        if not certain:
            predict = predict.replace("    int best;\n", "").replace(
                "    best = first_of_the_largest(out);\n", ""
            )
    inputs, outputs = f"{text.inputs} x[{upper}_N_INPUTS]", f"{text.number} out[{upper}_N_OUTPUTS]"
    return f"{before}void {name}_scores(const {inputs},\n    {outputs})\n{{\n{body}}}\n{predict}"
