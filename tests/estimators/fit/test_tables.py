"""``fit(table, y)``: every kind of table and of column, without a word of preparation."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import opgrow
from opgrow import TableEncoder
from opgrow.common.errors import TableWarning
from opgrow.estimators.registry import ESTIMATORS
from opgrow.rows.tables import Table
from tests.estimators.test_estimators import small

QUICK = {"preset": None, "n_min": 4, "max_layers": 1, "fine_tune_epochs": 0, "random_state": 0}
N = 60


def frame() -> pd.DataFrame:
    """A column of every kind, most of them with gaps."""
    rng = np.random.default_rng(0)
    days = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D"))
    gap = np.arange(N) % 4 == 0
    return pd.DataFrame(
        {
            "number": np.where(gap, np.nan, rng.normal(size=N)),
            "large": 1e9 + np.arange(N),
            "nullable": pd.array([None if g else int(i) for i, g in enumerate(gap)], dtype="Int64"),
            "flag": pd.array([None if g else bool(i % 2) for i, g in enumerate(gap)], dtype="boolean"),
            "text": pd.Series([None if g else "abc"[i % 3] for i, g in enumerate(gap)], dtype=object),
            "string": pd.array(["x" if i % 2 else pd.NA for i in range(N)], dtype="string"),
            "category": pd.Categorical(rng.choice([1, 2, 3], N)),
            "many": [f"level {i % 40}" for i in range(N)],
            "date": days.where(~gap),
            "zoned": days.dt.tz_localize("Europe/Berlin"),
            "time": [datetime.time(i % 24, i % 60) for i in range(N)],
            "duration": [datetime.timedelta(hours=i) for i in range(N)],
            "mixed": pd.Series([(1, "one", None, 2.5, True)[i % 5] for i in range(N)], dtype=object),
            "same": ["one"] * N,
            "gone": pd.Series([None] * N, dtype=object),
            "": rng.normal(size=N),
            "odd name, 'quoted' \n 🎉": ["", "🎉", "ß"] * (N // 3),
        }
    )


def targets(cls: type) -> np.ndarray:
    y = np.arange(N) % 3
    return np.array(["a", "b", "c"])[y] if cls.__name__.endswith("Classifier") else y + 0.5


def outputs(model, x) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.predict_proba(x) if hasattr(model, "classes_") else model.predict(x)


def fitted(cls, x, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        return cls(**QUICK, **more).fit(x, y)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_estimator_takes_a_table(name, tmp_path):
    cls, x = ESTIMATORS[name], frame()
    with pytest.warns(TableWarning, match="'same' is left out, because all rows .* and 1 more"):
        model = small(cls).fit(x, targets(cls))
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (17, x.columns.tolist())
    assert model.network_.n_inputs == len(model.table_.get_feature_names_out()) > 40
    assert len(str(model.table_).split("\n")) >= 17
    expected = outputs(model, x)
    model.save(tmp_path / "m.safetensors")
    again = opgrow.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(outputs(again, x), expected)
    np.testing.assert_array_equal(outputs(again, x[x.columns[::-1]]), expected)
    assert model.outside(x).shape == (N,)
    assert np.isfinite(model.score(x, targets(cls)))
    if hasattr(model, "decision_function"):
        assert model.decision_function(x).shape == (N, 3)
    elif model.intervals_ is not None:
        assert all(bound.shape == (N,) for bound in model.predict_interval(x))
    model.report(tmp_path / "r.html", x, targets(cls))
    assert "date: days as a number" in (tmp_path / "r.html").read_text()
    for network_input in ("large", "flag"):
        assert f"{network_input}: number" in str(again.table_)


def as_polars(x):
    return pytest.importorskip("polars").from_pandas(x)


KINDS = {
    "polars": as_polars,
    "lazy polars": lambda x: as_polars(x).lazy(),
    "pyarrow": lambda x: as_polars(x).to_arrow(),
    "narwhals": lambda x: pytest.importorskip("narwhals").from_native(as_polars(x)),
    "arrow stream": lambda x: Stream(as_polars(x)),
    "dictionary": lambda x: as_polars(x).to_dict(as_series=False),
}


class Stream:
    """A frame of which nothing is known but that it speaks Arrow."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_all_libraries_are_the_same(kind):
    # What polars has no type for, or other words for, is left to pandas.
    x = frame().drop(columns=["mixed", "category", "gone", "duration"]).rename(columns={"": "blank"})
    y = targets(opgrow.HeMLRNClassifier)
    model = fitted(opgrow.HeMLRNClassifier, x, y)
    np.testing.assert_array_equal(outputs(model, KINDS[kind](x)), outputs(model, x))
    other = fitted(opgrow.HeMLRNClassifier, KINDS[kind](x), y)
    assert other.network_.digest() == model.network_.digest()
    assert other.feature_names_in_.tolist() == x.columns.tolist()


