"""A watch in a model file: what is forged is refused, and everything else comes back as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from opgrow import PageHinkley
from opgrow.estimators.files.watching import (
    describe_detector,
    describe_watch,
    restore_detector,
    restore_watch,
)
from opgrow.estimators.stream.watch import Watch
from opgrow.growth.stream_record import StreamEvent, StreamRecord


def watch():
    detector = PageHinkley(threshold=3.5)
    for x in (0.1, 1 / 3, 0.9):
        detector.update(x)
    record = StreamRecord().noted(120, 120, 1 / 7, 44)
    record = record.happened(StreamEvent(120, "drift", 0.3, 44)).happened(
        StreamEvent(120, "tried", -float("inf"), 44)
    )
    return Watch(detector, 20, 620, 2000, 800, 3, 1 / 9, 90, 2, record)


def test_it_comes_back_as_it_was():
    for one in (watch(), replace(watch(), before=None, alarm=None, detector=None)):
        assert restore_watch(json.loads(json.dumps(describe_watch(one), allow_nan=False))) == one
    assert restore_watch(None) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"since": -1}, "'since' of 'watch' is -1"),
        ({"due": 1.5}, "'due' of 'watch' is 1.5"),
        ({"trials": None}, "'trials' of 'watch' is None"),
        ({"before": "small"}, "'before'"),
        ({"window_rows": 0}, "'window_rows' of 'watch' is 0"),
        ({"windows": [[1, 2, 3]]}, "is not a list of 4"),
        ({"windows": [[1, 0, 0.5, 3]]}, "'rows' of 'watch' is 0"),
        ({"windows": [[1, 1, -0.5, 3]]}, "the error of a window is -0.5"),
        ({"windows": [[1, 1, 0.5, 3]] * 1001}, "'watch' has more than 1000 windows"),
        ({"events": [[1, "bang", 0.5, 3]]}, "an event of 'watch' is 'bang'"),
        ({"events": None}, "'events' is of type NoneType"),
        ({"detector": [1]}, "a detector of drifts is not a JSON object"),
        ({"detector": describe_detector(PageHinkley()) | {"code": 1}}, "unknown part 'code'"),
        ({"detector": describe_detector(PageHinkley()) | {"squares": -1.0}}, "'squares' of a detector is -1"),
        ({"detector": describe_detector(PageHinkley()) | {"n": -3}}, "'n' of a detector is -3"),
        ({"detector": describe_detector(PageHinkley()) | {"mean": {"float": "nan"}}}, "'mean' of a detector"),
        ({"detector": describe_detector(PageHinkley()) | {"min_rows": 0}}, "min_rows"),
    ],
    ids=str,
)
def test_what_is_forged_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        restore_watch(describe_watch(watch()) | change)


def test_a_detector_comes_back_with_its_parameters():
    assert restore_detector(describe_detector(PageHinkley(delta=0.2))) == PageHinkley(delta=0.2)
