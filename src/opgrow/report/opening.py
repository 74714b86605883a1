"""The first words of a report, for somebody who was sent it and knows nothing of networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..growth.model import GrownModel
from .html import escape, paragraph
from .quality import ClassQuality, NumberQuality

__all__ = ["heading", "opening_parts"]

#: Classes and columns that are named; more of them are counted.
_NAMED = 4
_LEADING = 3


def heading(target: str | None, classes: Sequence[str] | None) -> str:
    """What the network is for, such as "A network that predicts price"."""
    if target:
        return f"A network that predicts {target}"
    if classes is None:
        return "A network that predicts numbers"
    return f"A network that tells {_classes(classes)} apart"


def opening_parts(
    estimator: GrownModel,
    words: str,
    classes: Sequence[str] | None,
    quality: ClassQuality | NumberQuality | None,
    rows: str,
    explanation: dict[str, Any] | None,
) -> list[str]:
    """The heading, what the network reads and says, how often that is right, and what this page is.

    Parameters
    ----------
    estimator : a fitted estimator
    words : the heading
    classes : names of the classes, or None for numbers
    quality : on the rows that were given, if any
    rows : what these rows are
    explanation : of `live.explained`, if there is one
    """
    network = estimator.network_
    about = (
        f"{type(estimator).__name__}, a network of the topology {network.topology()} with "
        f"{network.n_parameters():,} parameters. This page is one file: what you do in it is sent nowhere."
    )
    told = [_reads(estimator, classes, explanation), _verdict(quality, rows)]
    return [
        f"<h1>{escape(words)}</h1>",
        paragraph(" ".join(sentence for sentence in told if sentence)),
        paragraph(about, "note"),
    ]


def _reads(estimator: GrownModel, classes: Sequence[str] | None, explanation: dict[str, Any] | None) -> str:
    table = estimator.table_
    n = estimator.network_.n_inputs if table is None else table.n_features_in_
    says = "a number" if classes is None else f"how probable each of {_classes(classes)} is"
    if classes is None and estimator.network_.n_outputs > 1:
        says = f"{estimator.network_.n_outputs} numbers"
    sentence = f"From {n:,} {'input' if n == 1 else 'inputs'} it computes {says}"
    leading = [] if explanation is None else explanation["importance"][:_LEADING]
    if explanation is None or n <= _LEADING or len(leading) < _LEADING:
        return f"{sentence}."
    names = [explanation["columns"][one["column"]]["name"] for one in leading]
    return f"{sentence}. Most depends on {_listed(names)}."


def _verdict(quality: ClassQuality | NumberQuality | None, rows: str) -> str:
    if isinstance(quality, ClassQuality):
        right, most = (100 * quality.scores[name] for name in ("accuracy", "most_frequent"))
        return (
            f"On {len(quality.codes):,} {rows}, it is right in {right:.1f} % of all cases; always saying "
            f"the most frequent class would be right in {most:.1f} %."
        )
    if isinstance(quality, NumberQuality):
        n, targets = quality.values.shape
        off = f"is off by {quality.scores['mae']:,.4g} on average, and " if targets == 1 else ""
        r2 = f"{quality.scores['r2']:.3f} (1 is perfect; always saying the mean has 0)"
        return f"On {n:,} {rows}, it {off}has an R2 of {r2}."
    return ""


def _classes(names: Sequence[str]) -> str:
    return f"the classes {_listed(names)}" if len(names) <= _NAMED else f"{len(names):,} classes"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
