"""Exported C on microcontrollers: built for chips, run in simulators, compared with this machine.

    python -m tests.chips.chips [--boards avr,m0] [--tables iris,pima] [--variants plain,integer] [--rows 0]

Every network is fitted with preset="compact", exported in every variant, also in those that an export would
refuse, and predicts all rows of its table on each chip. Classes must be those of this machine, and those of
Python as far as the export has said; the scores of integers those of this machine, bit for bit, and those of
floats as close to them as `TOLERANCE`. What the table says of flash is what the program takes more than one
without a network, the functions that compilers add for floating point included; simulators of Arm and RISC-V
count instructions, that of the AVR cycles. ``pima`` is read from the folder in the environment variable
OPGROW_DATA.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

from opgrow import HeMLGOPClassifier, export_c
from opgrow.rows import datasets
from tests.chips import boards
from tests.chips.boards import BOARDS, Board
from tests.export.compiled import MODES, Library, name_of

OWN = {"iris": load_iris, "breast_cancer": load_breast_cancer, "digits": load_digits}
#: How far the probabilities of floats may be from those of this machine.
TOLERANCE = 1e-5
#: Rows whose scores are compared, and not the classes alone.
SHOWN = 20
STUB = """\
#include "model.h"
int model_predict(const {number} x[MODEL_N_INPUTS]) {{ return x[0] > 0; }}
void model_scores(const {number} x[MODEL_N_INPUTS], {number} out[MODEL_N_OUTPUTS]) {{ out[0] = x[0]; }}
"""


@dataclass(frozen=True)
class Outcome:
    """A network on a chip; ``other`` counts classes that differ from Python's, ``wrong`` is what is wrong."""

    table: str
    variant: str
    chip: str
    flash: int
    ram: int
    stack: int
    ticks: float
    unit: str
    difference: float
    rows: int
    other: int
    wrong: str

    def line(self) -> str:
        cells = (
            f"{self.table} | {self.variant} | {self.chip} | {self.flash:,} | {self.ram + self.stack:,} | "
            f"{self.stack:,} | {self.ticks:,.0f} {self.unit} | {self.difference:.1g} | "
            f"{self.other} of {self.rows:,}"
        )
        return f"| {cells} |{' ' + self.wrong if self.wrong else ''}"


HEAD = (
    "| Table | Variant | Chip | Flash (bytes) | RAM, stack included | Stack | A row | Difference "
    "| Other classes |\n"
    "|---|---|---|--:|--:|--:|--:|--:|--:|"
)


def table_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in OWN:
        return OWN[name](return_X_y=True)
    return datasets.load(name)["data"].astype(float), datasets.load(name)["target"]


def outcomes(
    model: Any,
    table: str,
    x: np.ndarray,
    keys: list[str],
    modes: list[dict[str, str]] = MODES,
    sizes: bool = True,
) -> Iterator[Outcome]:
    """A fitted classifier on chips in variants; without ``sizes`` flash and RAM are not measured."""
    x = np.asarray(x, np.float32)
    expected = np.searchsorted(model.classes_, model.predict(x))
    for mode in modes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            check = export_c(model, folder / "model.c", calibration=x, min_agreement=0, **mode)
            inputs = inputs_of(folder / "model.h", x)
            library = Library([folder / "model.c"], "-O2", ("-ffp-contract=off",))
            here = library.raw_predict("model", inputs)
            other = int((here != expected).sum())
            what = "more classes differ from Python's than the export has said"
            broken = what if check.rows == len(x) and other > round((1 - check.agreement) * len(x)) else ""
            scores = library.raw_scores("model", inputs[:SHOWN], len(model.classes_))
            for key in keys:
                outcome = _on(BOARDS[key], folder, (table, name_of(mode)), inputs, here, scores, sizes)
                wrong = "; ".join(filter(None, [broken, outcome.wrong]))
                yield replace(outcome, other=other, wrong=wrong)


def inputs_of(header: Path, x: np.ndarray) -> np.ndarray:
    """Rows as a program takes them: floats, or integers in the formats of its header."""
    found = re.search(r"#define MODEL_INPUT_BITS \{?([-\d, ]+)", header.read_text())
    if found is None:
        return x
    bits = np.array([int(b) for b in found[1].split(",")])
    return np.clip(np.rint(np.ldexp(x.astype(np.float64), bits)), -(2**31) + 1, 2**31 - 1).astype(np.int32)


