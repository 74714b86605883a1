"""Whether a target is to be classified or regressed, and why."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from opgrow.rows.tables import guess_task, infer_task


@pytest.mark.parametrize(
    ("column", "task"),
    [
        (["yes", "no"], "classification"),
        ([0, 1, 1], "classification"),
        ([True, False], "classification"),
        (np.arange(20), "classification"),
        (np.arange(21), "regression"),
        (np.repeat(np.arange(26), 5), "classification"),  # codes from 0
        (np.repeat(np.arange(1, 101), 9), "classification"),  # codes from 1
        (np.repeat(np.arange(26), 4), "regression"),  # too few rows each
        (np.repeat(np.arange(2, 28), 9), "regression"),  # codes do not begin at 2
        (np.repeat(np.arange(0, 52, 2), 9), "regression"),  # gaps
        (np.repeat(np.arange(26), np.arange(5, 31)), "regression"),  # the rarest is too rare
        ([0.0, 1.0, None], "classification"),
        ([0.5, 1.0], "regression"),
        ([1.0, np.inf], "regression"),
        (pd.Series(["a", "b"], dtype="category"), "classification"),
    ],
)
def test_text_and_few_whole_numbers_are_classes_and_other_numbers_are_not(column, task):
    assert infer_task(column) == task


def test_the_guess_says_why():
    assert guess_task(["a", "b"]).reason == "it holds text"
    assert guess_task([0.5, 3]).reason == "it holds numbers that are not whole, such as 0.5"
    assert "2 different whole numbers" in guess_task([0, 1]).reason
    assert "from 0 to 25" in guess_task(np.repeat(np.arange(26), 5)).reason
    assert "21 different whole numbers" in guess_task(np.arange(21)).reason


def test_infer_task_needs_a_value():
    with pytest.raises(ValueError, match="without any value"):
        infer_task([None, np.nan])
