"""``opgrow serve`` as a command: what it refuses before it starts."""

from __future__ import annotations

import sys

import pytest

from tests.cli.commands import refused


def test_a_missing_server_library_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert (
        refused("serve", tmp_path / "model.safetensors")
        == "opgrow serve needs uvicorn: pip install 'opgrow[serve]'"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "There is no file"),
        (("--max-body", "lots"), "--max-body is a size such as 500k or 8M, got 'lots'"),
        (("--max-body", "0"), "--max-body is a size"),
        (("--port", "70000"), "--port"),
    ],
)
def test_mistakes_are_named(tmp_path, options, says):
    assert says in refused("serve", tmp_path / "model.safetensors", *options)
