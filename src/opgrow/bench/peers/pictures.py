"""Pictures with one row for each table: what was grown on it, and how two models differ on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...network.drawing.svg import COLOURS, picture, short, text, title
from .models import DEFAULT, PERCEPTRONS
from .summary import Summary, score

__all__ = ["bars_by_row", "difference_picture", "structure_picture"]

_NAMES, _PANEL, _GAP, _ROW, _TOP = 170, 200, 24, 16, 30
#: Least, mean and greatest value.
Range = tuple[float, float, float]


def structure_picture(summary: Summary) -> str | None:
    """Blocks, layers and distinct operator sets of the default on each table: mean and range over splits."""
    if DEFAULT not in summary.models:
        return None
    labels = {"blocks": "blocks", "layers": "layers", "operator_sets": "distinct operator sets"}
    panels = {
        label: [_range(summary.values(DEFAULT, table, what)) for table in summary.tables]
        for what, label in labels.items()
    }
    return bars_by_row(list(summary.tables), panels)


def difference_picture(summary: Summary) -> str | None:
    """The default's score less that of perceptrons alone on each table, the greatest gain first."""
    if not {DEFAULT, PERCEPTRONS} <= set(summary.models):
        return None
    ranges = {
        table: _range(
            100 * (summary.values(DEFAULT, table, score) - summary.values(PERCEPTRONS, table, score))
        )
        for table in summary.tables
    }
    names = sorted((name for name in ranges if np.isfinite(ranges[name][1])), key=lambda n: -ranges[n][1])
    return bars_by_row(names, {"difference in points": [ranges[name] for name in names]}) if names else None


def _range(values: np.ndarray) -> Range:
    known = values[~np.isnan(values)]
    if not len(known):
        return (float("nan"),) * 3
    return float(known.min()), float(known.mean()), float(known.max())


def bars_by_row(names: Sequence[str], panels: Mapping[str, Sequence[Range]]) -> str:
    """Bars from zero to the mean with a line over the range: a row a name, a panel a quantity."""
    parts = [text(_NAMES - 8, _TOP + _ROW * (i + 0.75), name, "end") for i, name in enumerate(names)]
    for number, (label, ranges) in enumerate(panels.items()):
        left = _NAMES + number * (_PANEL + _GAP)
        finite = [value for one in ranges for value in one if np.isfinite(value)]
        low, high = min([0.0, *finite]), max([0.0, *finite])
        unit = _PANEL / ((high - low) or 1.0)
        zero = left - low * unit
        parts.append(text(left + _PANEL / 2, 14, f"{label} ({short(low)} to {short(high)})", "middle"))
        bottom = _TOP + _ROW * len(names)
        parts.append(f'<path d="M{zero:.1f} {_TOP}V{bottom}" stroke="currentColor" stroke-opacity="0.4"/>')
        for row, (name, (least, mean, greatest)) in enumerate(zip(names, ranges, strict=True)):
            if not np.isfinite(mean):
                continue
            y, at = _TOP + _ROW * row, zero + mean * unit
            words = f"{name}: {label} {short(mean)} ({short(least)} to {short(greatest)})"
            parts.append(
                f'<rect x="{min(zero, at):.1f}" y="{y + 3}" width="{abs(at - zero):.1f}" height="{_ROW - 6}" '
                f'fill="{COLOURS[0 if mean >= 0 else 1]}" fill-opacity="0.8">{title(words)}</rect>'
            )
            ends = f"M{zero + least * unit:.1f} {y + _ROW / 2}H{zero + greatest * unit:.1f}"
            parts.append(f'<path d="{ends}" stroke="currentColor" stroke-width="1.5"/>')
    width = _NAMES + len(panels) * (_PANEL + _GAP)
    return picture(width, _TOP + _ROW * len(names) + 8, parts)
