"""Working memory of an exported program: the input and the outputs of layers take turns in two arrays."""

from __future__ import annotations

from .program import Program

__all__ = ["CALL_DEPTH", "FRAME_BYTES", "at", "buffers", "route"]

#: Functions that call each other at most, and a guess of what a call takes beside its arrays.
CALL_DEPTH, FRAME_BYTES = 5, 64


def buffers(program: Program, copies_input: bool) -> dict[str, int]:
    """Names and lengths of the arrays; a copy of the input, standardised, has its place in them."""
    sizes = {"a": program.n_inputs if copies_input else 0, "b": 0}
    if program.broad:
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
    offset = program.n_inputs if program.head_sees_input else 0
    places = []
    for number, layer in enumerate(program.layers):
        target = "b" if program.broad else "ba"[number % 2]
        start = offset
        layer_places = []
        for step in layer:
            layer_places.append((source, at(target, offset)))
            offset += step.n_neurons
        places.append(layer_places)
        source = at(target, start)
        offset = offset if program.broad else 0
    return places, "b" if program.broad and program.layers else source


def at(buffer: str, offset: int) -> str:
    """A place in an array, as C has it."""
    return f"{buffer} + {offset}" if offset else buffer
