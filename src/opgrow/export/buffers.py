"""Working memory of an exported program: the input and the outputs of layers take turns in two arrays."""

from __future__ import annotations

from collections.abc import Sequence

from .program import Program

__all__ = ["CALL_DEPTH", "FRAME_BYTES", "at", "buffers", "route", "stack_bytes"]

#: Functions that call each other at most, and what a call takes beside its arrays; `make chips` checks it.
CALL_DEPTH, FRAME_BYTES = 5, 64


def buffers(program: Program, copies_input: bool) -> dict[str, int]:
    """Names and lengths of the arrays; a copy of the input, standardised, has its place in them."""
    sizes = {"a": program.n_inputs if copies_input else 0, "b": 0}
    if program.keeps_layers:
        sizes["b"] = sum(program.widths)
        if program.head_sees_input:
            sizes = {"a": 0, "b": sizes["b"] + program.n_inputs}
    else:
        for number, width in enumerate(program.widths):
            name = "ba"[number % 2]
            sizes[name] = max(sizes[name], width)
    return {name: size for name, size in sizes.items() if size}


def route(program: Program, source: str) -> tuple[list[list[tuple[str, str]]], str]:
    """Where each step of each layer reads and writes, given where the input is, and where the head reads."""
    unseen, kept = _kept_places(program) if program.keeps_layers else (0, None)
    before: Sequence[int] = range(program.n_inputs)
    routes = []
    for number, layer in enumerate(program.layers):
        target = "ba"[number % 2] if kept is None else "b"
        places = range(program.widths[number]) if kept is None else kept[number]
        column, layer_routes = 0, []
        for step in layer:
            layer_routes.append((at(source, before[step.first]), at(target, places[column])))
            column += step.n_neurons
        routes.append(layer_routes)
        source, before = target, places
    return routes, at(source, unseen)


def _kept_places(program: Program) -> tuple[int, list[list[int]]]:
    """How many outputs of layers the head does not see, and the place of each output of each layer.

    What the head does not see comes first; then, side by side, what it sees.
    """
    widths = program.widths
    places = [[-1] * width for width in widths]
    unseen = sum(widths) - sum(stop - start for _, start, stop in program.head_spans)
    place = unseen + (program.n_inputs if program.head_sees_input else 0)
    for layer, start, stop in program.head_spans:
        places[layer][start:stop] = range(place, place + stop - start)
        place += stop - start
    free = iter(range(unseen))
    return unseen, [[next(free) if place < 0 else place for place in layer] for layer in places]


def stack_bytes(program: Program) -> tuple[int, int]:
    """Bytes of arrays on the stack of a program with floats, and of the stack with the deepest calls."""
    numbers = sum(buffers(program, program.changes_input).values())
    numbers += program.n_outputs * (program.classes is not None)
    depth = CALL_DEPTH
    if program.window is not None:
        numbers += program.window.n_samples + len(program.window.names)
        depth += 1
    return 4 * numbers, 4 * numbers + depth * FRAME_BYTES


def at(buffer: str, offset: int) -> str:
    """A place in an array, as C has it."""
    return f"{buffer} + {offset}" if offset else buffer
