"""The body of a request as a table. Whatever is wrong with it becomes a `Refused` of one sentence.

JSON comes as rows, as columns or as a matrix; CSV is read as all CSV files are (`opgrow.rows.tables`).
"""

from __future__ import annotations

import csv
import json
import math
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opgrow.cli.serving.limits import Refused
from opgrow.cli.serving.model import ServedModel
from opgrow.rows.tables import Table
from opgrow.rows.tables.csv_files import read_csv
from opgrow.rows.tables.table import as_column, listed

__all__ = ["FORMS", "table_of_csv", "table_of_json"]

#: The ways in which JSON has a table.
FORMS = ("rows", "columns", "matrix")
_EXPECTED = (
    'expected {"rows": [{"name": value, ...}, ...]}, {"columns": {"name": [value, ...], ...}} '
    'or {"matrix": [[value, ...], ...]}'
)
#: Kinds of values that JSON has in tables.
_PLAIN = (str, int, float, bool, type(None))
_OPTION = re.compile(r", or say header=False.*?(?=[.]|$)")


def table_of_json(body: bytes, model: ServedModel, max_rows: int) -> Table:
    """The table of a JSON text, with the columns of the model."""
    data = _parsed(body)
    if isinstance(data, list):  # rows or a matrix without the object around them
        data = {"rows" if data and isinstance(data[0], dict) else "matrix": data}
    if not isinstance(data, dict) or len(data) != 1 or next(iter(data)) not in FORMS:
        what = f"an object with {listed(data, 4)}" if isinstance(data, dict) else _kind(data)
        raise Refused(422, f"The JSON text is {what}: {_EXPECTED}.")
    [(form, content)] = data.items()
    names = [column.name for column in model.columns]
    if form == "columns":
        columns = _of_columns(content)
    elif form == "rows":
        columns = _of_rows(content)
    else:
        columns = _of_matrix(content, names)
    n_rows = len(next(iter(columns.values()), ()))
    check_rows(n_rows, max_rows)
    return model.checked(Table({name: _column(name, values) for name, values in columns.items()}))


def _parsed(body: bytes) -> Any:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(400, "The body is not UTF-8 text.") from None
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refused(400, f"The body is not valid JSON: {error.msg} ({where}).") from None
    except RecursionError:
        raise Refused(
            400, "The body is not valid JSON for this server: it has too many nested lists."
        ) from None
    except ValueError:  # integers of thousands of digits
        raise Refused(
            400, "The body is not valid JSON for this server: a number has too many digits."
        ) from None


def _refuse_constant(name: str) -> None:
    raise Refused(400, f"The body is not valid JSON: {name} is no JSON number; null is a missing value.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        twice = next(name for i, (name, _) in enumerate(pairs) if name in dict(pairs[:i]))
        raise Refused(400, f"The body has an object with two values for {twice!r}.")
    return data


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _of_columns(content: Any) -> dict[str, list[Any]]:
    if not isinstance(content, dict) or not all(isinstance(values, list) for values in content.values()):
        raise Refused(422, '"columns" is not an object of lists, one for each column.')
    lengths = {len(values) for values in content.values()}
    if len(lengths) > 1:
        raise Refused(
            422, f'The lists of "columns" have different lengths: {min(lengths)} to {max(lengths)}.'
        )
    return content


def _of_rows(content: Any) -> dict[str, list[Any]]:
    rows = [content] if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise Refused(422, f'"rows" is {_kind(rows)}: expected a list of objects.')
    other = next((i for i, row in enumerate(rows) if not isinstance(row, dict)), None)
    if other is not None:
        raise Refused(
            422, f"Row {other + 1} is {_kind(rows[other])}: expected an object of names and values."
        )
    names = list(rows[0]) if rows else []
    known = set(names)
    for number, row in enumerate(rows, 1):
        if row.keys() != known:
            absent, more = [n for n in names if n not in row], [n for n in row if n not in known]
            what = f"lacks {listed(absent)}" if absent else f"also has {listed(more)}"
            raise Refused(
                422, f"Row {number} {what}, unlike row 1: all rows need the same names, with null for a gap."
            )
    return {name: [row[name] for row in rows] for name in names}


def _of_matrix(content: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    if not isinstance(content, list):
        raise Refused(422, f'"matrix" is {_kind(content)}: expected a list of rows, each a list of values.')
    for number, row in enumerate(content, 1):
        if not isinstance(row, list):
            raise Refused(422, f"Row {number} of the matrix is {_kind(row)}: expected a list of values.")
        if len(row) != len(names):
            expected = f"the model takes {len(names)}: {listed(names, 20)}"
            raise Refused(422, f"Row {number} of the matrix has {len(row)} values, and {expected}.")
    return dict(zip(names, map(list, zip(*content, strict=True)), strict=True)) if content else {}


def _column(name: str, values: list[Any]) -> np.ndarray:
    for number, value in enumerate(values, 1):
        if type(value) not in _PLAIN:
            raise Refused(
                422, f"Column {name!r} has {_kind(value)} in row {number}: expected a number, a text or null."
            )
        if isinstance(value, float) and math.isinf(value):
            raise Refused(422, f"Column {name!r} has a number in row {number} that is too large.")
    try:
        return as_column(values, name)
    except ValueError as error:
        raise Refused(422, str(error)) from error


def table_of_csv(body: bytes, model: ServedModel, max_rows: int) -> Table:
    """The table of a CSV text with a header, with the columns of the model."""
    text = [column.name for column in model.columns if column.kind == "text"]
    with tempfile.TemporaryDirectory(prefix="opgrow-") as folder:
        path = Path(folder) / "body.csv"
        path.write_bytes(body)
        try:
            table = read_csv(path, header=True, text=text)
        except (ValueError, csv.Error) as error:
            sentence = " ".join(str(error).split()).replace(repr(str(path)), "the body")
            raise Refused(400, _OPTION.sub("", sentence[:1].upper() + sentence[1:])[:1000]) from error
    check_rows(table.n_rows, max_rows)
    return model.checked(table)


def check_rows(n_rows: int, max_rows: int) -> None:
    """Refuse no rows and too many."""
    if not n_rows:
        raise Refused(422, "The request has no rows.")
    if n_rows > max_rows:
        raise Refused(
            413,
            f"The request has {n_rows} rows, and the server answers {max_rows} at once: send them in parts.",
        )
