"""The tables of the experiment on readings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..published import printed, published
from ..tables import Table
from .factorial import Effect
from .reading_results import LEVELS, Measured, distance, effects_of, measured
from .reading_study import AROUND, DESIGN
from .readings import keeps_to_the_text

__all__ = ["effect_table", "nearest_table", "out_of_reach_table", "tables_of"]

_METHOD = "HeMLGOP"
_KEEPS, _CONTRADICTS, _OPTIMISTIC = "keeps to the text", "contradicts the text", "decides on test rows"


def tables_of(rows: Sequence[Mapping[str, str]]) -> list[Table]:
    """Effects, the nearest readings, what changes around the predicted one, and figures out of reach."""
    design, around = measured(rows, DESIGN), measured(rows, AROUND)
    tables = [effect_table(design), nearest_table([*design, *around])]
    if around:
        tables.append(around_table(around))
    return [*tables, out_of_reach_table([*design, *around])]


def effect_table(design: Sequence[Measured]) -> Table:
    """What each level changes, in size and accuracy."""
    sizes, accuracies = effects_of(design)
    body = [
        (size.factor, size.level, f"against {LEVELS[size.factor][0]}", _ratio(size), _points(accuracy))
        for size, accuracy in zip(sizes, accuracies, strict=True)
    ]
    head = ("what is open", "level", "", "size is multiplied by", "test accuracy (points)")
    title = f"Main effects of the readings, {len(design)} readings"
    return Table("effects", title, head, tuple(body), "The range in brackets is one standard error.")


def nearest_table(results: Sequence[Measured], n: int = 4) -> Table:
    """The nearest readings of three kinds: they keep to the text, contradict it, or decide on test rows."""
    groups: dict[str, list[Measured]] = {_KEEPS: [], _CONTRADICTS: [], _OPTIMISTIC: []}
    for one in results:
        kind = _KEEPS if keeps_to_the_text(one.reading) else _CONTRADICTS
        groups[_OPTIMISTIC if one.decides_on_test else kind].append(one)
    tables = list(results[0].parameters)
    body = [("as printed", "", "", *(_printed(table) for table in tables))]
    for kind, some in groups.items():
        for one in sorted(some, key=_far)[:n]:
            body.append((_described(one), kind, _distance(one), *(_cell(one, table) for table in tables)))
    head = ("reading", "", "distance", *tables)
    note = (
        "Mean test accuracy and geometric mean of the sizes over splits. What is not named is the first "
        "level of everything."
    )
    return Table("nearest", "The nearest readings", head, tuple(body), note)


def around_table(around: Sequence[Measured]) -> Table:
    """The reading that the design predicts to be nearest, and what one change of it does."""
    centre, tables = around[0], list(around[0].parameters)
    body = [(_described(centre), _distance(centre), *(_cell(centre, table) for table in tables))]
    for one in around[1:]:
        changed = [f"{name}: {level}" for name, level in one.reading.items() if level != centre.reading[name]]
        body.append((", ".join(changed), _distance(one), *(_cell(one, table) for table in tables)))
    title = "Around the reading that the design predicts to be nearest"
    return Table("around", title, ("change", "distance", *tables), tuple(body))


def out_of_reach_table(results: Sequence[Measured]) -> Table:
    """For each table the printed figures, and what the readings come up to."""
    honest = [one for one in results if not one.decides_on_test]
    optimistic = [one for one in results if one.decides_on_test]
    body = []
    for table in honest[0].parameters:
        theirs = published(table, _METHOD)
        means = [one.accuracies()[table] for one in honest]
        runs = [value for one in honest for value in one.accuracy[table]]
        on_test = [one.accuracies()[table] for one in optimistic]
        below = [size for one in honest for size in one.parameters[table]]
        assert theirs.accuracy is not None
        assert theirs.parameters is not None
        small = sum(size <= theirs.parameters + 50 for size in below)
        body.append(
            (
                *(table, f"{100 * theirs.accuracy:.2f}", f"{max(means):.1f}", f"{max(runs):.1f}"),
                f"{max(on_test):.1f}" if on_test else "",
                *(printed(table, _METHOD, "parameters") or "", f"{min(below):,}", f"{small} of {len(below)}"),
            )
        )
    head = (
        *("", "accuracy as printed", "best mean of a reading", "best single run"),
        *("best mean, deciding on test rows", "size as printed", "smallest", "runs as small"),
    )
    return Table("reach", "What no reading reaches", head, tuple(body))


def _described(one: Measured) -> str:
    """What a reading has other than the first levels."""
    changed = [f"{name}: {level}" for name, level in one.reading.items() if level != LEVELS[name][0]]
    return "; ".join(changed) or "the first level of everything"


def _far(one: Measured) -> float:
    return distance(one.log_sizes(), one.accuracies())


def _distance(one: Measured) -> str:
    return f"{_far(one):.2f}"


def _cell(one: Measured, table: str) -> str:
    size = float(np.exp(one.log_sizes()[table]))
    return f"{one.accuracies()[table]:.1f} %, {size:,.0f}"


def _printed(table: str) -> str:
    return f"{printed(table, _METHOD, 'accuracy')} %, {printed(table, _METHOD, 'parameters')}"


def _ratio(effect: Effect) -> str:
    if math.isnan(effect.error):
        return f"{2**effect.effect:.2f}"
    low, high = 2 ** (effect.effect - effect.error), 2 ** (effect.effect + effect.error)
    return f"{2**effect.effect:.2f} ({low:.2f} to {high:.2f})"


def _points(effect: Effect) -> str:
    error = "" if math.isnan(effect.error) else f" ± {effect.error:.1f}"
    return f"{effect.effect:+.1f}{error}"
