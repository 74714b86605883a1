"""Where everything goes in the drawing of a network: columns for inputs, layers and head, blocks in them.

A block is a box with a grid of neurons. The blocks of a layer stand in stacks: one stack where they fit, one
for each network where the layer is an average of several, and otherwise as many as keep the drawing low.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...engine.wiring import Members
from ..blocks import Block, Layer
from ..structure import Structure

__all__ = ["HEADER", "LIST_PITCH", "MANY", "Box", "Column", "Placed", "Places", "places_of"]

#: Inputs or outputs that stand one below the other, with their names; more become a bar or a grid.
MANY = 24
LIST_PITCH = 17
#: Height of the line above the neurons of a block, and above a stack that has a name.
HEADER = 14
_TOP = 46  # for the names of columns
_BETWEEN = 84  # columns, for the bundles
_HIGH, _WIDE = 400, 900  # of a layer, if it can be
_PAD, _GAP = 6, 8
_MIN_WIDTH, _NAMED_WIDTH = 54, 68  # of a block, and of one below "network 10"
_BAR_HEIGHT = 240
_GRIDS = (5, 8, 10, 12, 16, 20, 25, 32, 40)


@dataclass(frozen=True)
class Box:
    """A rectangle; y grows downwards."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    def moved(self, dx: float, dy: float) -> Box:
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass(frozen=True)
class Placed:
    """A block in its place, with its number in the layer (from 1) and the centres of its neurons.

    ``member`` is the network of an average that it is from.
    """

    block: Block
    number: int
    box: Box
    dots: list[tuple[float, float]]
    member: int | None = None

    def moved(self, dx: float, dy: float) -> Placed:
        dots = [(x + dx, y + dy) for x, y in self.dots]
        return replace(self, box=self.box.moved(dx, dy), dots=dots)


@dataclass(frozen=True)
class Column:
    """A layer: its extent, its blocks, the places (x, y) of its networks' numbers, and if it is one stack."""

    box: Box
    blocks: list[Placed]
    names: list[tuple[float, float, int]]
    one_stack: bool

    @property
    def outline(self) -> Box:
        """What holds several stacks together; of one stack, its own extent."""
        box, margin = self.box, 0 if self.one_stack else 6
        return Box(box.x - margin, box.y - margin, box.width + 2 * margin, box.height + 2 * margin)

    def moved(self, dx: float, dy: float) -> Column:
        return replace(
            self,
            box=self.box.moved(dx, dy),
            blocks=[placed.moved(dx, dy) for placed in self.blocks],
            names=[(x + dx, y + dy, number) for x, y, number in self.names],
        )


@dataclass(frozen=True)
class Places:
    """The places of all columns. The outputs have ``dots``; inputs have them unless they are a bar."""

    pitch: float
    inputs: Box
    input_dots: list[tuple[float, float]]
    layers: list[Column]
    head: Box
    output_dots: list[tuple[float, float]]
    bottom: float


def places_of(network: Structure, left: float, members: Sequence[int] | None = None) -> Places:
    """Place a network from ``left`` on; ``members`` says which network of an average each block is from."""
    n_neurons = sum(layer.n_neurons for layer in network.layers)
    pitch = next((p for most, p in ((150, 14.0), (400, 12.0), (1000, 10.0)) if n_neurons <= most), 7.0)
    numbers = [members] * len(network.layers) if network.members is None else _numbers(network.members)
    columns = [_stacked(layer, pitch, of) for layer, of in zip(network.layers, numbers, strict=True)]
    input_size, input_dots = _list(network.n_inputs) if network.n_inputs <= MANY else (_Bar, [])
    output_size, output_dots = _list(network.n_outputs)
    if network.n_outputs > MANY:
        output_size, output_dots = _grid(network.n_outputs, pitch)
    high = max(input_size[1], output_size[1], *(column.box.height for column in columns), 0.0)

    def place(x: float, height: float) -> tuple[float, float]:
        return x, _TOP + (high - height) / 2

    inputs = Box(*place(left, input_size[1]), *input_size)
    x, layers = inputs.right, []
    for column in columns:
        layers.append(column.moved(*place(x + _BETWEEN, column.box.height)))
        x = layers[-1].box.right
    head = Box(*place(x + _BETWEEN, output_size[1]), *output_size)
    return Places(
        pitch,
        inputs,
        [(inputs.x + dx, inputs.y + dy) for dx, dy in input_dots],
        layers,
        head,
        [(head.x + dx, head.y + dy) for dx, dy in output_dots],
        _TOP + high,
    )


