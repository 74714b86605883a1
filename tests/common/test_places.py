"""Places that lie evenly among others."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.common.places import evenly


@pytest.mark.parametrize("n", [1, 2, 3, 7, 100, 131_072])
@pytest.mark.parametrize("most", [2, 3, 50, 4096])
def test_they_go_from_the_first_to_the_last_in_steps_of_nearly_one_size(n, most):
    places = evenly(n, most)
    assert len(places) == min(n, most)
    assert (places[0], places[-1]) == (0, n - 1)
    steps = np.diff(places)
    assert steps.size == 0 or (steps.min() >= 1 and steps.max() - steps.min() <= 1)


def test_where_there_are_few_all_are_taken():
    np.testing.assert_array_equal(evenly(4, 9), [0, 1, 2, 3])
