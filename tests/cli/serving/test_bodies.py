"""Bodies that are no table, or one that the model does not take: one sentence that says what is wrong."""

from __future__ import annotations

import json

import pytest

from opgrow.cli.serving.bodies import table_of_csv, table_of_json
from opgrow.cli.serving.limits import Refused

ROW = {"size": 1, "colour <b>": "red", "code": "1"}


def with_value(name, raw):
    """A row as JSON in which one value is written like this."""
    return json.dumps({"rows": [ROW, ROW | {name: "@"}]}).replace('"@"', raw).encode()


def refusal(read, body, model):
    with pytest.raises(Refused) as caught:
        read(body, model, 100)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 1500
    return caught.value.status, sentence


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "not valid JSON: Expecting value (line 1, column 1)"),
        (b"{", 400, "not valid JSON"),
        (b"\xff\xfe{}", 400, "not UTF-8"),
        (b"[" * 100_000, 400, "too many nested lists"),
        (b"[[" + b"9" * 5000 + b"]]", 400, "too many digits"),
        (b'{"rows": [], "rows": []}', 400, "two values for 'rows'"),
        (b"3", 422, "is a number: expected"),
        (b"null", 422, "is null: expected"),
        (b"{}", 422, "an object with no columns: expected"),
        (b'{"size": 1, "code": 2}', 422, "an object with 'size', 'code': expected"),
        (b"[]", 422, "no rows"),
        (b'{"rows": []}', 422, "no rows"),
        (b'{"rows": 3}', 422, '"rows" is a number'),
        (b'{"rows": [{}, 3]}', 422, "Row 2 is a number"),
        (b'{"columns": [1]}', 422, '"columns" is not an object of lists'),
        (b'{"columns": {"size": [1], "code": []}}', 422, "different lengths: 0 to 1"),
        (b'{"matrix": [1]}', 422, "Row 1 of the matrix is a number"),
        (b'{"matrix": [[1]]}', 422, "Row 1 of the matrix has 1 values, and the model takes 3: 'size'"),
        (b'{"rows": [{"size": 1, "code": "1"}]}', 422, "lacks 'colour <b>'"),
        (json.dumps([ROW, {"size": 1}]).encode(), 422, "Row 2 lacks 'colour <b>', 'code', unlike row 1"),
        (json.dumps([ROW | {"z": 1}]).encode(), 422, "The model has no column 'z': it takes 'size'"),
        (with_value("size", "NaN"), 400, "NaN is no JSON number"),
        (with_value("size", "-Infinity"), 400, "-Infinity is no JSON number"),
        (with_value("size", "1e999"), 422, "Column 'size' has a number in row 2 that is too large"),
        (with_value("size", "9" * 400), 422, "Column 'size' holds an integer that is too large"),
        (with_value("size", '"much"'), 422, "Column 'size' takes numbers, and row 2 has 'much'"),
        (with_value("size", "[1]"), 422, "Column 'size' has a list in row 2"),
        (with_value("code", '{"a": 1}'), 422, "Column 'code' has an object in row 2"),
    ],
)
def test_json_that_is_no_table_of_the_model(models, body, status, says):
    found = refusal(table_of_json, body, models["classes"])
    assert found[0] == status
    assert says in found[1]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "The body is empty"),
        (b"\xff\xfe", 400, "The body is not UTF-8"),
        (b"size,colour <b>,code\n1,red\n", 400, "Line 2 of the body has 2 fields: expected 3"),
        (b"size,size,code\n1,red,1\n", 400, "The body has more than one column named 'size'"),
        (b"size,,code\n1,red,1\n", 400, "Column 2 in the header of the body has no name"),
        (b"size,colour <b>,code\n1,a\0b,1\n", 400, "NUL"),
        (b"size,colour <b>,code\n", 422, "no rows"),
        (b"size,code\n1,1\n", 422, "lacks 'colour <b>'"),
        (b"size,colour <b>,code,z\n1,red,1,2\n", 422, "no column 'z'"),
        (b"size,colour <b>,code\n1,red,1\ninf,red,1\n", 422, "row 2 has an infinite number"),
        (b"size,colour <b>,code\n1,red,1\nmuch,red,1\n", 422, "row 2 has 'much'"),
    ],
)
def test_csv_that_is_no_table_of_the_model(models, body, status, says):
    found = refusal(table_of_csv, body, models["classes"])
    assert found[0] == status
    assert says in found[1]
    assert "opgrow-" not in found[1]
    assert "--no-header" not in found[1]


def test_models_of_numbers_take_no_gaps(models):
    said = refusal(table_of_json, b"[[1, 2, null]]", models["numbers"])
    assert said == (422, "Column 'x2' takes numbers, and row 1 has no value.")


def test_order_does_not_matter_and_the_target_may_be_there(models):
    row = json.dumps({"matrix": [[1, None, "1"]]}).encode()
    expected = models["classes"].predict(table_of_json(row, models["classes"], 1)).predictions.tolist()
    for read, body in (
        (
            table_of_json,
            json.dumps([{"code": 1, "answer": "yes", "colour <b>": None, "size": True}]).encode(),
        ),
        (table_of_csv, b"code,answer,colour <b>,size\n1,yes,,1\n"),
    ):
        table = read(body, models["classes"], 100)
        assert table.names == ["size", "colour <b>", "code"]
        assert table.columns["size"].tolist() == [1.0]
        assert models["classes"].predict(table).predictions.tolist() == expected
