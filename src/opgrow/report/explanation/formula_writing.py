"""How formulas are written: as text for numpy, and as LaTeX."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...operators import OperatorSet
from ...operators.kinds import stated

__all__ = ["LATEX", "TEXT", "Style", "identifiers"]

#: Names that formulas use themselves.
_USED = (
    "abs",
    "clip",
    "exp",
    "expm1",
    "log",
    "logaddexp",
    "maximum",
    "minimum",
    "sin",
    "sqrt",
    "tanh",
    "where",
)


def identifiers(names: Iterable[str], taken: Sequence[str] = ()) -> list[str]:
    """A Python name for each of some texts, each of them another."""
    result: list[str] = []
    for text in names:
        name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "column"
        if (
            name[0].isdigit()
            or keyword.iskeyword(name)
            or name in _USED
            or re.fullmatch(r"[zshn]\d.*|[zshn]", name)
        ):
            name = f"_{name}"
        number, first = 2, name
        while name in result or name in taken:
            name, number = f"{first}_{number}", number + 1
        result.append(name)
    return result


@dataclass(frozen=True)
class Style:
    """Text or LaTeX."""

    is_latex: bool

    def number(self, value: float, digits: int) -> str:
        """A number in significant digits."""
        text = f"{value:.{min(digits, 17)}g}"
        text = "0" if float(text) == 0 else text
        if self.is_latex and "e" in text:
            mantissa, exponent = text.split("e")
            return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
        return text

    def variable(self, name: str, shown: str) -> str:
        """An input or output, by its name in formulas or by that which people know."""
        if not self.is_latex:
            return name
        escaped = re.sub(r"([_%&#${}])", r"\\\1", re.sub(r"[\\^~\s]+", " ", shown))
        spaced = escaped.replace(" ", r"\ ")
        return rf"\mathrm{{{spaced}}}"

    def symbol(self, letter: str, *numbers: int) -> str:
        """A variable of the formula's own."""
        if self.is_latex:
            return f"{letter}_{{{','.join(map(str, numbers))}}}"
        return letter + "_".join(map(str, numbers))

    def times(self, factor: str, what: str) -> str:
        return rf"{factor}\,{what}" if self.is_latex else f"{factor} * {what}"

    def assigned(self, name: str, value: str) -> str:
        return f"{name} &= {value}" if self.is_latex else f"{name} = {value}"

    def joined(self, lines: Sequence[str]) -> str:
        if self.is_latex:
            return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"
        return "\n".join(lines)

    def summed(self, terms: Sequence[str]) -> str:
        """A sum, in which what is negative is subtracted; 0 without terms."""
        text = ""
        for term in terms:
            if not text:
                text = term
            else:
                text += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
        return text or "0"

    def standardized(self, name: str, center: str, scale: str) -> str:
        minus = f"{name} + {center[1:]}" if center.startswith("-") else f"{name} - {center}"
        return rf"\frac{{{minus}}}{{{scale}}}" if self.is_latex else f"({minus}) / {scale}"

    def squashed(self, z: str, bound: str) -> str:
        if self.is_latex:
            return rf"\frac{{{z}}}{{\sqrt{{1 + \left({z} / {bound}\right)^2}}}}"
        return f"{z} / sqrt(1 + ({z} / {bound})**2)"

    def psi(self, operators: OperatorSet, y: str, weight: float, digits: int, largest: float | None) -> str:
        """The nodal operator; exponents are not bounded where inputs of at most ``largest`` need no bound."""
        nodal = operators.nodal_operator
        names = {"y": y, "w": self.number(weight, digits), "minus_w": self.number(-weight, digits)}
        if self.is_latex:
            return stated(nodal.latex).format(**names)
        needless = largest is not None and abs(weight) * max(largest, largest**2) < 9
        bounds = {"clip": "", "end": ""} if needless else {"clip": "clip(", "end": ", -10, 10)"}
        return stated(nodal.text).format(**names, **bounds)

    def product(self, factors: Sequence[str]) -> str:
        if self.is_latex:
            return "".join(rf"\left({factor}\right)" for factor in factors)
        return " * ".join(f"({factor})" for factor in factors)

    def largest(self, terms: Sequence[str]) -> str:
        if self.is_latex:
            return rf"\max\left({', '.join(terms)}\right)"
        return f"maximum.reduce([{', '.join(terms)}])"

    def length(self, names: Sequence[str]) -> str:
        if self.is_latex:
            return rf"\sqrt{{{' + '.join(f'{name}^2' for name in names)}}}"
        return f"sqrt({' + '.join(f'{name}**2' for name in names)})"

    def scaled(self, name: str, length: str) -> str:
        if self.is_latex:
            return rf"{name} / {length}"
        return f"{name} / where({length} == 0, 1, {length})"

    def limited(self, value: str, low: str, high: str) -> str:
        if self.is_latex:
            return rf"\min\left({high}, \max\left({low}, {value}\right)\right)"
        return f"clip({value}, {low}, {high})"

    def activated(self, operators: OperatorSet, x: str) -> str:
        activation = operators.activation_operator
        return stated(activation.latex if self.is_latex else activation.text).format(x=x)

    def repeats(self, operators: OperatorSet) -> bool:
        """Whether the activation names its argument more than once, so that it needs a name."""
        activation = operators.activation_operator
        return stated(activation.latex if self.is_latex else activation.text).count("{x}") > 1


TEXT, LATEX = Style(is_latex=False), Style(is_latex=True)
