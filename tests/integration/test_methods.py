"""Every list of methods is found from their declarations, or compared with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import opgrow
from opgrow import estimators
from opgrow.bench import models
from opgrow.cli import app
from opgrow.cli.method_names import check_methods, method_name
from opgrow.estimators.by_method import estimators_of
from opgrow.estimators.registry import ESTIMATORS
from opgrow.growth.loop import Method
from opgrow.growth.methods import METHODS, declared

DOCS = Path(__file__).parents[2] / "docs"
every_method = pytest.mark.parametrize("method", METHODS)


@every_method
def test_every_method_has_two_estimators(method):
    for task, suffix in (("classification", "Classifier"), ("regression", "Regressor")):
        cls = estimators_of(task)[method]
        assert cls.__name__ == method + suffix
        assert getattr(estimators, cls.__name__) is getattr(opgrow, cls.__name__) is cls


def test_all_estimators_are_public_and_belong_to_a_method():
    names = {method + suffix for method in METHODS for suffix in ("Classifier", "Regressor")}
    assert names == set(ESTIMATORS) == set(estimators.__all__)
    assert names <= set(opgrow.__all__)


def test_two_methods_cannot_have_one_name():
    with pytest.raises(ValueError, match=r"^There is already a method 'PLN'\.$"):
        declared(Method("PLN", METHODS["PLN"].growth))


@every_method
def test_the_command_line_takes_every_method(method):
    assert method_name(method) == method_name(method.lower()) == method_name(method.upper()) == method
    shown = CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": "200"}).output
    assert re.search(rf"\b{method}\b", shown)


def test_what_is_no_method_is_refused_with_all_methods():
    with pytest.raises(typer.BadParameter, match="'nosuch' is not one of 'HeMLGOP', 'HoMLGOP'.*'BLS'"):
        method_name("nosuch")
    with pytest.raises(ValueError, match="unknown method 'nosuch'; known are: HeMLGOP, HoMLGOP"):
        check_methods("PLN,nosuch")
    assert check_methods("PLN, BLS") == ["PLN", "BLS"]
    assert check_methods("") == list(METHODS)


def test_the_experiments_have_every_method():
    assert models.methods() == estimators_of("classification")
    assert models.model_names("methods") == list(METHODS)


@every_method
def test_the_guide_has_every_method(method):
    table = re.findall(r"^\| ([\w, ]+) \|.*\|$", (DOCS / "methods.md").read_text(), re.MULTILINE)
    assert method in {name for cell in table for name in cell.split(", ")}


@every_method
def test_the_reference_has_every_method(method):
    listed = (DOCS / "api" / "estimators.rst").read_text()
    assert re.search(rf"^   estimators/{method.lower()}$", listed, re.MULTILINE)
    page = (DOCS / "api" / "estimators" / f"{method.lower()}.rst").read_text()
    assert re.match(rf"{method}\n=+\n", page)
    for task in ("classification", "regression"):
        assert f".. autoclass:: opgrow.{estimators_of(task)[method].__name__}\n" in page


def test_the_reference_has_no_other_methods():
    pages = {path.stem for path in (DOCS / "api" / "estimators").glob("*.rst")}
    assert pages == {method.lower() for method in METHODS}
