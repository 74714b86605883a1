"""The encoder of a table as C: a function from the columns of a table, with codes for text, to the inputs.

The header names the code of every category. With integer arithmetic, numbers of the table are fixed-point
numbers as the inputs are; dates need floating point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ..rows.tables import TableEncoder
from ..rows.tables.categories import TextColumn
from ..rows.tables.columns import Column, DroppedColumn, NumberColumn
from ..rows.tables.date_columns import PERIODS, UNITS, DateColumn
from ..rows.tables.dates import DAY
from ..rows.tables.target_means import TargetColumn
from . import c_text as text

__all__ = ["TableText", "table_text"]

_INT32_MAX = 2**31 - 1


class TableText:
    """The parts of the header and of the source that are about a table.

    Parameters
    ----------
    encoder : TableEncoder
    name : prefix of public names
    bits : fractional bits of each input of the network, or None for floats
    """

    def __init__(self, encoder: TableEncoder, name: str, bits: Sequence[int] | None) -> None:
        self.columns = [c for c in encoder.columns_ if not isinstance(c, DroppedColumn)]
        self.name, self.upper, self.bits = name, name.upper(), bits
        self.names: set[str] = set()
        dates = [column.name for column in self.columns if isinstance(column, DateColumn)]
        if bits is not None and dates:
            raise ValueError(
                f"Integer arithmetic cannot encode dates and times, as those in column {dates[0]!r}: use "
                "arithmetic='float', or fit without the column."
            )

    # --- the header ---

    def header(self) -> str:
        """What a row is, the codes, and the function."""
        lines = [f"A row of the table, as {self.name}_encode takes it:"]
        lines += [f"  row[{i}] {self._about(column)}" for i, column in enumerate(self.columns)]
        number = "double" if self.bits is None else "int32_t"
        out = "float" if self.bits is None else "int32_t"
        parts = [text.comment(lines), f"#define {self.upper}_N_COLUMNS {len(self.columns)}\n"]
        if self.bits is not None:
            parts.append(f"/* A missing number. */\n#define {self.upper}_GAP INT32_MIN\n")
        parts += [
            self._codes(column) for column in self.columns if isinstance(column, TextColumn | TargetColumn)
        ]
        parts.append(
            f"/* The inputs of the functions below, from a row of the table. */\nvoid {self.name}_encode("
            f"const {number} row[{self.upper}_N_COLUMNS],\n    {out} x[{self.upper}_N_INPUTS]);\n"
        )
        return "\n".join(parts)

    def _about(self, column: Column) -> str:
        name = text.safe_comment(column.name)
        if isinstance(column, DateColumn):
            since = " since 1970 in UTC" if column.form == "date" else ""
            return f"{name}: seconds{since}, or NaN"
        if isinstance(column, NumberColumn):
            if self.bits is None:
                return f"{name}: a number, or NaN where it is missing"
            place = self._place(column)
            return f"{name}: a number times 2^{self.bits[place]}, or {self.upper}_GAP"
        return f"{name}: a code, {self._name(column.name)}_... below, or -1 for others"

    def _name(self, name: str) -> str:
        return f"{self.upper}_{_identifier(name)}"

    def _codes(self, column: TextColumn | TargetColumn) -> str:
        """The codes of a column as an enum."""
        prefix, items = self._name(column.name), []
        labels = [(category, category) for category in column.categories]
        if isinstance(column, TextColumn) and column.pooled:
            labels.append(("OTHER", "all others"))
        if column.missing:
            labels.append(("GAP", "missing"))
        for code, (label, shown) in enumerate(labels):
            name = f"{prefix}_{_identifier(label)}"
            while name in self.names:
                name += "_"
            self.names.add(name)
            items.append(f"    {name} = {code}{',' if code < len(labels) - 1 else ''} /* {_short(shown)} */")
        body = "\n".join(items)
        return f"/* Codes of {_short(column.name)}. */\nenum {{\n{body}\n}};\n"

    # --- the source ---

    def source(self) -> str:
        """The function."""
        number, out = ("double", "float") if self.bits is None else ("int32_t", "int32_t")
        tables, lines, place = [], [], 0
        for i, column in enumerate(self.columns):
            if isinstance(column, TargetColumn):
                tables.append(self._means(i, column, place))
            lines.append(f"    /* {_short(column.name)} */")
            lines += [f"    {line}" for line in self._lines(i, column, place)]
            place += len(column.outputs)
        body = "\n".join(lines)
        has_dates = any(isinstance(column, DateColumn) for column in self.columns)
        declared = [f"const {number} row[{self.upper}_N_COLUMNS],\n    {out} x[{self.upper}_N_INPUTS]"]
        variables = "    int gap = 0, code = 0, j;\n" + "    double turns = 0.0;\n" * has_dates
        used = "    (void)gap;\n    (void)code;\n    (void)j;\n    (void)turns;\n"
        used = used if has_dates else used.replace("    (void)turns;\n", "")
        start = "    j = 0;\n"
        return (
            ("\n#include <math.h>\n" if has_dates else "")
            + "".join(f"\n{table}" for table in tables)
            + f"\nvoid {self.name}_encode({declared[0]})\n{{\n{variables}{start}{body}\n{used}}}\n"
        )

    def _lines(self, i: int, column: Column, place: int) -> list[str]:
        if isinstance(column, NumberColumn):
            return self._number(i, column, place)
        if isinstance(column, DateColumn):
            return _date(i, column, place)
        zero = "0.0" if self.bits is None else "0"
        n = len(column.outputs)
        if isinstance(column, TargetColumn):
            count = len(column.means)
            bound = f"{count}.0" if self.bits is None else str(count)
            return [
                f"code = row[{i}] >= {zero} && row[{i}] < {bound} ? (int)row[{i}] : {count};",
                f"for (j = 0; j < {n}; j++) {{",
                f"    x[{place} + j] = means_{i}[code * {n} + j];",
                "}",
            ]
        bound = f"{n}.0" if self.bits is None else str(n)
        one, none = self._value(1.0, place), self._value(0.0, place)
        if self.bits is not None and len(set(self.bits[place : place + n])) > 1:
            ones = [f"x[{place + j}] = code == {j} ? {self._value(1.0, place + j)} : 0;" for j in range(n)]
        else:
            ones = [
                f"for (j = 0; j < {n}; j++) {{",
                f"    x[{place} + j] = code == j ? {one} : {none};",
                "}",
            ]
        return [f"code = row[{i}] >= {zero} && row[{i}] < {bound} ? (int)row[{i}] : -1;", *ones]

    def _number(self, i: int, column: NumberColumn, place: int) -> list[str]:
        if self.bits is None:
            lines = [f"gap = row[{i}] != row[{i}];"]
            given = f"(float)row[{i}]"
        else:
            lines = [f"gap = row[{i}] == {self.upper}_GAP;"]
            given = f"row[{i}]"
        lines.append(f"x[{place}] = gap ? {self._value(column.median, place)} : {given};")
        if column.missing:
            one, none = self._value(1.0, place + 1), self._value(0.0, place + 1)
            lines.append(f"x[{place + 1}] = gap ? {one} : {none};")
        return lines

    def _means(self, i: int, column: TargetColumn, place: int) -> str:
        number = "float" if self.bits is None else "int32_t"
        rows = [*column.means, column.overall]
        n = len(column.overall)
        if self.bits is None:
            return text.array(f"{number} means_{i}[{len(rows) * n}]", rows)
        fixed = [[self._fixed(value, place + j) for j, value in enumerate(row)] for row in rows]
        return text.array(f"{number} means_{i}[{len(rows) * n}]", fixed)

    def _value(self, value: float, place: int) -> str:
        return text.floating(value) if self.bits is None else str(self._fixed(value, place))

    def _fixed(self, value: float, place: int) -> int:
        """A raw value of an input as an integer, as the C functions take it."""
        assert self.bits is not None
        scaled = np.rint(np.ldexp(np.float64(np.float32(value)), self.bits[place]))
        return int(np.clip(scaled, -_INT32_MAX, _INT32_MAX))

    def _place(self, column: Column) -> int:
        """The first input that a column becomes."""
        before = self.columns[: [c.name for c in self.columns].index(column.name)]
        return sum(len(other.outputs) for other in before)


def table_text(encoder: TableEncoder | None, name: str, bits: Sequence[int] | None) -> TableText | None:
    """What C has of an encoder; None where every input is a number of the table as it is."""
    if encoder is None or all(
        isinstance(column, NumberColumn) and not column.missing for column in encoder.columns_
    ):
        return None
    return TableText(encoder, name, bits)


def _date(i: int, column: DateColumn, place: int) -> list[str]:
    lines = [
        f"gap = row[{i}] != row[{i}];",
        f"x[{place}] = (float)(gap ? {column.median!r} : row[{i}] / {float(UNITS[column.form])!r} "
        f"- {column.origin!r});",
    ]
    for number, part in enumerate(column.parts):
        days = f"row[{i}] / {float(DAY)!r}"
        days = f"floor({days})" if part == "week" else days
        lines += [
            f"turns = {days} / {PERIODS[part]!r};",
            "turns = 6.283185307179586 * (turns - floor(turns));",
        ]
        for j, wave in enumerate(("sin", "cos")):
            lines.append(f"x[{place + 1 + 2 * number + j}] = gap ? 0.0f : (float){wave}(turns);")
    if column.missing:
        lines.append(f"x[{place + len(column.outputs) - 1}] = gap ? 1.0f : 0.0f;")
    return lines


def _identifier(name: str) -> str:
    """A name in capitals that C takes."""
    return (
        re.sub(r"[^A-Z0-9]+", "_", name.upper().encode("ascii", "replace").decode()).strip("_")[:40]
        or "EMPTY"
    )


def _short(name: str) -> str:
    """A text in a comment of one line."""
    shown = text.safe_comment(repr(name))
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
