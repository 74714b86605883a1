"""The drawing of a network: layers as columns, every neuron a mark in the colour of its operator set.

The marks have titles, which name a neuron's operators and its place, and are the larger the more the network
relies on the neuron. Weights are drawn as bundles: a line for
each would make a grey surface. One drawing serves notebooks, reports and files.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

from ...common.atomic import write_atomically
from ..blocks import Block
from ..structure import Structure
from .bundles import bundles
from .layout import HEADER, MANY, Box, Column, Places, places_of
from .neurons import Names, input_text, neuron_texts, output_text, spaced, strengths
from .svg import GREY, counted, picture, shades, shortened, text, title

__all__ = ["Drawing", "draw"]

_LINEAR = "linear head"
_EDGE = 12
_LABEL = 20  # characters of a name that are written
_SMALL = ' font-size="11" fill-opacity="0.75"'
_DARK = "<style>svg{color:#222}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>"


@dataclass(frozen=True)
class Drawing:
    """A picture of a network, which notebooks show and `save` writes.

    Attributes
    ----------
    svg : str
        The picture, as an SVG element for HTML pages; its text has the colour of the page's text.
    topology : str
        Widths from input to output, such as "8-60-2".
    """

    svg: str
    topology: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to an ``.svg`` file, for light and dark pages."""
        if not os.fspath(path).lower().endswith(".svg"):
            raise ValueError(f"A drawing is written to a file that ends in .svg, got {os.fspath(path)!r}.")
        head, rest = self.svg.split(">", 1)
        # Pages fit a drawing to their width; a file says how large it is.
        width, height = re.findall(r'viewBox="0 0 (\S+) (\S+)"', head)[0]
        head = re.sub(r'style="[^"]*"', f'width="{width}" height="{height}"', head)
        write_atomically(path, f"{head}>{_DARK}{rest}\n".encode())

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto; max-width: 100%">{self.svg}</div>'

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({self.topology})"


def draw(
    network: Structure,
    *,
    feature_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    members: Sequence[int] | None = None,
) -> Drawing:
    """Draw a network.

    Parameters
    ----------
    network : Network
    feature_names, output_names : sequences of str, optional
        Names of the inputs and of the outputs (the classes, say).
    members : sequence of int, optional
        For the average of networks with one layer: to which of them, from 1, each block belongs. An average
        of deeper ones knows that itself.

    Examples
    --------
    >>> from opgrow import PERCEPTRON, Block, Layer, Network
    >>> from opgrow.report import draw
    >>> drawing = draw(Network(3, 2, [Layer([Block(3, 4, PERCEPTRON)])]), output_names=["no", "yes"])
    >>> drawing
    Drawing(3-4-2)
    >>> "multiplication / sum / sigmoid" in drawing.svg
    True
    """
    names = Names.of(network, feature_names, output_names)
    shown = names.inputs if names.inputs is not None and network.n_inputs <= MANY else []
    left = _EDGE + max(36, *(width_of(shortened(name, _LABEL)) + 8 for name in shown), 0)
    places = places_of(network, left, members)
    legend = _legend_of(network)
    colours = dict(zip(legend, shades(len(legend)), strict=True)) | {_LINEAR: GREY}
    keys = dict(zip(legend, map(_letters, range(len(legend))), strict=True))
    radii = _radii(network, places.pitch)
    parts = [
        *bundles(network, places, colours),
        *_inputs(network, names, places),
        *(
            part
            for number, column in enumerate(places.layers, 1)
            for part in _layer(network, names, number, column, colours, keys, radii[number - 1])
        ),
        *_head(network, names, places, colours),
    ]
    shown = names.outputs if names.outputs is not None and network.n_outputs <= MANY else []
    right = max((places.head.right + 6 + width_of(shortened(name, _LABEL)) for name in shown), default=0)
    width = max(right, places.head.middle + 40) + _EDGE
    passes_layers = any(span.layer + 1 < len(places.layers) for span in network.head_spans())
    bottom = places.bottom + (56 if passes_layers else 22)
    drawn, width, bottom = _legend(legend, colours, keys, max(width, 420), bottom)
    style = f"width: {width:.0f}px; max-width: 100%; min-width: {min(0.85 * width, 820):.0f}px; height: auto"
    label = f' aria-label="A network of the topology {network.topology()}"'
    return Drawing(picture(width, bottom, [*parts, *drawn], style, label), network.topology())


# --- legend ---


def _legend_of(network: Structure) -> dict[str, str]:
    """Operator sets in order of appearance, and how many neurons have them; the head comes last."""
    counts: dict[str, int] = {}
    for layer in network.layers:
        for block in layer:
            name = str(block.operator_set)
            counts[name] = counts.get(name, 0) + block.n_neurons
    legend = {name: counted(n, "neuron") for name, n in counts.items()}
    outputs = counted(network.n_outputs, "output")
    if isinstance(network.head, Block):
        name = str(network.head.operator_set)
        legend[name] = f"{legend[name]}, {outputs}" if name in legend else outputs
    return legend


