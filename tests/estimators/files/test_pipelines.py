"""Pipelines in model files: predictions stay what they were, and nothing but known steps gets in or out."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression, mutual_info_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

import opgrow
from opgrow import HeMLGOPClassifier, HeMLGOPRegressor, TableEncoder, WindowFeatures
from opgrow.estimators.files import packed, read
from opgrow.estimators.files.category_steps import CATEGORY_STEPS
from opgrow.estimators.files.steps import STEPS

N = 60
QUICK = {
    "preset": None,
    "max_layers": 1,
    "max_neurons": 8,
    "n_min": 4,
    "epochs": (2, 2, 2),
    "random_state": 0,
}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(
    {
        "size": GAPS[:, 0],
        "wide": X[:, 1],
        "colour": RNG.choice(np.array(["red", "grün", None], dtype=object), N),
        "kind": RNG.choice(["a", "b"], N),
        "code": RNG.integers(0, 3, N),
        "flag": RNG.random(N) < 0.5,
    }
)
NUMBERS = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
WORDS = make_pipeline(
    SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
)
ORDERED = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)


def classifier():
    return HeMLGOPClassifier(**QUICK)


def fitted(*steps, x=X, y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(*steps, classifier()).fit(x, y)


def back(pipeline, folder):
    opgrow.save(pipeline, folder / "model.safetensors")
    return opgrow.load(folder / "model.safetensors")


ON_NUMBERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((-1, 2), clip=True),
    MaxAbsScaler(),
    RobustScaler(quantile_range=(10, 90), unit_variance=True),
    RobustScaler(with_centering=False),
    QuantileTransformer(n_quantiles=20, output_distribution="normal"),
    Normalizer("l1"),
    PolynomialFeatures(2),
    PolynomialFeatures((2, 3), interaction_only=True, include_bias=False),
    FunctionTransformer(),
    PCA(2),
    PCA(0.9, whiten=True, svd_solver="full"),
    VarianceThreshold(0.9),
    SelectKBest(k=2),
    SelectKBest(mutual_info_classif, k=3),
    SelectKBest(f_regression, k="all"),
    "passthrough",
    make_pipeline(StandardScaler(), make_pipeline(PCA(3), MinMaxScaler())),
    SimpleImputer(),
    WindowFeatures(features=("mean", "difference", "bands"), bands=2),
    WindowFeatures(5, features=["minimum", "maximum"], hysteresis=0),
    WindowFeatures(features=("bands",), bands=(0.1, 0.25, 0.5)),
]
ON_GAPS = [SimpleImputer(strategy=s) for s in ("mean", "median", "most_frequent")]
ON_GAPS += [SimpleImputer(strategy="constant", fill_value=-1.5), SimpleImputer(add_indicator=True)]
ON_FRAMES = [
    ColumnTransformer(
        [("a", NUMBERS, ["size", "wide"]), ("b", WORDS, ["colour"]), ("c", ORDERED, ["kind", "code"])]
    ),
    ColumnTransformer(
        [
            ("a", NUMBERS, make_column_selector(dtype_include=float)),
            ("no", "drop", ["flag"]),
            ("none", PCA(), []),
        ],
        remainder=OrdinalEncoder(),
    ),
    ColumnTransformer([("b", WORDS, ["colour", "kind"]), ("a", NUMBERS, ["size"])], remainder="passthrough"),
    ColumnTransformer([("a", NUMBERS, slice(0, 2)), ("b", OneHotEncoder(drop="if_binary"), [3, 4])]),
    ColumnTransformer([("a", NUMBERS, ["size"]), ("b", OneHotEncoder(drop="first"), ["kind"])]).set_output(
        transform="default"
    ),
    ColumnTransformer([("a", NUMBERS, ["size"]), ("c", ORDERED, ["colour"])]).set_output(transform="pandas"),
    TableEncoder(),
]


def steps_of(step):
    """A step and all those within it."""
    inner = [one for _, one, *_ in getattr(step, "steps", None) or getattr(step, "transformers", None) or ()]
    return {type(step).__name__}.union(*map(steps_of, inner))


def test_all_known_steps_are_tried():
    tried = set().union(*map(steps_of, [*ON_NUMBERS, *ON_GAPS, *ON_FRAMES]))
    assert {*STEPS, *(cls.__name__ for cls in CATEGORY_STEPS)} <= tried


@pytest.mark.parametrize("step", ON_NUMBERS, ids=lambda step: type(step).__name__)
def test_steps_on_numbers_come_back(tmp_path, step):
    pipeline = fitted(step)
    loaded = back(pipeline, tmp_path)
    new = np.random.default_rng(1).normal(size=(40, 5)) * 3
    for x in (X, new):
        np.testing.assert_array_equal(loaded.predict_proba(x), pipeline.predict_proba(x))
    assert [name for name, _ in loaded.steps] == [name for name, _ in pipeline.steps]


@pytest.mark.parametrize("step", ON_GAPS, ids=lambda step: type(step).__name__)
def test_fillings_of_gaps_come_back(tmp_path, step):
    pipeline = fitted(step, x=GAPS)
    loaded = back(pipeline, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(GAPS), pipeline.predict_proba(GAPS))


@pytest.mark.parametrize("step", ON_FRAMES, ids=lambda step: type(step).__name__)
def test_steps_on_frames_come_back(tmp_path, step):
    pipeline = fitted(step, SimpleImputer(), x=FRAME)
    loaded = back(pipeline, tmp_path)
    turned = FRAME[FRAME.columns[::-1]] if pipeline[0] is not ON_FRAMES[3] else FRAME
    for x in (FRAME, FRAME.iloc[:7], turned):
        if hasattr(pipeline[0], "transformers") and isinstance(pipeline[0].transformers[0][2], slice):
            x = FRAME
        np.testing.assert_array_equal(loaded.predict_proba(x), pipeline.predict_proba(x))
    assert list(loaded.feature_names_in_) == list(FRAME.columns)


@pytest.mark.parametrize("first", [TableEncoder(), None], ids=["encoder", "nothing"])
def test_dates_many_categories_and_marked_gaps_come_back(tmp_path, first):
    """Whether a step of the pipeline or its last step encodes them."""
    x = FRAME.assign(
        size=np.where(np.arange(N) % 4 == 0, np.nan, X[:, 0]),
        day=pd.date_range("2024-01-31", periods=N, freq="9D"),
        street=[f"street {i % 40}" for i in range(N)],
    )
    pipeline = fitted(*[] if first is None else [first], x=x)
    loaded = back(pipeline, tmp_path)
    names = list(pipeline[0].get_feature_names_out() if first else pipeline[-1].input_names)
    assert {"size=<missing>", "day: days", "street: share of 1"} <= set(names)
    new = x.assign(street="new", day="2031-12-31", size=np.nan)
    for rows in (x, x[x.columns[::-1]], new):
        np.testing.assert_array_equal(loaded.predict_proba(rows), pipeline.predict_proba(rows))


def test_an_estimator_encodes_gaps_that_steps_leave(tmp_path):
    pipeline = fitted(StandardScaler(), x=GAPS)
    assert pipeline[-1].table_ is not None
    np.testing.assert_array_equal(back(pipeline, tmp_path).predict_proba(GAPS), pipeline.predict_proba(GAPS))


def test_what_is_unknown_is_treated_as_before(tmp_path):
    pipeline = fitted(ON_FRAMES[0], x=FRAME)
    loaded = back(pipeline, tmp_path)
    new = FRAME.assign(colour="new", kind="new")
    np.testing.assert_array_equal(loaded.predict_proba(new), pipeline.predict_proba(new))
    strict = fitted(OneHotEncoder(sparse_output=False), x=FRAME[["kind"]])
    with pytest.raises(ValueError, match="unknown categories"):
        back(strict, tmp_path).predict(new[["kind"]])


def test_numbers_are_predicted_in_another_process(tmp_path):
    pipeline = make_pipeline(StandardScaler(), PCA(3), HeMLGOPRegressor(**QUICK)).fit(X, X[:, 0])
    opgrow.save(pipeline, tmp_path / "model.safetensors", target="size")
    np.save(tmp_path / "x.npy", X)
    code = (
        "import numpy, opgrow; print(opgrow.load('model.safetensors').predict(numpy.load('x.npy')).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == pipeline.predict(X).tolist()


def test_a_saved_pipeline_can_be_saved_again_and_fitted_again(tmp_path):
    pipeline = fitted(ON_FRAMES[2], x=FRAME.drop(columns="size").assign(size=X[:, 0]))
    loaded = back(back(pipeline, tmp_path), tmp_path)
    x = FRAME.assign(size=X[:, 0])
    np.testing.assert_array_equal(loaded.predict_proba(x), pipeline.predict_proba(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert loaded.fit(x, Y).predict(x).shape == (N,)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (
            SplineTransformer(),
            "Step 'splinetransformer' is a SplineTransformer, which a model file cannot hold",
        ),
        (FunctionTransformer(np.tanh), "has func=<ufunc 'tanh'>"),
        (type("Mine", (StandardScaler,), {})(), "is a Mine, which a model file cannot hold"),
        (SelectKBest(lambda x, y: np.ones(x.shape[1]), k=2), "has score_func=<function"),
        (OneHotEncoder(sparse_output=False, max_categories=5), "has max_categories=5"),
    ],
)
def test_other_steps_are_refused_by_name(tmp_path, step, says):
    pipeline = fitted(step)
    with pytest.raises(TypeError) as caught:
        opgrow.save(pipeline, tmp_path / "model.safetensors")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    if "which a model file cannot hold" in says:
        assert all(name in str(caught.value) for name in (*STEPS, "OneHotEncoder", "ColumnTransformer"))
    assert not (tmp_path / "model.safetensors").exists()


def test_other_ends_and_pipelines_that_are_not_fitted_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(TypeError, match="ends in one of opgrow's estimators, got LogisticRegression"):
        opgrow.save(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), path)
    with pytest.raises(TypeError, match="got StandardScaler"):
        opgrow.save(StandardScaler().fit(X), path)
    with pytest.raises(NotFittedError):
        opgrow.save(make_pipeline(StandardScaler(), classifier()), path)
    with pytest.raises(NotFittedError, match="Step 'scale' is not fitted"):
        opgrow.save(Pipeline([("scale", StandardScaler()), ("model", classifier().fit(X, Y))]), path)


def test_a_reader_that_does_not_heed_the_steps_refuses_the_file(tmp_path):
    path = tmp_path / "model.safetensors"
    opgrow.save(fitted(StandardScaler()), path)
    with pytest.raises(ValueError, match="holds a pipeline of scikit-learn"):
        read(path)
    assert read(path, pipelines=True).pipeline is not None


# --- forged files ---


def forged(path, change, tensors=None):
    """The file with a change to its pipeline, sealed as if it had been written so."""
    with safe_open(path, "numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        record = json.loads(file.metadata()["opgrow"])
    del record["checksum"]
    change(record["pipeline"])
    (tensors or (lambda arrays: None))(arrays)
    path.write_bytes(packed(json.dumps(record), arrays))
    return path


def part_of(pipeline, kind):
    return next(part for _, part in pipeline["steps"] if part["kind"] == kind)


@pytest.fixture
def path(tmp_path):
    columns = make_pipeline(StandardScaler(), PolynomialFeatures(2), PCA(3))
    opgrow.save(fitted(*(step for _, step in columns.steps)), tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def set_part(which, **values):
    return lambda pipeline: part_of(pipeline, which).update(values)


def set_parameter(kind, **values):
    return lambda pipeline: part_of(pipeline, kind)["parameters"].update(values)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (set_part("PCA", kind="os.system"), "unknown step 'os.system'"),
        (set_part("PCA", kind="SVC"), "unknown step 'SVC'"),
        (set_part("StandardScaler", n=4), "does not fit 4 columns"),
        (set_part("StandardScaler", n=10**9), "at most"),
        (set_part("StandardScaler", n=-1), "at most"),
        (set_part("StandardScaler", n="5"), "is of type str"),
        (set_part("StandardScaler", names=["a"]), "are not 5 different texts"),
        (set_part("StandardScaler", output="exec"), "the output of a step is 'exec'"),
        (set_parameter("StandardScaler", with_mean="yes"), "the parameter 'with_mean'"),
        (set_parameter("StandardScaler", nosuch=1), "has no parameter 'nosuch'"),
        (set_parameter("PolynomialFeatures", degree=10**6), "the parameter 'degree'"),
        (set_parameter("PolynomialFeatures", degree=20), "takes 21 columns, and gets 53130"),
        (set_parameter("PolynomialFeatures", degree=3), "takes 21 columns, and gets 56"),
        (set_part("PCA", counts={}), "the numbers of a PCA"),
        (lambda pipeline: pipeline["steps"].pop(2), "makes? 21 columns|the steps make"),
        (lambda pipeline: pipeline["steps"].pop(), "does not end in the model"),
        (lambda pipeline: pipeline["steps"][0].__setitem__(0, "pca"), "not different texts"),
        (lambda pipeline: pipeline["steps"][0].__setitem__(0, "a__b"), "not different texts"),
        (lambda pipeline: pipeline.update(format=2), "format 2"),
        (lambda pipeline: pipeline.update(steps=3), "'steps' is of type int"),
    ],
)
def test_forged_descriptions_are_refused_in_one_sentence(path, change, says):
    with pytest.raises(ValueError, match=says) as caught:
        opgrow.load(forged(path, change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"n_channels": 2}, "Windows have 5 numbers, which n_channels=2 does not divide"),
        ({"n_channels": 10**9}, "the parameter 'n_channels'"),
        ({"features": {"tuple": ["mean", "os.system"]}}, "features must be different names"),
        ({"features": "mean"}, "the parameter 'features'"),
        ({"bands": 10**5}, "bands must be an integer from 1 to 64"),
        ({"bands": {"tuple": [0.1, {"float": "nan"}]}}, "bands must be"),
        ({"hysteresis": {"float": "nan"}}, "hysteresis must be a number"),
        ({"features": {"tuple": ["mean"]}}, "columns"),
    ],
)
def test_forged_windows_are_refused_in_one_sentence(tmp_path, parameters, says):
    opgrow.save(fitted(WindowFeatures(bands=2)), tmp_path / "model.safetensors")
    path = forged(tmp_path / "model.safetensors", set_parameter("WindowFeatures", **parameters))
    with pytest.raises(ValueError, match=says) as caught:
        opgrow.load(path)
    assert "\n" not in str(caught.value)


def renamed(old, new):
    return lambda arrays: arrays.update({new: arrays.pop(old)})


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        (lambda arrays: arrays.pop("pipeline.0.mean_"), "does not work|'mean_"),
        (lambda arrays: arrays.pop("pipeline.2.components_"), "has no 'components_'"),
        (lambda arrays: arrays.pop("pipeline.parts"), "no number of parts"),
        (renamed("pipeline.0.mean_", "pipeline.0.nosuch_"), "unknown tensor 'nosuch_'|does not work"),
        (renamed("pipeline.0.mean_", "pipeline.9.mean_"), "belongs to no step|does not work"),
        (lambda arrays: arrays.update({"pipeline.0.mean_": np.zeros(6)}), "does not fit 5 columns"),
        (lambda arrays: arrays.update({"pipeline.0.mean_": np.zeros((5, 1))}), "has shape"),
        (
            lambda arrays: arrays.update({"pipeline.0.mean_": np.zeros(5, np.int64)}),
            "no floating point numbers",
        ),
        (lambda arrays: arrays.update({"pipeline.0.mean_": np.zeros(5, np.float16)}), "data type F16"),
        (lambda arrays: arrays.update({"pipeline.2.components_": np.zeros((4, 21))}), "does not fit"),
    ],
)
def test_forged_tensors_are_refused_in_one_sentence(path, tensors, says):
    with pytest.raises(ValueError, match=says) as caught:
        opgrow.load(forged(path, lambda pipeline: None, tensors))
    assert "\n" not in str(caught.value)


def test_steps_within_steps_and_many_steps_have_an_end(path):
    def nested(pipeline):
        part = {"kind": "passthrough"}
        for _ in range(50):
            part = {"kind": "Pipeline", "steps": [["a", part]]}
        pipeline["steps"].insert(0, ["deep", part])

    def many(pipeline):
        part = {"kind": "FunctionTransformer", "n": 3, "parameters": {}}
        pipeline["steps"][-1:-1] = [[f"s{i}", part] for i in range(2000)]

    with pytest.raises(ValueError, match="more than 1000 steps"):
        opgrow.load(forged(path, many, None))
    with pytest.raises(ValueError, match="more than 10 deep"):
        opgrow.load(forged(path, nested))


def test_a_damaged_file_is_noticed(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        opgrow.load(path)
