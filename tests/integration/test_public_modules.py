"""The short names under which users import modules that are elsewhere in the package."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import opgrow

HOMES = {
    "callbacks": "estimators.listeners",
    "data": "rows.tables",
    "datasets": "rows.datasets",
    "signals": "rows.signals",
    "stream": "rows.chunks",
}


@pytest.mark.parametrize("name", HOMES)
def test_a_short_name_is_the_module_itself(name):
    module, home = import_module(f"opgrow.{name}"), import_module(f"opgrow.{HOMES[name]}")
    assert module is home
    assert getattr(opgrow, name) is home
    assert module.__name__ == module.__spec__.name == f"opgrow.{HOMES[name]}"


@pytest.mark.parametrize("name", HOMES)
def test_a_short_name_can_be_imported_first(name):
    """In a process that has not imported the module under its own name."""
    script = f"import opgrow.{name}; from opgrow.{name} import __name__ as home; print(home)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"opgrow.{HOMES[name]}"


def test_other_names_are_not_there():
    with pytest.raises(ModuleNotFoundError, match=r"opgrow\.nosuch"):
        import_module("opgrow.nosuch")
