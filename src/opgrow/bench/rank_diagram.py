"""The critical-difference diagram: average ranks of models on an axis, and bars over those of one group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from ..network.drawing.svg import clean
from .comparison import CriticalDifference

__all__ = ["draw_critical_difference"]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def draw_critical_difference(ranking: CriticalDifference) -> str:
    """The critical-difference diagram as SVG: the best models on the left, bars join those of one group.

    Lines and letters take the colour of the text around them.
    """
    n_models = len(ranking.ranks)
    length = max(360, 28 * (n_models - 1))
    unit = length / (n_models - 1)
    labels = [f"{_NOT_XML.sub(chr(0xFFFD), name)} ({rank:.2f})" for name, rank in ranking.ranks]
    margin = 24 + 7.5 * max(map(len, labels))  # a generous guess: the reader's font is not known
    width = margin + max(length + margin, ranking.cd * unit + 16)
    x = {name: margin + (rank - 1) * unit for name, rank in ranking.ranks}
    axis, pitch = 62, 18
    bars, levels = _bars(ranking.groups, x)
    first = axis + 20 + 9 * levels
    height = first + pitch * ((n_models - 1) // 2) + 14

    lines = [(margin, 18, margin + ranking.cd * unit, 18), (margin, axis, margin + length, axis)]
    lines += [(end, 13, end, 23) for end in (margin, margin + ranking.cd * unit)]
    lines += [(margin + i * unit, axis - 6, margin + i * unit, axis) for i in range(n_models)]
    texts = [(margin + ranking.cd * unit / 2, 11, "middle", f"CD = {ranking.cd:.2f}")]
    texts += [(margin + i * unit, axis - 10, "middle", str(i + 1)) for i in range(n_models)]
    # The outermost models are labelled highest, so that no line crosses another.
    for i, (name, _) in enumerate(ranking.ranks):
        left = i < (n_models + 1) // 2
        y = first + pitch * (i if left else n_models - 1 - i)
        end = margin - 8 if left else margin + length + 8
        lines += [(x[name], axis, x[name], y), (x[name], y, end, y)]
        texts.append((end - 4 if left else end + 4, y + 4, "end" if left else "start", labels[i]))
    heavy = [(start - 3, axis + 10 + 9 * level, end + 3) for start, end, level in bars]

    title = f"Average ranks of {n_models} models on {ranking.n_datasets} datasets, critical difference"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img" font-family="sans-serif" font-size="12">',
            f"<title>{title} {ranking.cd:.2f}</title>",
            '<g stroke="currentColor" stroke-width="1">',
            *(f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}"/>' for a, b, c, d in lines),
            "</g>",
            '<g stroke="currentColor" stroke-width="4">',
            *(f'<line x1="{a:.1f}" y1="{y:.1f}" x2="{b:.1f}" y2="{y:.1f}"/>' for a, y, b in heavy),
            "</g>",
            '<g fill="currentColor">',
            *(
                f'<text x="{a:.1f}" y="{b:.1f}" text-anchor="{anchor}">{escape(clean(text))}</text>'
                for a, b, anchor, text in texts
            ),
            "</g>",
            "</svg>",
        ]
    )


def _bars(
    groups: Sequence[Sequence[str]], x: Mapping[str, float]
) -> tuple[list[tuple[float, float, int]], int]:
    """Ends and level of a bar for each group, on the first level with room, and the number of levels."""
    bars: list[tuple[float, float, int]] = []
    taken: list[float] = []  # where the last bar of each level ends
    for group in groups:
        start, end = x[group[0]], x[group[-1]]
        level = next((i for i, last in enumerate(taken) if last + 12 < start), len(taken))
        taken[level : level + 1] = [end]
        bars.append((start, end, level))
    return bars, len(taken)
