"""The Page-Hinkley test: it is what its definition says, finds changes where they are, and seldom others."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest

from opgrow import PageHinkley


def by_definition(values, delta, threshold, min_rows):
    """Every alarm and where its change began: the sums of the definition, from scratch for each value."""
    alarms, start = [], 0
    for end in range(1, len(values) + 1):
        seen = values[start:end]
        means = np.array([seen[:n].mean() for n in range(1, len(seen) + 1)])
        deviations = np.array([max(seen[:n].std(), 0.1) for n in range(1, len(seen) + 1)])
        sums = np.concatenate([[0.0], np.cumsum((seen - means) / deviations - delta)])
        if len(seen) >= min_rows and sums[-1] - sums.min() > threshold:
            alarms.append((end - 1, start + int(sums.argmin())))
            start = end
    return alarms


def alarms_of(detector, values):
    found = []
    for place, value in enumerate(values.tolist()):
        detector.update(value)
        if detector.drift_detected:
            found.append((place, place - detector.n_since + 1))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_it_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    rates = np.repeat(rng.uniform(0.05, 0.9, 5), 120)
    values = (rng.random(600) < rates).astype(float) if seed % 2 else rng.gamma(1.0, rates)
    settings = {"delta": 0.2, "threshold": 12.0, "min_rows": 20}
    found = alarms_of(PageHinkley(**settings), values)
    assert found == by_definition(values, **settings)
    assert found


@pytest.mark.parametrize(("before", "after"), [(0.05, 0.2), (0.1, 0.4), (0.3, 0.5)])
def test_a_change_is_found_near_where_it_is(before, after):
    rng = np.random.default_rng(1)
    values = np.r_[rng.random(2000) < before, rng.random(1000) < after].astype(float)
    (alarm, began), *_ = alarms_of(PageHinkley(), values)
    assert 2000 <= alarm < 2400
    assert abs(began - 2000) < 60


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.05, 0.3, 0.5, 1.0])
def test_there_are_few_alarms_where_nothing_changes(rate):
    values = (np.random.default_rng(2).random(30_000) < rate).astype(float)
    assert alarms_of(PageHinkley(), values) == []


def test_errors_that_become_smaller_are_no_alarm():
    rng = np.random.default_rng(3)
    assert alarms_of(PageHinkley(), np.r_[rng.random(500) < 0.5, rng.random(2000) < 0.1].astype(float)) == []


def test_a_copy_goes_on_alike_and_a_fresh_one_has_seen_nothing():
    values = np.random.default_rng(4).random(300)
    detector = PageHinkley(threshold=5.0)
    alarms_of(detector, values)
    other = copy(detector)
    assert alarms_of(detector, values + 1) == alarms_of(other, values + 1)
    assert detector.fresh() == PageHinkley(threshold=5.0)


@pytest.mark.parametrize("wrong", [{"delta": -1}, {"threshold": "high"}, {"min_rows": 0}])
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PageHinkley(**wrong)
