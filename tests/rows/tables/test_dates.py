"""Dates are no numbers: they are refused, or left out."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from opgrow.rows.tables import Table, TableEncoder


@pytest.mark.parametrize(
    "dates",
    [
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])).dt.tz_localize("UTC"),
        pd.Series(pd.period_range("2020", periods=2, freq="Y")),
        [datetime.date(2020, 1, 1), None],
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    ],
    ids=["timestamps", "zoned", "periods", "dates", "numpy"],
)
def test_dates_are_refused_by_the_encoder_and_can_be_left_out(dates):
    for data in ({"when": dates, "n": [1, 2]}, pd.DataFrame({"when": dates, "n": [1, 2]})):
        with pytest.raises(ValueError, match="Column 'when' holds dates or times, such as '20.*--drop"):
            TableEncoder().fit(data)
        assert TableEncoder().fit_transform(Table.from_any(data).drop("when")).tolist() == [[1], [2]]
        names = TableEncoder(text=["when"]).fit(data).get_feature_names_out()
        assert names[0].startswith("when=2020-01-01")


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        (["2024-05-31", "2024-06-01"], True),
        (["2024-05-31 12:30", None, "2024-05-31T12:30:59.5Z"], True),
        (["31.05.2024", "1.6.2024"], True),
        (["5/31/24", "6/1/24"], True),
        (["2024/05/31"], True),
        (["12:30", "23:59:59"], True),
        ([datetime.timedelta(days=3, hours=1), datetime.timedelta(days=1)], True),
        (np.array([3, 4], dtype="timedelta64[h]"), True),
        (["2024-05-31", "soon"], False),
        (["1.2.3.4", "1.2.3.5"], False),
        (["12", "2024"], False),
        (["1/2", "3/4"], False),
    ],
)
def test_texts_that_are_dates_or_times(values, refused):
    table = {"when": values}
    if refused:
        with pytest.raises(ValueError, match="holds dates or times"):
            TableEncoder().fit(table)
    else:
        assert TableEncoder().fit(table).columns_[0].categories