def _on(
    board: Board,
    folder: Path,
    what: tuple[str, str],
    inputs: np.ndarray,
    expected: np.ndarray,
    scores: np.ndarray,
    sizes: bool,
) -> Outcome:
    """A table and a variant, ``what``, on a chip; as many firmwares as its rows need."""
    per_program = max(1, board.capacity // (4 * inputs.shape[1]))
    labels: list[int] = []
    shown: list[list[int]] = []
    ticks, stack, flash, ram = 0, 0, 0, 0
    for start in range(0, len(inputs), per_program):
        part = inputs[start : start + per_program]
        write_rows(folder / "rows.h", part, scores.shape[1], SHOWN if start == 0 else 0)
        main = boards.FIRMWARE / "main.c"
        program = boards.build(board, folder, [main, folder / "model.c"], "firmware")
        if start == 0 and sizes:
            (folder / "stub.c").write_text(STUB.format(number=_number(inputs)))
            empty = boards.build(board, folder, [main, folder / "stub.c"], "empty")
            flash, ram = (
                a - b for a, b in zip(boards.sizes(board, program), boards.sizes(board, empty), strict=True)
            )
        done = boards.run(board, program)
        labels += done.labels
        shown += [row for row in done.scores if row]
        ticks, stack = ticks + done.ticks, max(stack, done.stack)
    difference, count, wrong = _judged(np.array(labels), expected, shown, scores)
    comment = re.sub(r"\s*\n \*\s*", " ", (folder / "model.c").read_text())
    stated = re.search(r"with frames of calls at most (\d+) bytes", comment)
    if stated is None or stack > int(stated[1]):
        wrong = "; ".join(filter(None, [wrong, "the stack is deeper than the source says"]))
    unit, each = board.unit
    return Outcome(
        *what, board.name, flash, ram, stack, each * ticks / len(inputs), unit, difference, count, 0, wrong
    )


def _number(inputs: np.ndarray) -> str:
    return "float" if inputs.dtype == np.float32 else "int32_t"


def write_rows(path: Path, rows: np.ndarray, n_outputs: int, shown: int) -> None:
    """The header with the rows that a firmware predicts."""
    items = [f"{v:.9g}" for v in rows.ravel()] if rows.dtype == np.float32 else map(str, rows.ravel())
    suffix = "f" if rows.dtype == np.float32 else ""
    literals = [f"{v if suffix == '' or re.search('[.e]', v) else v + '.0'}{suffix}" for v in items]
    path.write_text(
        '#include "model.h"\n#ifdef __AVR__\n#include <avr/pgmspace.h>\n#else\n#define PROGMEM\n#endif\n'
        f"typedef {_number(rows)} number_t;\n"
        f"#define N_INPUTS {rows.shape[1]}\n#define N_OUTPUTS {n_outputs}\n"
        f"#define N_ROWS {len(rows)}u\n#define N_SHOWN {shown}u\n"
        f"static const number_t rows[{rows.size}] PROGMEM = {{\n{', '.join(literals)}\n}};\n"
    )


def _judged(
    labels: np.ndarray, expected: np.ndarray, shown: list[list[int]], scores: np.ndarray
) -> tuple[float, int, str]:
    """The largest difference of a score, the number of rows, and what is wrong."""
    wrong = []
    if len(labels) != len(expected):
        wrong.append(f"{len(labels)} of {len(expected)} rows came back")
    elif (differ := int((labels != expected).sum())) > 0:
        wrong.append(f"{differ} classes differ from those of this machine")
    bits = np.array(shown, np.uint32)
    actual = bits.view(scores.dtype).astype(np.float64)
    difference = float(np.abs(actual - scores.astype(np.float64)).max())
    if scores.dtype == np.int32 and difference > 0:
        wrong.append("integers differ from those of this machine")
    if scores.dtype == np.float32 and not difference <= TOLERANCE:
        wrong.append("floats are too far from those of this machine")
    return difference, len(labels), "; ".join(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", default=",".join(BOARDS))
    parser.add_argument("--tables", default="iris,pima,breast_cancer,digits")
    parser.add_argument("--rows", type=int, default=0, help="rows of each table at most; 0 for all")
    parser.add_argument("--variants", default=",".join(map(name_of, MODES)))
    given = parser.parse_args()
    modes = [mode for mode in MODES if name_of(mode) in given.variants.split(",")]
    keys = []
    for key in given.boards.split(","):
        lacks = boards.missing(BOARDS[key])
        if lacks is None:
            keys.append(key)
        else:
            print(lacks)
    wrong = 0
    print(HEAD)
    for table in given.tables.split(",") if keys else []:
        x, y = table_of(table)
        model = HeMLGOPClassifier(preset="compact", random_state=0).fit(x, y)
        for outcome in outcomes(model, table, x[: given.rows or None], keys, modes):
            print(outcome.line(), flush=True)
            wrong += bool(outcome.wrong)
    return bool(wrong) or not keys


if __name__ == "__main__":
    sys.exit(main())