def _numbers(members: Members) -> list[list[int]]:
    """Of each layer of an average, the network, from 1, that each block is from."""
    return [
        [n for n, counts in enumerate(members, 1) for _ in range(sum(counts[layer : layer + 1]))]
        for layer in range(max(map(len, members)))
    ]


_Bar = (14.0, float(_BAR_HEIGHT))


def _list(n: int) -> tuple[tuple[float, float], list[tuple[float, float]]]:
    """Size and centres of marks one below the other."""
    return (14.0, float(n * LIST_PITCH)), [(7.0, (i + 0.5) * LIST_PITCH) for i in range(n)]


def _grid(
    n: int, pitch: float, columns: int | None = None
) -> tuple[tuple[float, float], list[tuple[float, float]]]:
    """Size and centres of marks in rows."""
    columns = columns or next((c for c in _GRIDS if -(-n // c) * pitch <= _HIGH), _GRIDS[-1])
    size = min(columns, n) * pitch, -(-n // columns) * pitch
    return size, [((i % columns + 0.5) * pitch, (i // columns + 0.5) * pitch) for i in range(n)]


def _stacked(layer: Layer, pitch: float, members: Sequence[int] | None) -> Column:
    """A layer's blocks in stacks, from (0, 0) on."""
    blocks = list(layer)
    if members is None:
        columns = _columns(blocks, pitch)
        groups = _cut([_height(block, columns, pitch) for block in blocks])
    else:
        groups = [[i for i, m in enumerate(members) if m == member] for member in dict.fromkeys(members)]
        columns = max(_columns([blocks[i] for i in group], pitch) for group in groups)
    most = max((block.n_neurons for block in blocks), default=1)
    width = max(_MIN_WIDTH if members is None else _NAMED_WIDTH, min(columns, most) * pitch + 2 * _PAD)
    per_row = max(1, int((_WIDE + _GAP) // (width + _GAP)))
    placed: list[Placed] = []
    names: list[tuple[float, float, int]] = []
    top = 0.0
    for start in range(0, len(groups), per_row):
        for place, group in enumerate(groups[start : start + per_row]):
            x, y = place * (width + _GAP), top
            if members is not None:
                names.append((x + width / 2, y + 10, members[group[0]]))
                y += HEADER
            for i in group:
                box = Box(x, y, width, _height(blocks[i], columns, pitch))
                member = None if members is None else members[i]
                placed.append(Placed(blocks[i], i + 1, box, _dots(blocks[i], box, columns, pitch), member))
                y = box.bottom + _GAP
        top = max(p.box.bottom for p in placed) + 2 * _GAP
    right, bottom = (max((getattr(p.box, side) for p in placed), default=0.0) for side in ("right", "bottom"))
    return Column(Box(0, 0, right, bottom), placed, names, len(groups) == 1)


def _dots(block: Block, box: Box, columns: int, pitch: float) -> list[tuple[float, float]]:
    size, dots = _grid(block.n_neurons, pitch, columns)
    left, top = box.x + (box.width - size[0]) / 2, box.y + HEADER + _PAD / 2
    return [(left + x, top + y) for x, y in dots]


def _columns(blocks: Sequence[Block], pitch: float) -> int:
    """Neurons side by side: as few as keep one stack of these blocks low enough."""
    for columns in _GRIDS:
        if sum(_height(block, columns, pitch) + _GAP for block in blocks) <= _HIGH + _GAP:
            return columns
    # Too many blocks for one stack, or one that is too large for any.
    return 10 if max(block.n_neurons for block in blocks) <= _HIGH else _GRIDS[-1]


def _height(block: Block, columns: int, pitch: float) -> float:
    return HEADER + -(-block.n_neurons // columns) * pitch + _PAD


def _cut(heights: Sequence[float]) -> list[list[int]]:
    """Indices in their order, cut into groups that are low enough."""
    groups: list[list[int]] = []
    room = 0.0
    for i, height in enumerate(heights):
        if not groups or room < height:
            groups.append([])
            room = float(_HIGH)
        groups[-1].append(i)
        room -= height + _GAP
    return groups
