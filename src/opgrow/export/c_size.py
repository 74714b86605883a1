"""How large an exported C file is once compiled: bytes of code, of constants and of stack."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CompiledSize", "c_size", "find_compiler", "linked_size", "object_sizes", "run_tool"]

_FUNCTION = re.compile(r"^\w[\w *]*?(\w+)\([^;{]*?\)\n\{\n(.*?)^\}", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class CompiledSize:
    """Bytes that a compiler made of an exported file.

    Attributes
    ----------
    compiler : the command that was run
    code, constants : bytes of the object file's code and of its data, all of it constant
    stack : bytes that the deepest chain of calls takes, without the functions of ``<math.h>``; None where the
        compiler does not tell
    """

    compiler: str
    code: int
    constants: int
    stack: int | None


def find_compiler() -> str | None:
    """The C compiler that ``CC`` names, or the one that is installed; None without one."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return name
    return None


def c_size(
    path: str | os.PathLike[str], compiler: str | None = None, flags: Sequence[str] = ()
) -> CompiledSize | None:
    """Compile an exported file for size (``-Os``) and measure it; None if no C compiler is found.

    Parameters
    ----------
    path : the ``.c`` file, with its header beside it
    compiler : str, optional
        Such as "arm-none-eabi-gcc"; by default what ``CC`` names, ``cc``, ``gcc`` or ``clang``.
    flags : of the compiler, such as "-mmcu=atmega328p"
    """
    command = compiler or find_compiler()
    if command is None or _size_tool(command) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "model.o"
        code, constants = _compiled(command, made, *flags, "-fstack-usage", str(path))
        usage = made.with_suffix(".su")
        frames = _frames(usage.read_text()) if usage.exists() else None
    source = Path(path).read_text()
    return CompiledSize(command, code, constants, None if frames is None else _deepest(source, frames))


def object_sizes(path: str | os.PathLike[str], compiler: str, flags: Sequence[str] = ()) -> tuple[int, int]:
    """Bytes of code and of constants that a compiler makes of any C file for size (``-Os``)."""
    with tempfile.TemporaryDirectory() as folder:
        return _compiled(compiler, Path(folder) / "model.o", *flags, str(path))


def linked_size(sources: Sequence[str | os.PathLike[str]], compiler: str, flags: Sequence[str] = ()) -> int:
    """Bytes of code and constants of a program without what starts it, with what it needs of libraries."""
    bare = ("-ffunction-sections", "-fdata-sections", "-nostartfiles", "-Wl,--gc-sections", "-Wl,-e,main")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "program.elf"
        return sum(_made(compiler, made, *flags, *bare, *map(str, sources), "-lm"))


def _compiled(compiler: str, made: Path, *arguments: str) -> tuple[int, int]:
    """Make an object file; the bytes of its code and of its constants."""
    return _made(compiler, made, *arguments, "-c")


def _made(compiler: str, made: Path, *arguments: str) -> tuple[int, int]:
    run_tool(compiler, "-std=c99", "-Os", *arguments, "-o", str(made))
    listing = run_tool(_size_tool(compiler) or "size", "-A", str(made))
    sections = re.findall(r"^\.(text|rodata|data)\S*\s+(\d+)", listing, re.MULTILINE)
    code = sum(int(size) for name, size in sections if name == "text")
    return code, sum(int(size) for name, size in sections if name != "text")


def _size_tool(compiler: str) -> str | None:
    """The ``size`` that belongs to a compiler: arm-none-eabi-size for arm-none-eabi-gcc."""
    beside = re.sub(r"(gcc|clang|cc)(-[\d.]+)?$", "size", compiler)
    return next((name for name in (beside, "size") if shutil.which(name)), None)


def run_tool(*command: str) -> str:
    """What a command prints; a RuntimeError, in one sentence, where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"{command[0]} could not be run: {error.strerror}.") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(f"{command[0]} failed: {lines[0] if lines else 'no message'}")
    return done.stdout


def _frames(usage: str) -> dict[str, int]:
    """Bytes of each function's frame; those that were inlined are not listed."""
    rows = [line.split("\t") for line in usage.splitlines() if line.strip()]
    return {re.split(r"[:.]", row[0].rsplit(":", 1)[-1])[0]: int(row[1]) for row in rows}


def _deepest(source: str, frames: dict[str, int]) -> int:
    """The largest sum of frames along a chain of calls, which are read from the source and have no cycles."""
    bodies = dict(_FUNCTION.findall(source))
    calls = {
        name: [other for other in bodies if other != name and re.search(rf"\b{other}\(", body)]
        for name, body in bodies.items()
    }

    def depth(name: str) -> int:
        return frames.get(name, 0) + max((depth(other) for other in calls[name]), default=0)

    return max(map(depth, bodies), default=0)
