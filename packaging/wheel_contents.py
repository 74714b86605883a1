"""What is wrong with the compiled library in a wheel, read from the file, without a machine of its platform.

Usage: python packaging/wheel_contents.py WHEEL ..., where lief is installed.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import lief

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "src" / "opgrow" / "engine"


def interface() -> set[str]:
    """The names that Python looks up in the library itself."""
    return set(re.findall(r"\bopgrow_engine_[a-z]+", (ENGINE / "library.py").read_text()))


def asked() -> set[str]:
    """The names that Python looks up in the library's table of functions."""
    sources = (file.read_text() for file in ENGINE.glob("*.py"))
    return {name for source in sources for name in re.findall(r'_bind\(\s*"(\w+)"', source)}


def declared() -> set[str]:
    """The names in that table, by its source."""
    return set(re.findall(r"^ *OG_ENTRY\((\w+)\)", (ENGINE / "c" / "table.c").read_text(), re.MULTILINE))


def library_in(wheel: Path) -> tuple[str, bytes]:
    """The name of the library in a wheel, and its content."""
    with zipfile.ZipFile(wheel) as files:
        [name] = [n for n in files.namelist() if re.fullmatch(r"libopgrow_engine\.(so|dll)", Path(n).name)]
        return name, files.read(name)


def exported(binary: lief.Binary) -> set[str]:
    """The names that a library exports, without the underscore that macOS puts before those of C."""
    prefix = "_" if isinstance(binary, lief.MachO.Binary) else ""
    return {str(function.name).removeprefix(prefix) for function in binary.exported_functions}


def newest_glibc(binary: lief.ELF.Binary) -> tuple[int, ...]:
    """The newest version of glibc that the library has a symbol from."""
    libraries = binary.symbols_version_requirement
    names = [symbol.name for library in libraries for symbol in library.get_auxiliary_symbols()]
    versions = [name.removeprefix("GLIBC_").split(".") for name in names if name.startswith("GLIBC_")]
    return max((tuple(map(int, version)) for version in versions), default=(0,))


def needed(binary: lief.Binary) -> list[str]:
    """The libraries that have to be there; the first that a library of macOS names is itself."""
    if isinstance(binary, lief.MachO.Binary):
        return [library.name for library in binary.libraries][1:]
    return [str(name) for name in binary.libraries]


def faults(wheel: Path) -> list[str]:
    """What would keep the wheel from working where its tag says that it works, a sentence each."""
    _, content = library_in(wheel)
    binary = lief.parse(list(content))
    if binary is None:
        return ["the library is of no format that a system loads"]
    wrong = [f"{name} is not exported" for name in sorted(interface() - exported(binary))]
    wrong += [f"{name} is not in the table of functions" for name in sorted(asked() - declared())]
    # A linker may store a name as the end of a longer one, so no particular byte stands before it.
    absent = sorted(name for name in declared() if f"{name}\0".encode() not in content)
    wrong += [f"{name} is not in the library" for name in absent]
    system = re.compile(r"libc\.so\.6|KERNEL32\.dll|api-ms-win-crt-.*\.dll|/usr/lib/libSystem\.B\.dylib")
    wrong += [f"{name} is needed" for name in needed(binary) if not system.fullmatch(name)]
    if str(ROOT).encode() in content:
        wrong.append(f"the folder {ROOT} is named in it")
    if tags := re.findall(r"manylinux_(\d+)_(\d+)", wheel.name):
        promised = min((int(major), int(minor)) for major, minor in tags)
        if newest_glibc(binary) > promised:
            wrong.append(f"glibc {newest_glibc(binary)} is needed, and the tag says {promised}")
    if "macosx" in wheel.name and "arm64" in wheel.name and not binary.has_code_signature:
        wrong.append("it is not signed, and macOS runs no unsigned code on arm64")
    return wrong


def describe(wheel: Path) -> str:
    """The library, what it exports and what it needs."""
    name, content = library_in(wheel)
    binary = lief.parse(list(content))
    lines = [
        f"{wheel.name} ({wheel.stat().st_size // 1000} kB)",
        f"  {name} ({len(content) // 1000} kB) exports {', '.join(sorted(exported(binary)))}",
        f"  needs {', '.join(needed(binary))}",
    ]
    if isinstance(binary, lief.ELF.Binary):
        lines.append(f"  newest symbol: glibc {'.'.join(map(str, newest_glibc(binary)))}")
    return "\n".join(lines)


def main() -> None:
    lief.logging.disable()
    wrong = {}
    for wheel in map(Path, sys.argv[1:]):
        print(describe(wheel), flush=True)
        wrong[wheel.name] = faults(wheel)
    sys.exit("\n".join(f"{name}: {fault}" for name, found in wrong.items() for fault in found) or None)


if __name__ == "__main__":
    main()
