"""What contributions and changes come to, as sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .changes import Change
from .columns import Axis, number_text
from .subject import Subject

__all__ = ["called", "change_sentence", "contrast", "effect", "headline", "sentences"]

_TOLD = 3
#: A factor beyond which nobody counts.
_MANY = 1e4


def called(label: str) -> str:
    """A class within a sentence, where a bare number could be anything."""
    return f"class {label}" if label.startswith(tuple("-+.0123456789")) else label


def contrast(subject: Subject, raw: np.ndarray) -> tuple[np.ndarray, int, int | None]:
    """What the sentences about a row of outputs are about: weights of the quantities, and two classes.

    Of classes, the predicted one is compared with the one that comes next. Two classes are compared as they
    are, the second with the first, so that sentences on different rows can be compared.
    """
    n = len(subject.quantities)
    weights = np.zeros(n)
    if subject.classes is None:
        weights[0] = 1.0
        return weights, 0, None
    if n == 1:
        weights[0] = 1.0
        return weights, 1, 0
    best, next_best = np.argsort(-raw, kind="stable")[:2].tolist()
    weights[best], weights[next_best] = 1.0, -1.0
    return weights, best, next_best


def headline(subject: Subject, raw: np.ndarray, outputs: np.ndarray, name: str) -> str:
    """What is predicted."""
    if subject.classes is None:
        told = ", ".join(
            f"{quantity.name} {number_text(float(value))}"
            for quantity, value in zip(subject.quantities, outputs, strict=True)
        )
        return f"{name} is predicted to have {told}."
    shares = subject.probabilities(raw[None])
    assert shares is not None
    best = int(shares[0].argmax())
    label = called(subject.classes[best])
    return f"{name} is predicted to be {label}, with a probability of {shares[0, best]:.2f}."


def sentences(
    subject: Subject, axes: Sequence[Axis], texts: Sequence[str], values: np.ndarray, raw: np.ndarray
) -> list[str]:
    """The largest contributions (quantities, columns) to what is predicted, a sentence each."""
    weights, first, second = contrast(subject, raw)
    about = weights @ values
    order = np.argsort(-np.abs(about), kind="stable")[:_TOLD]
    return [
        f"{axes[column].name} {texts[column]} {effect(subject, float(about[column]), first, second)}."
        for column in order.tolist()
        if about[column] != 0
    ]


def effect(subject: Subject, size: float, first: int, second: int | None) -> str:
    """What a contribution does, such as 'raises the odds of yes by a factor of 2.4'."""
    verb = "raises" if size > 0 else "lowers"
    if second is None or subject.classes is None:
        return f"{verb} the prediction of {subject.quantities[first].name} by {number_text(abs(size))}"
    two = len(subject.classes) == 2
    name, other = called(subject.classes[first]), called(subject.classes[second])
    against = "" if two else f" against {other}"
    if subject.quantities[0].unit in ("margin", "share"):
        return f"{verb} the lead of {name} over {other} by {abs(size):.2g}"
    factor = math.exp(min(abs(size), 700.0))
    rounded = float(f"{factor:.2g}")
    by = f"a factor of {rounded:,g}" if factor < _MANY else f"a factor of more than {_MANY:,.0f}"
    if factor < 1.1:
        part = 100 * abs(math.expm1(size))
        by = f"{part:.2g} %" if part >= 0.1 else "less than 0.1 %"
    return f"{verb} the odds of {name}{against} by {by}"


def change_sentence(
    subject: Subject, axes: Sequence[Axis], texts: Sequence[str], change: Change, name: str
) -> str:
    """A change after which another class is predicted."""
    assert subject.classes is not None
    moved = " and ".join(
        f"{axes[column].name} {label} (now {texts[column]})"
        for column, label in zip(change.columns, change.labels, strict=True)
    )
    return f"With {moved}, {name} would be predicted to be {called(subject.classes[change.code])}."
