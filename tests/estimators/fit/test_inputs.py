"""What estimators say of input that they cannot take."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import opgrow
from tests.rows.tables.tables import Polars

FRAME = pd.DataFrame({"age": [31, np.nan, 52], "far": [1.0, np.nan, 2.0], "sex": ["male", "female", None]})


class PolarsArray(Polars):
    """As scikit-learn sees such a frame."""

    shape = (3, 3)

    def __array__(self, dtype=None, copy=None):
        return np.array(list(zip(*self.data.values(), strict=True)), dtype=dtype or object)


@pytest.mark.parametrize(
    ("data", "beginning"),
    [
        (FRAME, "X holds text in column 'sex', such as 'male': put"),
        (PolarsArray(FRAME.to_dict("list")), "X holds text in column 'sex', such as 'male': put"),
        (FRAME.to_numpy(), "X holds text in column 'x2', such as 'male': put"),
        ([["a", 1], ["b", 2]], "X holds text in column 'x0', such as 'a': put"),
        (np.array([["a"], ["b"]]), "X holds text in column 'x0', such as 'a': put"),
        (FRAME[["age", "far"]], r"X has gaps \(NaN or None\) in column 'age' and 1 more: put"),
        (FRAME[["far", "age"]].to_numpy(), r"X has gaps \(NaN or None\) in column 'x0' and 1 more: put"),
        ([[1, None], [2, 3]], r"X has gaps \(NaN or None\) in column 'x1': put"),
    ],
)
def test_estimators_say_what_to_do_with_a_table(data, beginning):
    remedy = (
        r" an opgrow.TableEncoder in front, as in make_pipeline\(TableEncoder\(\), HeMLRNClassifier\(\)\)"
    )
    y = np.arange(len(data) if isinstance(data, list) else data.shape[0]) % 2
    with pytest.raises(ValueError, match=f"^{beginning}{remedy}, which [a-z ]+$"):
        opgrow.HeMLRNClassifier().fit(data, y)


def test_other_refusals_of_estimators_stay_as_they_are():
    with pytest.raises(ValueError, match="infinity"):
        opgrow.HeMLRNClassifier().fit(FRAME[["age"]].fillna(np.inf), [0, 1, 0])
    with pytest.raises(TypeError, match=r"Sparse data was passed for X.*'\.toarray\(\)'"):
        opgrow.HeMLRNClassifier().fit(scipy.sparse.csr_matrix(np.eye(3)), [0, 1, 0])
    with pytest.raises(ValueError, match="y has missing values"):
        opgrow.HeMLRNClassifier().fit([[1], [2], [3]], [0, 1, None])
