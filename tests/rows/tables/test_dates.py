"""Dates, times and durations as numbers."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from opgrow.common.errors import TableWarning
from opgrow.rows.tables import TableEncoder


def encoded(values, **more) -> dict[str, np.ndarray]:
    encoder = TableEncoder(**more)
    matrix = encoder.fit_transform({"when": values})
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(again.transform({"when": values}), matrix)
    return dict(zip(encoder.get_feature_names_out().tolist(), matrix.T, strict=True))


@pytest.mark.parametrize(
    "dates",
    [
        pd.Series(pd.to_datetime(["2020-03-02", None, "2020-03-05"])),
        pd.Series(pd.to_datetime(["2020-03-02", None, "2020-03-05"])).dt.tz_localize("UTC"),
        pd.Series(pd.period_range("2020-03-02", periods=4, freq="D"))[[0, 3]],
        [datetime.date(2020, 3, 2), None, datetime.date(2020, 3, 5)],
        np.array(["2020-03-02", "NaT", "2020-03-05"], dtype="datetime64[D]"),
        ["2.3.2020", "5.3.2020"],
        ["2020/03/02", "2020/3/5"],
        ["3/2/20", "3/5/20"],
        ["2020-03-02T00:00:00Z", "2020-03-05 02:00+02:00"],
    ],
)
def test_dates_of_every_kind_are_days_and_places_in_the_week(dates):
    for data in ({"when": dates}, pd.DataFrame({"when": dates})):
        matrix = encoded(data["when"])
        days = matrix["when: days"]
        assert (days[0], days[-1]) == (0, 3)
        angle = np.arctan2(matrix["when: week, sine"], matrix["when: week, cosine"]) / (2 * np.pi) * 7
        assert (angle[-1] - angle[0]) % 7 == pytest.approx(3, abs=1e-5)


def test_what_comes_round_again_is_told_where_it_varies():
    days = [f"2024-{month:02}-01" for month in range(1, 13)]
    matrix = encoded([*days, "2025-01-01"])
    assert list(matrix) == [
        "when: days",
        *(f"when: {p}, {w}" for p in ("year", "week") for w in ("sine", "cosine")),
    ]
    sine, cosine = matrix["when: year, sine"], matrix["when: year, cosine"]
    assert np.hypot(sine, cosine) == pytest.approx(1)
    # December is as far from January as January from February; a year later is the same place.
    steps = np.hypot(np.diff(sine), np.diff(cosine))
    assert steps.max() < 1.15 * steps.min()
    assert (sine[0], cosine[0]) == pytest.approx((sine[-1], cosine[-1]), abs=0.02)
    assert list(encoded(["08:00", "20:00"])) == ["when: hours", "when: day, sine", "when: day, cosine"]


@pytest.mark.parametrize(
    ("values", "hours"),
    [
        ([datetime.timedelta(days=3, hours=1), datetime.timedelta(hours=-1), None], [73, -1, 36]),
        (pd.Series(pd.to_timedelta(["3 days 01:00:00", "-1 days +23:00:00"])), [73, -1]),
        (np.array([3, 4], dtype="timedelta64[h]"), [3, 4]),
        (["36:30", "1:00"], [36.5, 1]),
    ],
)
def test_durations_are_hours(values, hours):
    assert encoded(values)["when: hours"].tolist() == hours


def test_the_order_of_day_and_month_is_read_off_the_training_rows():
    assert encoded(["1/2/2024", "2/2/2024"])["when: days"].tolist() == [0, 31]
    assert encoded(["1/2/2024", "13/2/2024"])["when: days"].tolist() == [0, 12]
    assert encoded(["1.2.2024", "2.2.2024"])["when: days"].tolist() == [0, 1]


@pytest.mark.parametrize(
    "values",
    [["2024-05-31", "soon"], ["1.2.3.4", "1.2.3.5"], ["1/2", "3/4"], ["31.02.2024", "1.3.2024"]],
)
def test_texts_that_are_not_all_dates_are_categories(values):
    assert len(TableEncoder().fit({"when": values}).columns_[0].categories) == 2


def test_dates_can_be_taken_as_categories():
    names = TableEncoder(text=["when"]).fit({"when": [datetime.date(2020, 1, d) for d in (1, 2)]})
    assert names.get_feature_names_out().tolist() == ["when=2020-01-01", "when=2020-01-02"]


def test_gaps_and_strays_of_new_rows_are_medians_and_are_told_of():
    encoder = TableEncoder().fit({"when": ["2024-01-01", "2024-01-02", "2024-01-03", None]})
    assert encoder.get_feature_names_out()[-1] == "when=<missing>"
    with pytest.warns(TableWarning, match="1 of 2 rows have text in 'when' that is no date .* 'soon'"):
        matrix = encoder.transform({"when": ["soon", None]})
    assert matrix[:, [0, -1]].tolist() == [[1, 1], [1, 1]]
    assert (matrix[:, 1:-1] == 0).all()
