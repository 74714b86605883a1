"""The report on a stream: its charts and events are those of the record, and only where there is one."""

from __future__ import annotations

import numpy as np

from opgrow import BLSClassifier, BLSRegressor, PageHinkley
from opgrow.growth.stream_record import StreamEvent, StreamRecord
from opgrow.report.page import page
from opgrow.report.stream import stream_parts
from tests.estimators.test_incremental import small


def test_a_page_has_the_section_where_rows_were_watched():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (1200, 3))
    y = x[:, 0] * np.where(np.arange(1200) < 600, 1, -1)
    for cls, target in ((BLSClassifier, y > 0), (BLSRegressor, y)):
        model = small(cls, drift=PageHinkley(threshold=20))
        for start in range(0, 1200, 200):
            model.partial_fit(x[start : start + 200], target[start : start + 200])
        text = page(model)
        assert text.count("<section") == 8
        assert '<a href="#how-it-went-on">' in text
        assert "1,000 rows came after the first ones" in text
        assert any(event.kind == "drift" for event in model.stream_.events)
        assert "rows from before it" in text
    plain = page(small(BLSClassifier).partial_fit(x, y > 0))
    assert "how-it-went-on" not in plain


def test_every_kind_of_event_is_told():
    record = StreamRecord().noted(500, 100, 12.0, 340).noted(600, 100, 8.0, 500)
    for kind, value in (
        ("drift", 0.03),
        ("drift", 0.0),
        ("drift", 1.0),
        ("grown", 0.25),
        ("tried", -float("inf")),
        ("dropped", 40),
    ):
        record = record.happened(StreamEvent(600, kind, value, 500))
    text = "".join(stream_parts(record, True))
    for words in (
        "count 0.03 times",
        "are forgotten",
        "count as before",
        "better by 25.0 %",
        "40 neurons",
        "share of wrong classes",
    ):
        assert words in text
    assert "No drift was found" in "".join(stream_parts(StreamRecord().noted(9, 9, 1.0, 1), False))
    assert "No rows have come" in "".join(stream_parts(StreamRecord(), False))
