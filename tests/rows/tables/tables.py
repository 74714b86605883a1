"""Tables of other libraries, and what a table holds, for the tests of this folder."""

from __future__ import annotations

import numpy as np

from opgrow.rows.tables import Table


class Polars:
    """A data frame with the methods of polars', which need not be installed."""

    class Series(list):
        to_list = list.copy

    def __init__(self, data):
        self.data, self.columns = data, list(data)

    def get_column(self, name):
        return self.Series(self.data[name])


def assert_same(table: Table, expected: dict[str, list]) -> None:
    assert table.names == list(expected)
    for name, values in expected.items():
        column = table.columns[name]
        text = any(isinstance(value, str) for value in values)
        assert column.dtype == (object if text else np.float64), name
        if text:
            assert column.tolist() == values
        else:
            np.testing.assert_array_equal(column, np.array(values, dtype=np.float64))