def test_arrays_have_columns_in_their_order():
    x = frame()[["number", "text", "large"]].to_numpy(dtype=object)
    y = targets(opgrow.HeMLRNClassifier)
    model = fitted(opgrow.HeMLRNClassifier, x, y)
    assert not hasattr(model, "feature_names_in_")
    assert str(model.table_).startswith("x0: number")
    for same in (x.tolist(), [tuple(row) for row in x.tolist()]):
        np.testing.assert_array_equal(outputs(model, same), outputs(model, x))
    text = x.astype(str)
    assert fitted(opgrow.HeMLRNClassifier, text, y).table_.text_columns == ["x0", "x1"]


def test_a_matrix_of_finite_numbers_is_no_table():
    x, y = load_iris(return_X_y=True)
    plain = fitted(opgrow.HeMLRNClassifier, x, y)
    assert plain.table_ is None
    same = [x.tolist(), x.astype(object), pd.DataFrame(x, columns=list("abcd")), scipy.sparse.csr_array(x)]
    for other in [*same, as_polars(pd.DataFrame(x, columns=list("abcd"))), scipy.sparse.coo_matrix(x)]:
        model = fitted(opgrow.HeMLRNClassifier, other, y)
        assert model.table_ is None
        assert model.network_.digest() == plain.network_.digest()
        np.testing.assert_array_equal(model.predict_proba(other), plain.predict_proba(x))
    again = plain.fit(frame(), targets(opgrow.HeMLRNClassifier))
    assert again.table_ is not None
    assert again.fit(x, y).table_ is None
    assert not hasattr(again, "feature_names_in_")
    assert again.network_.digest() == fitted(opgrow.HeMLRNClassifier, x, y).network_.digest()


def test_digits_that_single_precision_would_lose_are_kept():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"stamp": 1.7e9 + rng.permutation(200), "kind": ["a", "b"] * 100})
    y = x["stamp"].to_numpy() - 1.7e9
    model = fitted(opgrow.HeMLRNRegressor, x, y)
    assert model.score(x, y) > 0.99
    assert model.network_rows(x).dtype == np.float64
    small = fitted(opgrow.HeMLRNRegressor, x.assign(stamp=np.arange(200) // 2), y)
    assert small.network_rows(x.assign(stamp=1.0)).dtype == np.float32


def test_a_sparse_matrix_that_does_not_fit_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setattr("opgrow.rows.tables.frames.available_bytes", lambda: 1000)
    with pytest.raises(
        ValueError, match=r"^The sparse matrix of shape \(60, 60\) would take .* leave out columns"
    ):
        opgrow.HeMLRNClassifier(**QUICK).fit(scipy.sparse.eye(N, format="csr"), np.arange(N) % 2)


def test_wishes_are_parameters():
    x, y = frame()[["many", "number"]], targets(opgrow.HeMLRNClassifier)
    wishes = TableEncoder(max_categories=50)
    model = opgrow.HeMLRNClassifier(**QUICK, table=wishes).fit(x, y)
    assert not hasattr(wishes, "columns_")
    assert model.network_.n_inputs == 40 + 2
    copy = clone(model).set_params(table__many="pool", table__max_categories=5, table__gaps="fill").fit(x, y)
    assert copy.network_.n_inputs == 5 + 1 + 1
    assert wishes.many == "target"
    fresh = opgrow.HeMLRNClassifier(**QUICK).set_params(table__numeric=["many"])
    assert fresh.get_params()["table__numeric"] == ["many"]
    numbers = pd.DataFrame({"zip": [1, 2, 3] * 20, "n": range(N)})
    as_text = opgrow.HeMLRNClassifier(**QUICK, table=TableEncoder(text=["zip"])).fit(numbers, y)
    assert as_text.network_.n_inputs == 4
    grid = GridSearchCV(opgrow.HeMLRNClassifier(**QUICK), {"table__max_categories": [5, 50]}, cv=2).fit(x, y)
    assert grid.best_params_["table__max_categories"] in (5, 50)


def test_columns_of_many_levels_are_cross_fitted_in_the_fit():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"noise": [f"level {i}" for i in rng.integers(0, 150, 400)], "n": rng.normal(size=400)})
    y = rng.integers(0, 2, 400)
    model = fitted(opgrow.HeMLRNClassifier, x, y)
    assert model.table_.get_feature_names_out().tolist() == ["noise: share of 1", "n"]
    # With means of its own rows, noise would seem to tell the target: 0.75 of the rows.
    held = fitted(opgrow.HeMLRNClassifier, x[:300], y[:300])
    assert abs(outputs(held, x[:300])[:, 1].std()) < 0.2


