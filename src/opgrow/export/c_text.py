"""Pieces of C as text: numbers, arrays, strings, comments. Whatever is put in comes out as valid C99."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["array", "check_name", "comment", "floating", "literal", "safe_comment", "string", "table"]

WIDTH = 100
#: Longest prefix of the functions' names.
MAX_NAME = 48


def check_name(name: str, origin: str) -> str:
    """The prefix of all public names, if it can be one."""
    if not isinstance(name, str) or not re.fullmatch(rf"[A-Za-z][A-Za-z0-9_]{{0,{MAX_NAME - 1}}}", name):
        raise ValueError(
            f"{origin} {name!r} cannot begin the names of C functions: use at most {MAX_NAME} letters, "
            "digits and underscores, beginning with a letter."
        )
    return name


def floating(value: float) -> str:
    """A float constant that reads back as the same single-precision number."""
    with np.errstate(over="ignore"):
        number = np.float32(value)
    if not np.isfinite(number):
        raise ValueError(
            f"The network cannot be exported: {value:g} does not fit into single precision (float)."
        )
    text = f"{number:.9g}"
    for digits in range(6, 9):  # fewer digits where they do
        short = f"{number:.{digits}g}"
        if np.float32(short) == number:
            text = short
            break
    return f"{text if re.search('[.e]', text) else text + '.0'}f"


def literal(value: Any) -> str:
    """A number of an array: floats in single precision, integers as they are."""
    return str(int(value)) if isinstance(value, int | np.integer) else floating(float(value))


def array(declaration: str, rows: Sequence[Any] | np.ndarray) -> str:
    """``static const`` array, flat; each row of values begins a line."""
    lines = []
    for row in rows:
        line = ""
        for value in row:
            item = literal(value) + ","
            if line and len(line) + len(item) + 1 > WIDTH - 4:
                lines.append(f"    {line}")
                line = ""
            line = f"{line} {item}" if line else item
        lines.append(f"    {line}")
    body = "\n".join(lines).rstrip(",")
    return f"static const {declaration} = {{\n{body}\n}};\n"


def string(text: str) -> str:
    """A string literal; what is not plain ASCII stands as the octal escapes of its UTF-8 bytes."""
    out = []
    for byte in text.encode("utf-8", "replace"):
        character = chr(byte)
        if character in '"\\?':  # a question mark may begin a trigraph
            out.append("\\" + character)
        elif 32 <= byte < 127:
            out.append(character)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def safe_comment(text: str) -> str:
    """Text of others that cannot end, or confuse, the comment that it stands in."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    text = re.sub(r"\?(?=\?)", "? ", text.replace("\\", "/"))  # neither trigraphs nor continued lines
    return re.sub(r"\*(?=/)|/(?=\*)", r"\g<0> ", text)


def comment(lines: Sequence[str]) -> str:
    """A block comment of the given lines, wrapped."""
    out = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        words, current = line.split(), indent
        for word in words:
            if current.strip() and len(current) + len(word) + 1 > WIDTH - 3:
                out.append(current)
                current = indent + "  "
            current = f"{current} {word}" if current.strip() else current + word
        out.append(current)
    body = "\n".join(f" * {line}".rstrip() for line in out)
    return f"/*\n{body}\n */\n"


def table(declaration: str, rows: Sequence[Sequence[int]]) -> str:
    """``static const`` array of structures, one on a line."""
    body = ",\n".join("    {" + ", ".join(str(int(value)) for value in row) + "}" for row in rows)
    return f"static const {declaration} = {{\n{body}\n}};\n"
