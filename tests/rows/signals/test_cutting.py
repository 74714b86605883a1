"""Windows and their labels, compared with plain loops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opgrow.signals import window_labels, windows

SIZES = st.tuples(st.integers(1, 40), st.integers(1, 3), st.integers(1, 12), st.integers(1, 15))


@given(SIZES)
def test_windows_are_slices_sample_by_sample(sizes):
    n, channels, length, step = sizes
    length = min(length, n)
    signal = np.random.default_rng(n).normal(size=(n, channels))
    expected = [signal[i : i + length].ravel() for i in range(0, n - length + 1, step)]
    assert np.array_equal(windows(signal, length, step), expected)
    assert np.array_equal(windows(signal[:, 0], length, step), windows(signal[:, :1], length, step))


@given(SIZES, st.lists(st.sampled_from(["walk", "rest", "run"]), min_size=40, max_size=40))
def test_labels_are_those_of_a_loop(sizes, labels):
    n, _, length, step = sizes
    length, given_labels = min(length, n), labels[:n]
    cut = [given_labels[i : i + length] for i in range(0, n - length + 1, step)]
    last = window_labels(given_labels, length, step, rule="last")
    assert last.tolist() == [labels[-1] for labels in cut]
    majority = [min(Counter(labels).items(), key=lambda item: (-item[1], item[0]))[0] for labels in cut]
    assert window_labels(given_labels, length, step).tolist() == majority


def test_integers_stay_integers_and_the_default_step_is_the_length():
    cut = windows(np.arange(11, dtype=np.int16), 4)
    assert cut.dtype == np.int16
    assert cut.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: windows([1, 2], 3), "A window takes 3 samples, and the recording has 2."),
        (lambda: windows(np.zeros((2, 2, 2)), 1), r"signal must have the shape .* got \(2, 2, 2\)"),
        (lambda: windows([1, 2], 0), "length must be an integer of at least 1, got 0"),
        (lambda: windows([1, 2], 1, 0), "step must be an integer of at least 1, got 0"),
        (lambda: window_labels([[1]], 1), r"labels must have the shape \(n_samples,\), got \(1, 1\)"),
        (lambda: window_labels([1], 1, rule="first"), "rule must be one of 'majority', 'last', got 'first'"),
    ],
)
def test_errors_are_a_sentence(call, says):
    with pytest.raises(ValueError, match=says):
        call()
