"""Which features the blocks and the head of a network read.

Blocks read the whole layer before, and the head the last layer. Two kinds of networks differ. The head of a
broad one sees all layers, and its blocks may read the first features of the layer before alone. In averages,
the networks stand side by side, layer by layer: blocks read their own network's features, and the head sees
the last layer of each network, however deep that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "Members",
    "Span",
    "Widths",
    "block_spans",
    "check_members",
    "head_spans",
    "joined",
    "member_widths",
]

#: Of each network of an average, the number of blocks in each of its layers.
Members = tuple[tuple[int, ...], ...]
#: Of each layer, the number of neurons in each of its blocks.
Widths = Sequence[Sequence[int]]


class Span(NamedTuple):
    """Neighbouring features of a layer, which counts from 0; -1 are the inputs of the network."""

    layer: int
    start: int
    stop: int


def check_members(widths: Widths, members: Members, broad: bool) -> None:
    """Refuse an average whose networks do not have all blocks of all layers between them."""
    if broad:
        raise ValueError("a broad network is no average: pass members or broad=True, and not both")
    if not members or not all(counts and min(counts) >= 1 for counts in members):
        raise ValueError(f"members must be the blocks of each layer of each network, got {members!r}")
    depth = max(map(len, members))
    there = [sum(counts[layer] for counts in members if layer < len(counts)) for layer in range(depth)]
    if there != [len(layer) for layer in widths]:
        raise ValueError(
            f"members have {there} blocks in their layers, and the network has {[*map(len, widths)]}"
        )


def block_spans(n_inputs: int, widths: Widths, members: Members | None) -> list[list[Span]]:
    """What each block of each layer can read; blocks of a broad network may read the first part of it."""
    if members is None:
        totals = [n_inputs, *map(sum, widths)]
        return [[Span(layer - 1, 0, totals[layer])] * len(blocks) for layer, blocks in enumerate(widths)]
    inputs = Span(-1, 0, n_inputs)
    spans: list[list[Span]] = [[] for _ in widths]
    for own, counts in zip(_own_spans(widths, members), members, strict=True):
        for layer, (before, count) in enumerate(zip([inputs, *own], counts, strict=False)):
            spans[layer] += [before] * count
    return spans


def head_spans(widths: Widths, members: Members | None, broad: bool) -> list[Span]:
    """What the head sees, in the order of its weights; nothing where there are no layers."""
    if members is not None:
        return joined([own[-1] for own in _own_spans(widths, members)])
    whole = [Span(layer, 0, sum(blocks)) for layer, blocks in enumerate(widths)]
    return whole if broad else whole[-1:]


def member_widths(widths: Widths, members: Members) -> list[int]:
    """How many features of each network of an average the head sees, in the order of its weights."""
    return [own[-1].stop - own[-1].start for own in _own_spans(widths, members)]


def joined(spans: Sequence[Span]) -> list[Span]:
    """Spans with those made one that follow each other in a layer."""
    result: list[Span] = []
    for span in spans:
        last = result[-1] if result else None
        if last is not None and (last.layer, last.stop) == (span.layer, span.start):
            result[-1] = last._replace(stop=span.stop)
        else:
            result.append(span)
    return result


def _own_spans(widths: Widths, members: Members) -> list[list[Span]]:
    """The features of each network of an average, in each of its layers."""
    spans: list[list[Span]] = [[] for _ in members]
    for layer, blocks in enumerate(widths):
        block = column = 0
        for own, counts in zip(spans, members, strict=True):
            if layer < len(counts):
                width = sum(blocks[block : block + counts[layer]])
                own.append(Span(layer, column, column + width))
                block, column = block + counts[layer], column + width
    return spans