def test_pipelines_of_encoders_go_on():
    x, y = frame().drop(columns=["same", "gone"]), targets(opgrow.HeMLRNClassifier)
    alone = fitted(opgrow.HeMLRNClassifier, x, y)
    pipeline = make_pipeline(TableEncoder(), opgrow.HeMLRNClassifier(**QUICK)).fit(x, y)
    assert pipeline.predict(x).shape == alone.predict(x).shape
    columns = make_column_transformer(
        (StandardScaler(), ["large"]), (TableEncoder(), ["text", "date"]), verbose_feature_names_out=False
    ).set_output(transform="pandas")
    model = make_pipeline(columns, opgrow.HeMLRNClassifier(**QUICK)).fit(x, y)
    assert model[-1].feature_names_in_[1].startswith("text=")
    assert model.score(x, y) > 0.3


# --- the tables of the project ---

DATA = Path(os.environ.get("OPGROW_DATA", "/nowhere"))
TABLES = sorted(path for kind in ("classification", "regression") for path in DATA.glob(f"{kind}/*.csv*"))
_ANSWER = """
import sys, numpy as np, pandas as pd, warnings, opgrow
warnings.simplefilter("ignore")
x = pd.read_csv(sys.argv[2]).drop(columns="target")[::int(sys.argv[3])]
model = opgrow.load(sys.argv[1])
answers = model.predict_proba(x) if hasattr(model, "classes_") else model.predict(x)
print(answers.astype(float).tobytes().hex())
"""


@pytest.mark.slow
@pytest.mark.skipif(not TABLES, reason="needs the tables of the folder in OPGROW_DATA")
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name.split(".")[0])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_every_table_as_it_is_read(path, library, tmp_path):
    read = pytest.importorskip(library)
    more = {"infer_schema_length": None} if library == "polars" else {}
    table = read.read_csv(path, **more)
    step = max(1, len(table) // 2000)  # some are sorted by class
    table = table[::step] if library == "pandas" else table.gather_every(step)
    y = table["target"].to_numpy()
    x = table.drop(columns="target") if library == "pandas" else table.drop("target")
    cls = opgrow.HeMLRNClassifier if path.parent.name == "classification" else opgrow.HeMLRNRegressor
    model = fitted(cls, x, y)
    model.save(tmp_path / "m.safetensors")
    command = [sys.executable, "-c", _ANSWER, str(tmp_path / "m.safetensors"), str(path), str(step)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    answers = np.frombuffer(bytes.fromhex(told))
    np.testing.assert_array_equal(outputs(model, x).ravel(), answers)


# --- made-up frames ---

NAMES = st.text(max_size=6)
GAPS = st.sampled_from([None, float("nan"), pd.NA, pd.NaT, np.nan])
VALUES = {
    "float": st.floats(allow_nan=True, allow_infinity=False, width=32),
    "int": st.integers(-(2**40), 2**40),
    "bool": st.booleans(),
    "text": st.text(max_size=4),
    "few": st.sampled_from(["", "a", "🎉", "NaN", "None", " "]),
    "one": st.just("one level"),
    "none": st.none(),
    "date": st.dates(),
    "datetime": st.datetimes(),
    "time": st.times(),
    "duration": st.timedeltas(),
    "mixed": st.one_of(
        st.integers(-9, 9), st.text(max_size=2), st.booleans(), st.floats(-1e300, 1e300) | st.just(np.nan)
    ),
}


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(sorted(VALUES)))
    values = draw(st.lists(VALUES[kind], min_size=20, max_size=20))
    if draw(st.booleans()):
        places = draw(st.sets(st.integers(0, 19), max_size=19))
        values = [draw(GAPS) if i in places else value for i, value in enumerate(values)]
    series = pd.Series(values, dtype=object)
    form = draw(st.sampled_from(["object", "inferred", "category"]))
    if form == "category":
        return series.map(lambda v: v if pd.isna(v) else str(v)).astype("category")
    return series.infer_objects() if form == "inferred" else series


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(NAMES, columns(), min_size=1, max_size=5), st.booleans())
def test_made_up_frames_are_fitted_saved_and_predicted(tmp_path_factory, data, classes):
    x = pd.DataFrame(data)
    y = np.arange(20) % 2 if classes else np.linspace(0, 1, 20)
    cls = opgrow.BLSClassifier if classes else opgrow.BLSRegressor
    model = cls(random_state=0, max_neurons=9)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x, y)
    except ValueError as error:
        if "no column to learn from" not in str(error):
            raise
        for values in Table.from_any(x).columns.values():
            present = {v for v in values.tolist() if v is not None and v == v}
            assert len(present) < 2 or len(present) == sum(v is not None for v in values)
        return
    path = tmp_path_factory.mktemp("made") / "m.safetensors"
    model.save(path)
    again = opgrow.load(path)
    expected = outputs(model, x)
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(outputs(again, x), expected)
    np.testing.assert_array_equal(outputs(again, x[x.columns[::-1]]), expected)
    assert len(outputs(again, x[3:4])) == 1
    assert x.equals(pd.DataFrame(data))
