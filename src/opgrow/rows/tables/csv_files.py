"""CSV files, which do not say how they separate fields and write numbers, nor whether they have a header.

All of this is detected here, unless the caller says it, and recorded in a `CsvFormat`, which can be printed.
Where two readings are possible, the file is refused with a sentence on which option decides. A CSV of numbers
goes through `numpy.loadtxt`, which is C; anything else is read in blocks of rows, so that a large file never
exists as Python strings all at once.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from opgrow.rows.tables.csv_format import DELIMITERS, CsvFormat
from opgrow.rows.tables.table import Table, check_names, listed

__all__ = ["MISSING", "as_numbers", "read_csv"]

MISSING = frozenset(["", "NA", "NaN", "nan", "null", "?"])
BLOCK_CELLS = 1_000_000

#: Numbers with a decimal comma, whole ones among them.
_WITH_COMMA = re.compile(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?")
_NO_HEADER = "header=False (--no-header)"


def read_csv(
    path: Path, header: bool | None = None, decimal: str | None = None, text: Collection[str] = ()
) -> Table:
    """Read a file; `header` and `decimal` settle what would be found out, `text` names columns of text."""
    try:
        return _read(path, header, decimal, text)
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} is not UTF-8 text.") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is not a complete gzip file ({error}).") from error
    except csv.Error as error:
        raise ValueError(f"{str(path)!r} is not a CSV file ({error}).") from error


def _read(path: Path, header: bool | None, decimal: str | None, text: Collection[str]) -> Table:
    with _open_text(path) as handle:
        line = next((line for line in handle if line.strip()), None)
    if line is None:
        raise ValueError(f"{str(path)!r} is empty: expected a header row and data rows.")
    # Whichever delimiter splits the first row into most fields; a single column counts as comma-separated.
    delimiter = max(DELIMITERS, key=lambda mark: len(next(csv.reader([line], delimiter=mark))))
    first = _first_row(path, delimiter)
    if header is not False:
        names = _header(first, path, sure=header is True)
    else:
        names = [f"x{i}" for i in range(len(first))]
    source = _Source(path, CsvFormat(delimiter, decimal or ".", header is not False), names)
    table = source.read(text)
    if decimal is None and source.written_with_commas(table, text):
        source = _Source(path, CsvFormat(delimiter, ",", source.format.header), names)
        table = source.read(text)
    if header is None:
        _refuse_data_as_names(table, path)
    return Table(table.columns, source.format)


# --- the first row ---


def _first_row(path: Path, delimiter: str) -> list[str]:
    with _open_text(path) as handle:
        return [cell.strip() for cell in next(row for row in csv.reader(handle, delimiter=delimiter) if row)]


def _header(names: list[str], path: Path, sure: bool) -> list[str]:
    """The first row as names, unless it is data."""
    if not sure and _has_numbers(names):
        raise _no_header(names, path, "its first row holds numbers")
    unnamed = next((i for i, name in enumerate(names, start=1) if not name), None)
    if unnamed is not None:
        raise ValueError(
            f"Column {unnamed} in the header of {str(path)!r} has no name: name it, leave it out if it "
            f"numbers the rows (to_csv(index=False) in pandas), or say {_NO_HEADER} if the first row is data."
        )
    check_names(names, repr(str(path)), f": rename one, or say {_NO_HEADER} if the first row is data")
    return names


def _has_numbers(names: list[str]) -> bool:
    """Whether a first row has numbers that are no names; such as count up by one (years, positions) are."""
    numbers = [float(name) for name in names if _is_number(name)]
    if not numbers:
        return False
    counts_up = len(numbers) > 1 and numbers == [numbers[0] + i for i in range(len(numbers))]
    if len(numbers) == len(names):
        return not ((counts_up and numbers[0] == 0) or names == ["0"])  # how pandas names columns
    return not counts_up


def _refuse_data_as_names(table: Table, path: Path) -> None:
    """Refuse a file of text in which most columns have their own name among their values."""
    if any(values.dtype != object for values in table.columns.values()) or table.n_rows < 2:
        return  # a name above numbers is a name
    repeated = sum(name in set(values.tolist()) for name, values in table.columns.items())
    if 2 * repeated > len(table.names):
        raise _no_header(table.names, path, "its first row has values that are also below it")


def _no_header(names: list[str], path: Path, why: str) -> ValueError:
    return ValueError(
        f"{str(path)!r} has no header row, it seems: {why} ({listed(names, 4)}), so say {_NO_HEADER}, which "
        f"names the columns x0 to x{len(names) - 1}, or header=True (--header) if these are names."
    )


# --- the rows ---


class _Source:
    """A file whose format is settled, to be read as often as it takes."""

    def __init__(self, path: Path, format: CsvFormat, names: list[str]) -> None:
        self.path, self.format, self.names = path, format, names

    def read(self, text: Collection[str]) -> Table:
        named = frozenset(i for i, name in enumerate(self.names) if name in text)
        matrix = None
        if not named and self.format.decimal == ".":
            with _open_text(self.path) as handle:
                if self.format.header:
                    next(row for row in csv.reader(handle, delimiter=self.format.delimiter) if row)
                matrix = _parse_numbers(handle, self.format.delimiter, len(self.names))
        if matrix is not None:
            return Table.from_matrix(matrix, self.names)
        columns, as_text, late = self._parse_blocks(named)
        if late:
            # Text below numbers: the upper part is no longer what it was ("007" became 7.0), so read again.
            columns, _, _ = self._parse_blocks(as_text)
        return Table(dict(zip(self.names, columns, strict=True)))

    def written_with_commas(self, table: Table, text: Collection[str]) -> bool:
        """Whether numbers have decimal commas; refuses what may be read in two ways."""
        examples = {
            name: example
            for name, values in table.columns.items()
            if values.dtype == object and name not in text and (example := _comma_among(values))
        }
        if not examples:
            return False
        name, example = next(iter(examples.items()))
        points = any(
            values.dtype != object and np.any(values % 1 != 0, where=np.isfinite(values))
            for values in table.columns.values()
        )
        if self.format.delimiter != "," and not points:
            return True
        raise ValueError(
            f"Column {name!r} of {str(self.path)!r} has numbers with commas, such as {example!r}: say "
            "decimal=',' (--decimal ,) if these are decimal commas, remove them if they separate thousands, "
            "or take the column as text with decimal='.' (--decimal .)."
        )

    def _parse_blocks(self, text: frozenset[int]) -> tuple[list[np.ndarray], frozenset[int], bool]:
        """Read block by block, the columns in `text` as text and the others as numbers while they are.

        Returns the columns, which of them are text, and whether one turned out to be text after its first
        block.
        """
        parts: list[list[np.ndarray]] = [[] for _ in self.names]
        late = False
        for block in self._blocks():
            for i, cells in enumerate(block):
                numbers = None if i in text else _numbers(cells, self.format.decimal)
                if numbers is None and i not in text:
                    text |= {i}
                    late |= bool(parts[i])
                parts[i].append(_texts(cells) if numbers is None else numbers)
        return [np.concatenate(part) if part else np.empty(0) for part in parts], text, late

    def _blocks(self) -> Iterator[list[tuple[str, ...]]]:
        """Yield blocks of rows as lists of columns; refuse a row that is not as long as the first."""
        with _open_text(self.path) as handle:
            reader = csv.reader(_without_nul(handle), delimiter=self.format.delimiter)
            if self.format.header:
                next(row for row in reader if row)
            n_columns, like = len(self.names), "the header" if self.format.header else "the first row"

            def rows() -> Iterator[list[str]]:
                for row in reader:
                    if len(row) == n_columns:
                        yield row
                    elif row:
                        raise ValueError(
                            f"Line {reader.line_num} of {str(self.path)!r} has {len(row)} fields: "
                            f"expected {n_columns}, as many as {like}."
                        )

            checked = rows()
            while block := list(islice(checked, max(1, BLOCK_CELLS // n_columns))):
                yield list(zip(*block, strict=True))


def _open_text(path: Path) -> IO[str]:
    # utf-8-sig reads files with and without a byte order mark.
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _without_nul(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a file of text; numpy drops NUL at the end of a text, so that two labels become one."""
    for line in lines:
        if "\0" in line:
            raise csv.Error("it holds a NUL character")
        yield line


