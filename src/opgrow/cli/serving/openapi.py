"""The description of the endpoint in OpenAPI 3.1, made from the columns of the model."""

from __future__ import annotations

from typing import Any

from opgrow.cli.common import label_text
from opgrow.cli.serving.limits import Limits
from opgrow.cli.serving.model import Column, ServedModel
from opgrow.common.version import __version__

__all__ = ["example_row", "openapi"]

#: Categories that a description lists at most.
_MAX_LISTED = 100
#: What is said of columns of time, by their kinds; other text counts as missing.
_TIMES = {
    "date": "A date, perhaps with a time, in ISO 8601 or as the training rows had it.",
    "time": "A time of day.",
    "duration": "A duration, such as '1 day, 12:30:00' or '36:30'.",
}


def openapi(model: ServedModel, limits: Limits) -> dict[str, Any]:
    """An OpenAPI document of the served model, as plain data."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Predictions of {model.target or 'a model'}",
            "version": __version__,
            "description": f"{type(model.estimator).__name__} in {model.name}, served by opgrow.",
        },
        "paths": {
            "/predict": {"post": _predict(model, limits)},
            "/health": {"get": _get("Whether the server answers.", "application/json", {"type": "object"})},
            "/openapi.json": {"get": _get("This document.", "application/json", {"type": "object"})},
            "/docs": {"get": _get("A page for people.", "text/html", {"type": "string"})},
        },
        "components": {
            "schemas": {
                "Row": _row(model.columns),
                "Request": _request(model),
                "Answer": _answer(model),
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {"error": {"type": "string", "description": "One sentence."}},
                },
            }
        },
    }


def example_row(model: ServedModel) -> dict[str, Any]:
    """A row that the model takes."""
    return {column.name: column.example for column in model.columns}


def _get(summary: str, media: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {"200": {"description": "OK", "content": {media: {"schema": schema}}}},
    }


def _predict(model: ServedModel, limits: Limits) -> dict[str, Any]:
    errors = {
        "400": "The body is not valid JSON or CSV.",
        "406": "Accept allows neither JSON nor CSV.",
        "408": "The body took too long.",
        "413": f"More than {limits.max_body} bytes or {limits.max_rows} rows.",
        "415": "The body is neither JSON nor CSV.",
        "422": "Columns or values that the model does not take.",
        "503": "The server is busy; Retry-After says when to ask again.",
    }
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    interval = {
        "name": "interval",
        "in": "query",
        "description": "Add bounds between which this share of the true numbers should lie.",
        "schema": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    }
    return {
        "summary": "Predict each row of a table.",
        "parameters": [] if model.classes is not None else [interval],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/Request"},
                    "example": {"rows": [example_row(model)]},
                },
                "text/csv": {"schema": {"type": "string"}},
            },
        },
        "responses": {
            "200": {
                "description": "Predictions, in the order of the rows.",
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/Answer"}},
                    "text/csv": {"schema": {"type": "string"}},
                },
            },
            **{status: {"description": text, "content": error} for status, text in errors.items()},
        },
    }


def _value(column: Column) -> dict[str, Any]:
    kinds = ["number", "boolean"] if column.kind == "number" else ["string", "number", "boolean"]
    kinds = ["string"] if column.kind in _TIMES else kinds
    kinds += ["string"] if column.also_text else []
    schema: dict[str, Any] = {
        "type": [*kinds, "null"] if column.gaps else kinds,
        "examples": [column.example],
    }
    if column.categories:
        shown = ", ".join(map(repr, column.categories[:_MAX_LISTED]))
        more = ", ..." if len(column.categories) > _MAX_LISTED else ""
        schema["description"] = f"Known categories: {shown}{more}."
    if column.kind in _TIMES:
        schema["description"] = _TIMES[column.kind]
    if not column.used:
        schema["description"] = "Not used by the model."
    return schema


def _row(columns: tuple[Column, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [column.name for column in columns if column.used],
        "properties": {column.name: _value(column) for column in columns},
    }


def _request(model: ServedModel) -> dict[str, Any]:
    def one(name: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": [name],
            "properties": {name: schema},
            "additionalProperties": False,
        }

    lists = {column.name: {"type": "array", "items": _value(column)} for column in model.columns}
    used = [column.name for column in model.columns if column.used]
    matrix = {"type": "array", "prefixItems": [_value(column) for column in model.columns], "items": False}
    return {
        "oneOf": [
            one("rows", {"type": "array", "items": {"$ref": "#/components/schemas/Row"}}),
            one("columns", {"type": "object", "required": used, "properties": lists}),
            one("matrix", {"type": "array", "items": matrix}),
        ]
    }


def _answer(model: ServedModel) -> dict[str, Any]:
    number: dict[str, Any] = {"type": ["number", "null"]}
    notes = {
        "type": "array",
        "items": {"type": "string"},
        "description": "Sentences on rows that are unlike those of the training.",
    }
    if model.classes is not None:
        labels: dict[str, Any] = {"enum": model.classes}
        row = {"type": "array", "items": number}
        properties: dict[str, Any] = {
            "predictions": {"type": "array", "items": labels},
            "classes": {
                "type": "array",
                "items": labels,
                "description": ", ".join(map(label_text, model.classes)),
            },
            "probabilities": {"type": "array", "items": row, "description": "In the order of the classes."},
        }
    else:
        item = number if model.n_outputs == 1 else {"type": "array", "items": number}
        numbers = {"type": "array", "items": item}
        bounds = {"coverage": {"type": "number"}, "low": numbers, "high": numbers}
        properties = {"predictions": numbers, "intervals": {"type": "object", "properties": bounds}}
    required = [name for name in properties if name != "intervals"]
    return {"type": "object", "required": required, "properties": properties | {"notes": notes}}
