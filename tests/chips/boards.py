"""Chips under simulators from Debian's packages: how firmware is built for each, run, and measured."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BOARDS", "Board", "Run", "missing"]

FIRMWARE = Path(__file__).parent / "firmware"


@dataclass(frozen=True)
class Board:
    """A chip and its simulator.

    Attributes
    ----------
    name : of the chip
    tools, packages : commands that are needed, and Debian's packages that have them
    compiler : prefix of the tools, such as "avr-"
    flags : of the compiler, and of the linker
    command : that runs a firmware file
    capacity : bytes of rows that fit beside a program
    painted : bytes below the stack that are watched
    unit : what a tick is, and how many of them
    """

    name: str
    tools: tuple[str, ...]
    packages: str
    compiler: str
    flags: tuple[str, ...]
    link: tuple[str, ...]
    command: tuple[str, ...]
    capacity: int
    painted: int
    unit: tuple[str, float]


_ARM = "gcc-arm-none-eabi qemu-system-arm"
_BARE = ("-nostartfiles", "-Wl,--build-id=none")


def _arm(name: str, machine: str, cpu: tuple[str, ...], flash: str, capacity: int, unit: float) -> Board:
    return Board(
        name,
        ("arm-none-eabi-gcc", "qemu-system-arm"),
        _ARM,
        "arm-none-eabi-",
        ("-mthumb", *cpu),
        (*_BARE, "--specs=nosys.specs", f"-Wl,--defsym=FLASH_BYTES={flash}", "-T", str(FIRMWARE / "arm.ld")),
        (
            "qemu-system-arm",
            "-M",
            machine,
            "-nographic",
            "-monitor",
            "none",
            "-serial",
            "none",
            "-icount",
            "shift=0",
            "-semihosting-config",
            "enable=on,target=native",
            "-kernel",
        ),
        capacity,
        4096,
        ("instructions", unit),
    )


BOARDS = {
    "avr": Board(
        "ATmega328P",
        ("avr-gcc", "simavr"),
        "gcc-avr avr-libc simavr",
        "avr-",
        ("-mmcu=atmega328p",),
        (),
        ("simavr", "-m", "atmega328p", "-f", "16000000"),
        18_000,
        1000,
        ("cycles", 64.0),
    ),
    "m0": _arm("Cortex-M0", "microbit", ("-mcpu=cortex-m0",), "256K", 200_000, 62.5),
    "m3": _arm("Cortex-M3", "mps2-an385", ("-mcpu=cortex-m3",), "4M", 2_000_000, 40.0),
    "m4": _arm(
        "Cortex-M4",
        "mps2-an386",
        ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
        "4M",
        2_000_000,
        40.0,
    ),
    "riscv": Board(
        "RV32IMAC",
        ("riscv64-unknown-elf-gcc", "qemu-system-riscv32"),
        "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc",
        "riscv64-unknown-elf-",
        ("-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs"),
        (*_BARE, "-T", str(FIRMWARE / "riscv.ld")),
        ("qemu-system-riscv32", "-M", "virt", "-bios", "none", "-nographic", "-icount", "shift=0", "-kernel"),
        8_000_000,
        4096,
        ("instructions", 1.0),
    ),
}


def missing(board: Board) -> str | None:
    """A sentence that says what a board needs and is not there; None if nothing."""
    absent = [tool for tool in board.tools if shutil.which(tool) is None]
    if not absent:
        return None
    return f"{board.name} needs {' and '.join(absent)}: apt-get install {board.packages}"


@dataclass(frozen=True)
class Run:
    """What a firmware has written: classes, the bits of scores of the first rows, ticks, bytes of stack."""

    labels: list[int]
    scores: list[list[int]]
    ticks: int
    stack: int


def sizes(board: Board, firmware: Path) -> tuple[int, int]:
    """Bytes of flash and of RAM of a linked program."""
    listing = _called([f"{board.compiler}size", str(firmware)]).splitlines()[1].split()
    text, data, bss = map(int, listing[:3])
    return text + data, data + bss


def build(board: Board, folder: Path, sources: list[Path], made: str) -> Path:
    """Compile and link; the model as strictly as it can be."""
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-pedantic", "-Werror"]
    objects = []
    for source in sources:
        target = folder / f"{made}_{source.stem}.o"
        dialect = ["-std=gnu99", f"-DPAINTED={board.painted}"] if source.name == "main.c" else strict
        command = [
            f"{board.compiler}gcc",
            "-Os",
            "-ffunction-sections",
            *board.flags,
            *dialect,
            f"-I{folder}",
        ]
        _called([*command, "-c", str(source), "-o", str(target)])
        objects.append(str(target))
    program = folder / f"{made}.elf"
    link = [f"{board.compiler}gcc", "-Os", "-Wl,--gc-sections", *board.flags, *board.link, *objects]
    _called([*link, "-o", str(program)])
    return program


def run(board: Board, firmware: Path, timeout: float = 600) -> Run:
    """Run a firmware in its simulator."""
    done = subprocess.run(
        [*board.command, str(firmware)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        errors="replace",
    )
    printed = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    rows = [line.split() for line in re.findall(r"row ((?:[0-9a-f]{8} ?)+)", printed)]
    end = re.search(r"ticks ([0-9a-f]{8}) stack ([0-9a-f]{8})", printed)
    if end is None:
        raise RuntimeError(f"{board.name} did not finish: {printed[-300:]!r}")
    labels = [int(row[0], 16) for row in rows]
    return Run(labels, [[int(v, 16) for v in row[1:]] for row in rows], int(end[1], 16), int(end[2], 16))


def _called(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()[:2000]}")
    return done.stdout
