"""A small network as a formula, to read and to compute with: as text that numpy evaluates, and as LaTeX.

Batch norms are part of the weights that read them, and so are, where that loses no digits, the constants that
standardise the inputs. Weights are rounded to significant digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...common.checks import check_integer
from ...export.program import Program, program_of
from ...growth.model import GrownModel
from .formula_steps import head_lines, input_lines, layer_lines
from .formula_writing import LATEX, TEXT, Style, identifiers
from .subject import Subject

__all__ = ["Formula", "formula", "short_formula"]

#: Parameters from which on nobody reads a formula.
_MOST = 500
#: Parameters of a network whose formula is part of an explanation's data, and its digits.
_SHORT, _DIGITS = 200, 4


@dataclass(frozen=True)
class Formula:
    """A network as a formula.

    Attributes
    ----------
    text : assignments that numpy's functions evaluate, from ``inputs`` to ``outputs``
    latex : the same as LaTeX
    digits : significant digits of the numbers
    inputs : names in the formula, and the inputs of the network that they are
    outputs : names of what comes out: what ``decision_function`` or ``predict`` return
    """

    text: str
    latex: str
    digits: int
    inputs: dict[str, str]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def _repr_latex_(self) -> str:
        return f"$${self.latex}$$"


def formula(estimator: Any, digits: int = 4, *, max_parameters: int = _MOST) -> Formula:
    """The network of a fitted estimator as a formula.

    Parameters
    ----------
    estimator : a fitted estimator of this package
    digits : int, default=4
        Significant digits of the numbers.
    max_parameters : int, default=500
        Larger networks are refused.

    Returns
    -------
    Formula

    Examples
    --------
    >>> import numpy as np
    >>> from opgrow import PMLPRegressor
    >>> from opgrow.report import formula
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1))
    >>> model = PMLPRegressor(widths=(3,), random_state=0)
    >>> shown = formula(model.fit(X, np.tanh(X[:, 0])), digits=6)
    >>> names = vars(np) | {"x0": X[:, 0]}
    >>> exec(shown.text, names)
    >>> bool(abs(names[shown.outputs[0]] - model.predict(X)).max() < 1e-3)
    True
    """
    if not isinstance(estimator, GrownModel):
        raise TypeError(f"Only opgrow's own estimators have formulas, got {type(estimator).__name__}.")
    check_integer("digits", digits, 1)
    check_integer("max_parameters", max_parameters, 1)
    n_parameters = estimator.network_.n_parameters()
    if n_parameters > max_parameters:
        raise ValueError(
            f"The network has {n_parameters:,} parameters, and a formula at most {max_parameters:,}: grow a "
            "smaller one, as with max_parameters, or raise max_parameters of formula."
        )
    program, subject = program_of(estimator), Subject(estimator)
    missing = _unwritten(program)
    if missing:
        raise ValueError(
            f"There is no formula, as the operator {missing!r} was registered without text=... and latex=..."
        )
    if subject.classes is not None and len(subject.quantities) > 1:
        names, mix = subject.classes, np.eye(program.n_outputs)  # what decision_function returns
    else:
        names, mix = [quantity.name for quantity in subject.quantities], subject.mix
    features = program.features or [f"x{i}" for i in range(program.n_inputs)]
    inputs = identifiers(features)
    outputs = identifiers(names, taken=inputs)
    columns, results = (features, inputs), (names, outputs)
    return Formula(
        _written(TEXT, program, digits, columns, results, mix),
        _written(LATEX, program, digits, columns, results, mix),
        digits,
        dict(zip(inputs, features, strict=True)),
        tuple(outputs),
    )


def _written(
    style: Style,
    program: Program,
    digits: int,
    features: tuple[list[str], list[str]],
    outputs: tuple[list[str], list[str]],
    mix: np.ndarray,
) -> str:
    inputs = [style.variable(name, shown) for shown, name in zip(*features, strict=True)]
    lines, names, program = input_lines(style, program, digits, inputs)
    seen = [names]
    for number in range(len(program.layers)):
        more, names = layer_lines(style, program, digits, number, names)
        lines += more
        seen.append(names)
    results = [style.variable(name, shown) for shown, name in zip(*outputs, strict=True)]
    lines += head_lines(style, program, digits, seen, results, mix)
    return style.joined(lines)


def _unwritten(program: Program) -> str | None:
    """An operator without text or LaTeX, or without a known pool."""
    for step in program.steps:
        nodal, pool, activation = step.operators.operators
        for operator in (nodal, activation):
            if operator.text is None or operator.latex is None:
                return operator.name
        if pool.window is None and pool.name != "maximum":
            return pool.name
    return None


def short_formula(estimator: Any) -> dict[str, Any] | None:
    """The formula of a network that is small enough to be read, as plain data; else None."""
    if estimator.network_.n_parameters() > _SHORT or _unwritten(program_of(estimator)) is not None:
        return None
    shown = formula(estimator, _DIGITS)
    return {"text": shown.text, "latex": shown.latex, "digits": shown.digits}
