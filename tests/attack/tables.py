"""Tables: whatever a CSV file holds, the commands work or end with the exit code 2 and one sentence."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from random import Random

from commands import run
from damages import DAMAGES
from outcomes import Wrong

_QUICK = {"preset": "null", "n_min": "2", "max_neurons": "4", "max_layers": "1", "fine_tune_epochs": "0"}
OPTIONS = [part for name, value in _QUICK.items() for part in ("-p", f"{name}={value}")]
OPTIONS += ["-p", "epochs=[1]", "-p", "learning_rates=[0.01]", "-q"]
Cells = list[list[str]]


def prepare(folder: Path) -> Callable[[Random], str]:
    table, model = folder / "table.csv", folder / "model.safetensors"
    table.write_text(_text(_good(Random(0)), ",", "\n"))
    if run("fit", str(table), "-o", str(model), *OPTIONS):
        raise Wrong("a good table is not fitted")
    odd, fitted = folder / "odd.csv", folder / "odd.safetensors"

    def attack(rng: Random) -> str:
        fitted.unlink(missing_ok=True)
        odd.write_bytes(_odd(rng))
        which = rng.choice(["fit", "predict", "evaluate"])
        if which == "fit":
            named = ["--target", rng.choice(["target", "size", "3", "nothing"])]
            code = run("fit", str(odd), "-o", str(fitted), *named[: 2 * (rng.random() < 0.4)], *OPTIONS)
            if fitted.exists() != (code == 0):
                raise Wrong(f"fit ended with {code}, and its file is {'' if code else 'not '}there")
            if code == 0:
                run("predict", str(fitted), str(odd))
        else:
            code = run(which, str(model), str(odd))
        return f"{which} {'refused' if code else 'works'}"

    return attack


def _good(rng: Random) -> Cells:
    rows = [[f"{rng.gauss(0, 1):.3f}", str(rng.randrange(9)), rng.choice(["red", "blue"])] for _ in range(30)]
    return [["size", "count", "colour", "target"], *([*row, "ab"[float(row[0]) > 0]] for row in rows)]


def _text(cells: Cells, separator: str, end: str) -> str:
    return end.join(separator.join(row) for row in cells)


_CELLS = [
    "",
    " ",
    "NaN",
    "nan",
    "inf",
    "-Infinity",
    "NA",
    "null",
    "?",
    "1,5",
    "1.234,56",
    "1e400",
    "-1e-400",
    "0x1F",
]
_CELLS += [
    '"',
    '""',
    '"a',
    'a"b',
    '"a\nb"',
    "1_000",
    "1 000",
    "\u22125",
    "\u0665",
    "2020-01-31",
    "12:30",
    "True",
    "\0",
]
_CELLS += [
    "x" * 300_000,
    "9" * 400,
    "\ufeff",
    "\u202ered",
    "=1+1",
    "a,b",
    "a;b",
    "\t",
    "é",
    "\U0001f40d",
    "%s",
    "\x1b[2J",
]


def _odd_cells(rng: Random, cells: Cells) -> None:
    for _ in range(rng.choice([1, 1, 3, 30])):
        row = rng.choice(cells) if rng.random() < 0.85 else cells[0]
        if row:
            row[rng.randrange(len(row))] = rng.choice(_CELLS)


def _one_column_odd(rng: Random, cells: Cells) -> None:
    at, cell = rng.randrange(len(cells[0])), rng.choice(_CELLS[:30])
    for row in cells[rng.randint(0, 1) :]:
        if at < len(row) and rng.random() < 0.8:
            row[at] = cell


def _wrong_lengths(rng: Random, cells: Cells) -> None:
    for _ in range(rng.choice([1, 5])):
        row = rng.choice(cells)
        if rng.random() < 0.5:
            row.extend(["1"] * rng.choice([1, 2, 2000]))
        else:
            del row[rng.randrange(len(row) + 1) :]


def _rows(rng: Random, cells: Cells) -> None:
    how = rng.randrange(7)
    if how == 0:
        del cells[rng.choice([0, 1, 2, 3]) :]
    elif how == 1:
        cells.insert(rng.randrange(len(cells)), list(cells[0]))  # the header once more
    elif how == 2:
        del cells[0]
    elif how == 3:
        cells.insert(rng.randrange(len(cells)), [])
    elif how == 4:
        cells[0] = [rng.choice(["a", "a", "", "target", "size"]) for _ in cells[0]]
    elif how == 5:
        cells[1:] = [list(cells[1]) for _ in cells[1:]]
    else:
        for row in cells:
            rng.shuffle(row) if rng.random() < 0.1 else row.reverse()


def _commas(rng: Random, cells: Cells) -> None:
    for row in cells[1:]:
        row[:] = [cell.replace(".", ",") for cell in row]


def _odd(rng: Random) -> bytes:
    cells = _good(rng)
    changes = [_odd_cells, _one_column_odd, _wrong_lengths, _rows, _commas]
    for change in rng.sample(changes, rng.choice([0, 1, 1, 1, 2])):
        if cells and cells[0]:
            change(rng, cells)
    separator, end = rng.choice(",,,,,,,;\t|"), rng.choice(["\n"] * 4 + ["\r\n", "\r"])
    if rng.random() < 0.5:
        written = io.StringIO()
        csv.writer(written, delimiter=separator, lineterminator=end).writerows(cells)
        text = written.getvalue()
    else:
        text = _text(cells, separator, end) + rng.choice(["", end, end * 5])
    encoding = rng.choice(["utf-8"] * 8 + ["utf-8-sig", "utf-16", "utf-16-le", "latin-1", "utf-32"])
    content = text.encode(encoding, errors="replace")
    if rng.random() < 0.2 and content:
        content = rng.choice(DAMAGES)(rng, content, rng.randbytes(1 + len(content)))
    return rng.choice(
        [content] * 30 + [b"", b"\n", b"\0" * 100, b"PK\x03\x04" + content, b"\x1f\x8b" + content]
    )
