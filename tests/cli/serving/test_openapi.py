"""The OpenAPI document says what the server takes and answers."""

from __future__ import annotations

import json
import re

import pytest

from opgrow.cli.serving.answers import as_json
from opgrow.cli.serving.bodies import table_of_json
from opgrow.cli.serving.limits import Limits
from opgrow.cli.serving.openapi import example_row, openapi


def references(data):
    if isinstance(data, dict):
        for key, value in data.items():
            yield from [value] if key == "$ref" else references(value)
    elif isinstance(data, list):
        for value in data:
            yield from references(value)


@pytest.mark.parametrize("name", ["classes", "many", "numbers", "targets"])
def test_columns_and_answers_are_those_of_the_model(models, name):
    model = models[name]
    data = openapi(model, Limits())
    schemas = data["components"]["schemas"]
    assert schemas["Row"]["required"] == [column.name for column in model.columns if column.name != "same"]
    assert list(schemas["Row"]["properties"]) == [column.name for column in model.columns]
    assert {re.sub(r"#/components/schemas/", "", one) for one in references(data)} <= set(schemas)
    assert ("probabilities" in schemas["Answer"]["properties"]) == (name == "classes")
    assert bool(data["paths"]["/predict"]["post"]["parameters"]) == (name != "classes")
    if name == "classes":
        kinds = {key: value["type"] for key, value in schemas["Row"]["properties"].items()}
        assert kinds["size"] == ["number", "boolean", "null"]
        assert "string" in kinds["code"]
        assert "'blue', 'red'" in schemas["Row"]["properties"]["colour <b>"]["description"]


def test_every_kind_of_column_is_described(models):
    columns = {column.name: column for column in models["many"].columns}
    kinds = {name: column.kind for name, column in columns.items()}
    assert kinds == {
        "size": "number", "kind": "text", "code": "text",
        "day": "date", "at": "time", "took": "duration", "same": "any",
    }  # fmt: skip
    rows = openapi(models["many"], Limits())["components"]["schemas"]["Row"]["properties"]
    assert rows["day"]["type"] == rows["at"]["type"] == rows["took"]["type"] == ["string", "null"]
    assert "ISO 8601" in rows["day"]["description"]
    assert "time of day" in rows["at"]["description"]
    assert "duration" in rows["took"]["description"]
    assert rows["same"]["description"] == "Not used by the model."
    assert "'00', '01'" in rows["code"]["description"]
    assert (columns["day"].example[:4], columns["at"].example[2]) == ("2024", ":")


@pytest.mark.parametrize("name", ["classes", "many", "numbers", "targets"])
def test_the_example_is_a_row_that_the_model_takes(models, name):
    body = json.dumps({"rows": [example_row(models[name])]}).encode()
    table = table_of_json(body, models[name], 10)
    answer = models[name].predict(table)
    assert (len(answer.predictions), answer.notes) == (1, [])


@pytest.mark.parametrize("name", ["classes", "many", "numbers", "targets"])
def test_requests_and_answers_fit_their_schemas(models, name):
    jsonschema = pytest.importorskip("jsonschema", reason="a validator of JSON Schema")
    model = models[name]
    components = {"components": openapi(model, Limits())["components"]}

    def valid(data, schema):
        rule = {"$ref": f"#/components/schemas/{schema}"} | components
        return jsonschema.Draft202012Validator(rule).is_valid(data)

    row = example_row(model)
    bodies = [
        {"rows": [row, row]},
        {"columns": {key: [value] for key, value in row.items()}},
        {"matrix": [list(row.values())]},
    ]
    for body in bodies:
        assert valid(body, "Request")
        table = table_of_json(json.dumps(body).encode(), model, 10)
        answer = model.predict(table, None if name == "classes" else 0.9)
        assert valid(json.loads(as_json(answer)), "Answer")
    assert not valid({"rows": [{}]}, "Request")
    assert not valid({"rows": [row], "columns": {}}, "Request")
    assert not valid({"matrix": [list(row.values()) * 2]}, "Request")
    assert not valid({"predictions": "yes"}, "Answer")
