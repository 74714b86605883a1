"""Encoders as plain data, ready for JSON, and back; what is read may be of unknown origin and is checked."""

from __future__ import annotations

from typing import Any

from opgrow.rows.tables.checks import require
from opgrow.rows.tables.columns import Column
from opgrow.rows.tables.learning import column_from_dict
from opgrow.rows.tables.wishes import check_choices, is_new

__all__ = ["columns_from", "description_of", "parameters_from", "wishes_of"]

#: Version 1 knew numbers and one-hot categories alone, and is still written where nothing else is there.
FORMAT = 2


def description_of(encoder: Any) -> dict[str, Any]:
    """A fitted encoder as plain data."""
    columns = [column.to_dict() for column in encoder.columns_]
    named = {"text": list(encoder.text), "numeric": list(encoder.numeric)}
    chosen = (encoder.many, encoder.gaps)
    old = chosen == ("pool", "fill") and not any(map(is_new, columns))
    return {
        "format": 1 if old else FORMAT,
        "max_categories": int(encoder.max_categories),
        **{key: names for key, names in named.items() if names},
        **({} if old else {"many": encoder.many, "gaps": encoder.gaps}),
        "columns": columns,
    }


def columns_from(data: dict[str, Any]) -> list[Column]:
    """The columns in what `description_of` wrote."""
    described: Any = data.get("columns")
    require(isinstance(described, list) and len(described) > 0, "'columns' must be a list of columns")
    columns = [column_from_dict(column) for column in described]
    require(len({column.name for column in columns}) == len(columns), "two columns share a name")
    return columns


def wishes_of(encoder: Any) -> dict[str, Any]:
    """The parameters of an encoder as plain data."""
    check_choices(encoder)
    chosen = {"max_categories": int(encoder.max_categories), "many": encoder.many, "gaps": encoder.gaps}
    return {"format": FORMAT, **chosen, "text": list(encoder.text), "numeric": list(encoder.numeric)}


def parameters_from(data: Any) -> dict[str, Any]:
    """The parameters in what `description_of` or `wishes_of` wrote; `check_choices` knows their values."""
    require(isinstance(data, dict), f"expected a dictionary, got {type(data).__name__}")
    version = data.get("format")
    known = type(version) is int and 1 <= version <= FORMAT
    require(known, f"format {version!r} is not known, expected 1 to {FORMAT}")
    chosen = {key: data.get(key, []) for key in ("text", "numeric")}
    for key, names in chosen.items():
        texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
        require(texts, f"{key!r} must be a list of names, got {names!r}")
    named = {key: tuple(names) for key, names in chosen.items()}
    ways = {"many": data.get("many", "pool"), "gaps": data.get("gaps", "fill")}
    return {"max_categories": data.get("max_categories"), **named, **ways}