def _legend(
    legend: dict[str, str], colours: dict[str, str], keys: dict[str, str], width: float, top: float
) -> tuple[list[str], float, float]:
    """The legend below the drawing, in as many columns as fit; and the size of both together."""
    entries = [(keys[name], colours[name], spaced(name), count) for name, count in legend.items()]
    room = max((width_of(f"{key} {name}  {count}") + 44 for key, _, name, count in entries), default=0)
    width = max(width, room + 2 * _EDGE)
    columns = max(1, int((width - 2 * _EDGE) // room)) if entries else 1
    rows = -(-len(entries) // columns)
    parts = []
    for i, (key, colour, name, count) in enumerate(entries):
        x, y = _EDGE + (i // rows) * room, top + 20 * (i % rows) + 10
        parts.append(f'<circle cx="{x + 6:.1f}" cy="{y - 4:.1f}" r="6" fill="{colour}"/>')
        count = f'<tspan fill-opacity="0.7"> {count}</tspan>'
        more = f'<tspan font-weight="600">{key}</tspan> {escape(name)} {count}'
        parts.append(f'<text x="{x + 18:.1f}" y="{y:.1f}" fill="currentColor">{more}</text>')
    return parts, width, top + 20 * rows + 4


def _letters(i: int) -> str:
    """A to Z, AA to ZZ, and so on."""
    before = _letters(i // 26 - 1) if i >= 26 else ""
    return before + chr(ord("A") + i % 26)


# --- columns ---


def _inputs(network: Structure, names: Names, places: Places) -> list[str]:
    box = places.inputs
    parts = _caption(box, "inputs", f"{network.n_inputs:,}")
    if not places.input_dots:
        words = title(input_text(network, names))
        return [*parts, f'<rect class="mark" {_rect(box)} rx="4" fill="{GREY}">{words}</rect>']
    for i, (x, y) in enumerate(places.input_dots):
        words = title(input_text(network, names, i))
        square = _rect(Box(x - 5, y - 5, 10, 10))
        parts.append(f'<rect class="mark" {square} rx="2" fill="{GREY}">{words}</rect>')
        if names.inputs is not None:
            parts.append(text(box.x - 6, y + 4, shortened(names.inputs[i], _LABEL), "end"))
    return parts


def _layer(
    network: Structure,
    names: Names,
    number: int,
    column: Column,
    colours: dict[str, str],
    keys: dict[str, str],
    radii: list[list[float]],
) -> list[str]:
    n_neurons = network.layers[number - 1].n_neurons
    parts = _caption(column.box, f"layer {number}", counted(n_neurons, "neuron"))
    if not column.one_stack:
        frame = 'rx="8" fill="none" stroke="currentColor" stroke-opacity="0.25"'
        parts.append(f"<rect {_rect(column.outline)} {frame}/>")
    parts += [text(x, y, f"network {n}", "middle", _SMALL) for x, y, n in column.names]
    for placed in column.blocks:
        name = str(placed.block.operator_set)
        box = placed.box
        parts.append(
            f'<rect {_rect(box)} rx="6" fill="{colours[name]}" fill-opacity="0.08" '
            f'stroke="{colours[name]}" stroke-opacity="0.5"/>'
        )
        header = f"{keys[name]} · {placed.block.n_neurons}"
        parts.append(text(box.middle, box.y + HEADER - 3, header, "middle", _SMALL))
        words = neuron_texts(network, names, number, placed.number, placed.member)
        parts.append(_dots(placed.dots, words, colours[name], radii[placed.number - 1]))
    return parts


def _radii(network: Structure, pitch: float) -> list[list[list[float]]]:
    """Of each neuron of each block of each layer: areas grow with how much the network relies on it."""
    least = 0.2 if pitch > 8 else 0.3
    return [
        [(0.47 * pitch * np.sqrt(least + (1 - least) * part)).tolist() for part in layer]
        for layer in strengths(network)
    ]


def _head(network: Structure, names: Names, places: Places, colours: dict[str, str]) -> list[str]:
    name = _head_name(network)
    parts = [
        *_caption(places.head, _LINEAR if name == _LINEAR else "head", counted(network.n_outputs, "output"))
    ]
    words = [output_text(network, names, i) for i in range(network.n_outputs)]
    few = network.n_outputs <= MANY
    radius = 6 if few else 0.38 * places.pitch
    parts.append(_dots(places.output_dots, words, colours[name], [radius] * network.n_outputs))
    if few and names.outputs is not None:
        parts += [
            text(places.head.right + 6, y + 4, shortened(label, _LABEL))
            for label, (_, y) in zip(names.outputs, places.output_dots, strict=True)
        ]
    return parts


def _head_name(network: Structure) -> str:
    return str(network.head.operator_set) if isinstance(network.head, Block) else _LINEAR


def _dots(
    dots: Sequence[tuple[float, float]], words: Sequence[str], colour: str, radii: Sequence[float]
) -> str:
    marks = (
        f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">{title(line)}</circle>'
        for (x, y), line, radius in zip(dots, words, radii, strict=True)
    )
    return f'<g fill="{colour}">{"".join(marks)}</g>'


def _caption(box: Box, name: str, count: str) -> list[str]:
    return [
        text(box.middle, 14, name, "middle", ' font-weight="600"'),
        text(box.middle, 29, count, "middle", _SMALL),
    ]


# --- words ---


def _rect(box: Box) -> str:
    return f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'


def width_of(words: str) -> float:
    """About how wide a text of 12 pixels is."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in words)
    return 6.6 * (len(words) + wide)
