"""Which package of opgrow imports which: read from the sources, as a picture and as a table.

`make figures` writes docs/images/house.svg and docs/images/house.txt, a table in Markdown that a page can
include. Every import counts: at the top of a module, inside a function, and for type checkers alone, for what
only a type checker sees is still something that a reader has to know. `tests/test_architecture.py` holds the
sources to `ORDER`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opgrow.network.drawing.svg import COLOURS, GREY, picture, text, title

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "opgrow"

#: The packages, each of which may import those before it. The root, `opgrow` itself, comes after all of them.
ORDER = (
    "common",
    "operators",
    "engine",
    "network",
    "rows",
    "training",
    "closed_form",
    "growth",
    "export",
    "report",
    "estimators",
    "distributed",
    "bench",
    "cli",
)

_ROW, _NAME, _CELL, _EDGE = 26, 112, 58, 12
_DARK = "<style>svg{color:#222}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>"


@dataclass(frozen=True)
class Import:
    """One module imports another, in a line."""

    importer: str
    imported: str
    line: int


def module_paths(sources: Path = SOURCES) -> dict[str, Path]:
    """The modules of the library by name."""
    paths = {}
    for path in sorted(sources.rglob("*.py")):
        parts = ("opgrow", *path.relative_to(sources).with_suffix("").parts)
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def imports_of(module: str, path: Path, modules: dict[str, Path]) -> Iterator[Import]:
    """What a module imports of the library, wherever the import stands.

    ``from package import name`` imports the module ``package.name`` if there is one, and otherwise the
    package. That Python runs the ``__init__`` of every package on the way to a module does not count: these
    files import modules of their own package, and nothing waits for them.
    """
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [node.module])])
            inner = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name in modules else base for name in inner]
        for name in dict.fromkeys(names):
            if name in modules and name != module:
                yield Import(module, name, node.lineno)


def all_imports(sources: Path = SOURCES) -> list[Import]:
    """Every import of one module of the library by another."""
    modules = module_paths(sources)
    return [one for module, path in modules.items() for one in imports_of(module, path, modules)]


def package_of(module: str) -> str:
    """The package at the root that a module is in; "opgrow" for the root itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ORDER else parts[0]


def level_of(module: str) -> int:
    """The place of a module's package in the order."""
    package = package_of(module)
    return ORDER.index(package) if package in ORDER else len(ORDER)


def edges() -> set[tuple[str, str]]:
    """The packages of which one imports the other."""
    pairs = {(package_of(one.importer), package_of(one.imported)) for one in all_imports()}
    return {(importer, imported) for importer, imported in pairs if importer != imported}


# --- what is written ---


def drawing() -> str:
    """The packages as floors of a house, with a mark in the column of each package that they import."""
    pairs, floors, columns = edges(), ORDER[::-1], ORDER[:-1]
    width, height = 2 * _EDGE + _NAME + len(columns) * _CELL, 2 * _EDGE + (len(floors) + 1) * _ROW
    xs = {name: _EDGE + _NAME + (j + 0.5) * _CELL for j, name in enumerate(columns)}
    parts = [_DARK]
    parts += [text(xs[name], _EDGE + 12, name, "middle", ' font-size="9"') for name in columns]
    for i, importer in enumerate(floors):
        y, colour = _EDGE + (i + 1) * _ROW, COLOURS[i % 7]
        parts.append(
            f'<rect x="{_EDGE}" y="{y + 2}" width="{_NAME - 14}" height="{_ROW - 4}" rx="3" fill="{colour}" '
            f'fill-opacity="0.2" stroke="{colour}"/>'
        )
        parts.append(text(_EDGE + 8, y + 17, importer))
        for imported in ORDER[: ORDER.index(importer)]:
            at = f'cx="{xs[imported]}" cy="{y + _ROW / 2}"'
            if (importer, imported) in pairs:
                words = title(f"{importer} imports {imported}")
                parts.append(f'<circle {at} r="7" fill="{colour}">{words}</circle>')
            else:
                parts.append(f'<circle {at} r="1.5" fill="{GREY}"/>')
    return picture(width, height, parts, attributes=f' width="{width}" height="{height}"') + "\n"


def table() -> str:
    """The same in words, as a table in Markdown."""
    pairs = edges()
    lines = ["| package | imports |", "|---|---|"]
    for importer in ORDER[::-1]:
        below = [f"`{name}`" for name in ORDER if (importer, name) in pairs]
        lines.append(f"| `{importer}` | {', '.join(below) or 'nothing'} |")
    return "\n".join(lines) + "\n"
