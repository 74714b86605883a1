"""The weights of a network as bundles: ribbons between its columns, whose titles say how many they are."""

from __future__ import annotations

from ..structure import Structure
from .layout import Box, Column, Placed, Places
from .svg import GREY, counted, title

__all__ = ["bundles"]


def bundles(network: Structure, places: Places, colours: dict[str, str]) -> list[str]:
    """From each column to the blocks of the next one, in the blocks' colours."""
    parts, source, seen = [], places.inputs, counted(network.n_inputs, "input")
    for column in places.layers:
        if column.one_stack:
            parts += [
                _band(source, p.box, colours[str(p.block.operator_set)], _weights(seen, p))
                for p in column.blocks
            ]
        else:
            n = sum(p.block.n_neurons for p in column.blocks)
            parts.append(_band(source, column.outline, GREY, f"{seen} to {counted(n, 'neuron')}"))
        source = column.outline
        seen = counted(sum(p.block.n_neurons for p in column.blocks), "neuron")
    outputs = counted(network.n_outputs, "output")
    if not places.layers:
        return [_band(source, places.head, GREY, f"{seen} to {outputs}")]
    last = places.layers[-1]
    if last.one_stack:
        for p in last.blocks:
            words = f"{counted(p.block.n_neurons, 'neuron')} to {outputs}"
            parts.append(_band(p.box, places.head, colours[str(p.block.operator_set)], words))
    else:
        parts.append(_band(last.outline, places.head, GREY, f"{seen} to {outputs}"))
    for number, column in enumerate(places.layers[:-1]):
        n_seen = sum(stop - start for layer, start, stop in network.head_spans() if layer == number)
        if n_seen:
            parts.append(_arc(column, places, f"{counted(n_seen, 'neuron')} to {outputs}"))
    return parts


def _weights(seen: str, placed: Placed) -> str:
    block = placed.block
    n = f"{block.n_inputs * block.n_neurons:,}"
    return f"{seen} to block {placed.number} ({counted(block.n_neurons, 'neuron')}): {n} weights"


def _band(source: Box, target: Box, colour: str, words: str) -> str:
    """A ribbon from the right side of a box to the left side of another."""
    x0, x1 = source.right + 2, target.x - 2
    middle = (x0 + x1) / 2
    path = (
        f"M{x0:.1f} {source.y:.1f}C{middle:.1f} {source.y:.1f} {middle:.1f} {target.y:.1f} {x1:.1f} "
        f"{target.y:.1f}V{target.bottom:.1f}C{middle:.1f} {target.bottom:.1f} {middle:.1f} "
        f"{source.bottom:.1f} {x0:.1f} {source.bottom:.1f}Z"
    )
    return f'<path d="{path}" fill="{colour}" fill-opacity="0.13">{title(words)}</path>'


def _arc(column: Column, places: Places, words: str) -> str:
    """The bundle of a layer that the head sees past the layers between."""
    low = places.bottom + 30
    start, end = column.box, places.head
    corner = min(60.0, (end.middle - start.middle) / 2)
    path = (
        f"M{start.middle:.1f} {start.bottom + 8:.1f}Q{start.middle:.1f} {low:.1f} "
        f"{start.middle + corner:.1f} {low:.1f}H{end.middle - corner:.1f}"
        f"Q{end.middle:.1f} {low:.1f} {end.middle:.1f} {end.bottom + 8:.1f}"
    )
    return (
        f'<path d="{path}" fill="none" stroke="{GREY}" stroke-width="14" stroke-opacity="0.2">'
        f"{title(words)}</path>"
    )
