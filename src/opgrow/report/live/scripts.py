"""The scripts of a page, with the operators of its network as their declarations state them in JavaScript."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from ...network import Block, Network
from ...operators.kinds import Operator, stated

__all__ = ["EVALUATOR", "lacking", "operator_script", "script_of", "scripts_for"]

_FOLDER = Path(__file__).parent
#: What computes predictions, and needs no page.
EVALUATOR = ("evaluator", "columns", "model")
_MATH = (
    "abs, acos, acosh, asin, asinh, atan, atan2, atanh, cbrt, ceil, cos, cosh, exp, expm1, floor, fround, "
    "hypot, log, log10, log1p, log2, max, min, pow, round, sign, sin, sinh, sqrt, tan, tanh, trunc, PI, E"
)


def scripts_for(network: Network, names: tuple[str, ...]) -> str:
    """One script of the operators of a network and of files of this folder, without global names."""
    parts = [operator_script(network), *(script_of(name) for name in names)]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "\n})();\n"


def script_of(name: str) -> str:
    """A file of this folder."""
    return (_FOLDER / f"{name}.js").read_text(encoding="utf-8")


def lacking(network: Network) -> list[Operator]:
    """The operators of a network that were registered without their form in JavaScript."""
    return [operator for operator in dict.fromkeys(_operators(network)) if operator.js is None]


def _operators(network: Network) -> Iterator[Operator]:
    for block in _blocks(network):
        operators = block.operator_set
        yield from (operators.nodal_operator, operators.pool_operator, operators.activation_operator)


def _blocks(network: Network) -> list[Block]:
    head = [network.head] if isinstance(network.head, Block) else []
    return [*(block for layer in network.layers for block in layer), *head]


def operator_script(network: Network) -> str:
    """``OPERATORS``: for each pair of a nodal operator and a pool a function, and for each activation."""
    sets = [block.operator_set for block in _blocks(network)]
    pairs = dict.fromkeys((one.nodal_operator, one.pool_operator) for one in sets)
    pooled = [
        f'"{nodal.name}/{pool.name}": (Y, FIRST, n, W, AT) => {{\n'
        f"  const psi = (y, w) => {stated(nodal.js)};\n"
        "  const PSI = (i) => psi(Y[FIRST + i], W[AT + i]);\n"
        f"{indent(stated(pool.js), '  ')}}},"
        for nodal, pool in pairs
    ]
    activations = [
        f'"{one.name}": (x) => {stated(one.js)},'
        for one in dict.fromkeys(operators.activation_operator for operators in sets)
    ]
    return "\n".join(
        [
            "const OPERATORS = (() => {",
            f"const {{ {_MATH} }} = Math;",
            "const bounded = (x) => min(max(x, -10), 10);",
            "return { pooled: {",
            *pooled,
            "}, activation: {",
            *activations,
            "} };",
            "})();",
        ]
    )