def _parse_numbers(handle: IO[str], delimiter: str, n_columns: int) -> np.ndarray | None:
    """Read the rest of the file as a matrix of numbers; None if it is anything else."""
    first = next((line for line in handle if line.strip()), None)
    if first is None:
        return np.empty((0, n_columns))

    def lines() -> Iterator[str]:
        yield first
        yield from handle

    try:
        matrix = np.loadtxt(lines(), delimiter=delimiter, comments=None, quotechar='"', ndmin=2)
    except UnicodeDecodeError:
        raise
    except ValueError:
        return None
    return matrix if matrix.shape[1] == n_columns else None


# --- cells ---


def _numbers(cells: Iterable[str], decimal: str = ".") -> np.ndarray | None:
    """Cells as numbers, or None if one is neither a number nor missing."""
    joined = "".join(cells)
    if "_" in joined or not joined.isascii():
        return None  # Python's own conversion, and with it NumPy's, takes 1_000 and other scripts' digits
    if decimal == ",":
        if "." in joined:
            return None
        cells = [cell.replace(",", ".") for cell in cells]
    for candidate in (list(cells), ["nan" if cell.strip() in MISSING else cell for cell in cells]):
        try:
            return np.array(candidate, dtype=np.float64)
        except ValueError:
            continue
    return None


def _texts(cells: tuple[str, ...]) -> np.ndarray:
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [None if cell in MISSING else cell for cell in map(str.strip, cells)]
    return texts


def _is_number(text: str) -> bool:
    numbers = _numbers((text,))
    return numbers is not None and not np.isnan(numbers[0])


def as_numbers(values: np.ndarray) -> np.ndarray:
    """A column of text as numbers, with NaN for everything that is none."""
    return np.array([_number_or_nan(value) for value in values.tolist()], dtype=np.float64)


def _number_or_nan(text: str | None) -> float:
    try:
        return float("nan" if text is None or "_" in text or not text.isascii() else text)
    except ValueError:
        return float("nan")


def _comma_among(values: np.ndarray) -> str | None:
    """A text with a decimal comma, if all texts of a column are numbers that may have one; else None."""
    example = None
    for value in values.tolist():
        if value is None:
            continue
        if _WITH_COMMA.fullmatch(value) is None:
            return None
        if example is None and "," in value:
            example = value
    return example
