"""The variants of the study of operators: what is left of the library, and which questions they answer."""

from __future__ import annotations

import pytest

from opgrow.bench.operators.variants import (
    EQUAL,
    FULL,
    PERCEPTRONS,
    QUESTIONS,
    VARIANTS,
    build,
    chosen,
    questions_of,
)
from opgrow.operators import library


@pytest.mark.parametrize("kind", ["nodal", "pool"])
def test_every_operator_is_left_out_once(kind):
    every = {getattr(one, kind) for one in library()}
    left_out = set()
    for question in QUESTIONS:
        there = {getattr(one, kind) for one in library(build(question.second, "classification", 0).operators)}
        if "without" in question.second and there != every:
            (missing,) = every - there
            assert missing in question.text
            left_out.add(missing)
    assert left_out == every


def test_perceptrons_have_all_activations_and_nothing_else():
    sets = library(build(PERCEPTRONS, "regression", 0).operators)
    assert {(one.nodal, one.pool) for one in sets} == {("multiplication", "sum")}
    assert {one.activation for one in sets} == {one.activation for one in library()}


def test_a_variant_differs_in_what_its_name_says_and_nowhere_else():
    usual = build(FULL, "classification", 3).get_params()
    for name in VARIANTS:
        model = build(name, "classification", 3)
        changed = {key for key, value in model.get_params().items() if str(value) != str(usual[key])}
        assert changed <= {"operators", "n_min", "n_step", "tune_perceptron"}, name
    assert build(EQUAL[0], "classification", 3, 500).max_parameters == 500


def test_what_a_comparison_needs_is_run_first():
    assert chosen("PLN") == [FULL, "PLN"]
    assert chosen(EQUAL[1])[:2] == [FULL, PERCEPTRONS]
    assert chosen("operators") == list(VARIANTS)
    assert {"HoMLRN preset=null", f"{FULL} n_draws=1"} <= set(chosen("ablations"))
    with pytest.raises(ValueError, match="unknown model 'nosuch'"):
        chosen("nosuch")


def test_other_variants_are_compared_with_the_default():
    (question,) = questions_of([FULL, f"{FULL} n_draws=4"])
    assert question.text == "the default, against n_draws=4"
    assert questions_of(VARIANTS) == list(QUESTIONS)
