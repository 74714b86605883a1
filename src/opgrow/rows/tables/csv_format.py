"""How a CSV file separates its fields and writes its numbers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DELIMITERS", "CsvFormat"]

#: What can stand between two fields, and its name.
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file was read."""

    delimiter: str
    decimal: str = "."
    header: bool = True

    def __str__(self) -> str:
        names = "names from its first row" if self.header else "no header, so columns are named x0, x1, ..."
        mark = "decimal comma" if self.decimal == "," else "decimal point"
        return f"{names}, {DELIMITERS[self.delimiter]} between fields, {mark}"
