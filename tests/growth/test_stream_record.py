"""The record of a stream: its means are those of the rows, and its length is bounded."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.growth.stream_record import StreamEvent, StreamRecord


@pytest.mark.parametrize("most", [1, 40, 250])
def test_a_long_record_has_few_windows_and_the_means_of_all_rows(most):
    rng = np.random.default_rng(most)
    record, errors = StreamRecord(), []
    while len(errors) < 60_000:
        new = rng.random(rng.integers(1, most + 1)).tolist()
        errors += new
        record = record.noted(len(errors), len(new), sum(new), 7)
    assert len(record.windows) <= 200
    assert sum(window.n_rows for window in record.windows) == len(errors) == record.windows[-1].end
    start = 0
    for window in record.windows:
        assert window.error == pytest.approx(np.mean(errors[start : window.end]))
        start = window.end
    n_last = sum(window.n_rows for window in record.windows[-5:])
    assert record.error_of_last(n_last) == pytest.approx(np.mean(errors[-n_last:]))


def test_the_last_events_are_kept():
    record = StreamRecord()
    for row in range(1000):
        record = record.happened(StreamEvent(row, "drift", 0.0, 5))
    assert len(record.events) == 200
    assert record.events[-1].row == 999


def test_an_empty_record_has_no_error():
    assert np.isnan(StreamRecord().error_of_last(100))
