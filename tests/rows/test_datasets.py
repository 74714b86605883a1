"""Named data sets: those of scikit-learn, local files, and OpenML without a network."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets
from sklearn.datasets import _openml

from opgrow.rows import datasets

BUNDLED = ["digits", "breast_cancer", "wine", "iris", "diabetes"]


@pytest.fixture(autouse=True)
def no_other_home(monkeypatch):
    monkeypatch.delenv("OPGROW_DATA", raising=False)


@pytest.fixture
def offline(monkeypatch):
    """Make every download fail at once, and collect the addresses asked for."""
    asked = []

    def refuse(request, *args, **kwargs):
        asked.append(request.full_url)
        raise URLError("no network")

    monkeypatch.setattr(_openml, "urlopen", refuse)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # scikit-learn waits between its attempts
    return asked


def check_contract(bunch) -> None:
    assert bunch.data.ndim == 2
    assert bunch.data.dtype == np.float32
    assert np.isfinite(bunch.data).all()
    assert bunch.target.shape == (len(bunch.data),)
    assert len(bunch.feature_names) == bunch.data.shape[1]
    assert all(type(name) is str for name in bunch.feature_names)
    assert bunch.DESCR
    if bunch.task == "classification":
        assert bunch.target.dtype == np.int64
        assert np.unique(bunch.target).tolist() == list(range(len(bunch.target_names)))
        assert all(type(name) is str for name in bunch.target_names)
    else:
        assert bunch.task == "regression"
        assert bunch.target.dtype == np.float64
        assert bunch.target_names is None


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_hold_what_scikit_learn_holds(name):
    bunch = datasets.load(name)
    original = getattr(sklearn.datasets, f"load_{name}")()
    check_contract(bunch)
    np.testing.assert_array_equal(bunch.data, original.data.astype(np.float32))
    np.testing.assert_array_equal(bunch.target, original.target)
    assert (bunch.task == "regression") == (name == "diabetes")


def test_every_set_in_the_data_folder_loads(data_home, offline):
    files = {path.stem for path in data_home.glob("*/*") if path.suffix in (".csv", ".npz")}
    assert files <= set(datasets.available(data_home))
    for name in files:
        check_contract(datasets.load(name, data_home=data_home))


@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [
        ("pima", (768, 8), {"tested_negative": 500, "tested_positive": 268}),
        ("cmc", (1473, 9), {"no-use": 629, "long-term": 333, "short-term": 511}),
        ("yeast", (1484, 8), {"CYT": 463, "NUC": 429, "MIT": 244, "ME3": 163, "ERL": 5}),
    ],
)
def test_the_sets_of_the_paper_have_their_published_classes(data_home, offline, name, shape, counts):
    if not list(data_home.glob(f"**/{name}.csv")):
        pytest.skip(f"needs {name}.csv in the folder with data sets")
    bunch = datasets.load(name, data_home=data_home)
    assert bunch.data.shape == shape
    result = dict(zip(bunch.target_names, np.bincount(bunch.target).tolist(), strict=True))
    assert counts.items() <= result.items()
    assert not offline


def test_local_files_are_found_by_name(tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.csv").write_text("a,kind,target\n1,x,no\n2,y,yes\n?,x,no\n")
    np.savez(tmp_path / "other.npz", X=np.eye(3, dtype=np.float32), y=np.array([2, 0, 1]))
    (tmp_path / "notes.txt").write_text("no data set")
    assert datasets.available(tmp_path)[8:] == ["mine", "other"]

    mine = datasets.load("mine", data_home=tmp_path)
    check_contract(mine)
    assert mine.feature_names == ["a", "kind=x", "kind=y"]
    assert mine.data.tolist() == [[1, 1, 0], [2, 0, 1], [1.5, 1, 0]]
    assert mine.target.tolist() == [0, 1, 0]
    assert mine.target_names == ["no", "yes"]

    monkeypatch.setenv("OPGROW_DATA", str(tmp_path))
    assert datasets.load("other").target.tolist() == [2, 0, 1]


def test_data_home_comes_before_the_environment_variable(tmp_path, monkeypatch):
    for folder, value in (("first", 1), ("second", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.csv").write_text(f"a,target\n{value},0\n{value},1\n")
    monkeypatch.setenv("OPGROW_DATA", str(tmp_path / "second"))
    assert datasets.load("same", data_home=tmp_path / "first").data.tolist() == [[1], [1]]
    assert datasets.load("same").data.tolist() == [[2], [2]]


def test_a_path_to_a_file_is_a_data_set(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("price,rooms\n10.5,1\n20.25,2\n")
    assert datasets.load(path).feature_names == ["price"]  # no column 'target': the last one is it
    path.write_text("target,rooms\n10.5,1\n20.25,2\n")
    bunch = datasets.load(str(path))
    check_contract(bunch)
    assert bunch.feature_names == ["rooms"]
    assert bunch.target.tolist() == [10.5, 20.25]


def test_class_labels_that_do_not_count_from_zero_are_renumbered(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("a,target\n1,7\n2,3\n3,7\n")
    bunch = datasets.load(path)
    assert bunch.target.tolist() == [1, 0, 1]
    assert bunch.target_names == ["3", "7"]


def test_npz_keeps_its_class_names_and_further_arrays(tmp_path):
    many = np.arange(30)  # more whole numbers than infer_task takes for classes, but integers in an NPZ are
    classes = np.array([f"class {i}" for i in many])
    np.savez(
        tmp_path / "a.npz", X=np.ones((30, 2)), y=many, classes=classes, split=many % 2, scale=np.ones(2)
    )
    bunch = datasets.load(tmp_path / "a.npz")
    check_contract(bunch)
    assert bunch.target_names == classes.tolist()
    assert bunch.split.tolist() == (many % 2).tolist()
    assert "scale" not in bunch


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,target\n1,0\n2,\n", "target of .* is missing in 1 rows"),
        ("a,target\n1,no\n2,?\n", "target of .* is missing in 1 rows"),
        ("target\n1\n2\n", "has a single column"),
    ],
)
def test_files_without_features_or_target_are_refused(tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        datasets.load("bad", data_home=tmp_path)


def test_npz_without_a_target_is_refused(tmp_path):
    np.savez(tmp_path / "bad.npz", X=np.ones((2, 2)))
    with pytest.raises(ValueError, match="must hold a target as array 'y'"):
        datasets.load("bad", data_home=tmp_path)


def test_unknown_names_and_absent_files(tmp_path):
    with pytest.raises(ValueError, match=r"no data set 'irises': expected digits, .* yeast"):
        datasets.load("irises", data_home=tmp_path)
    with pytest.raises(ValueError, match=r"no data set '\.\./iris'"):
        datasets.load("../iris", data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no file .*absent\.csv"):
        datasets.load(tmp_path / "absent.csv")
    with pytest.raises(FileNotFoundError, match=r"no file .*absent\.npz"):
        datasets.load(tmp_path / "absent.npz")


# OpenML: answers in its format, laid where scikit-learn keeps what it has downloaded


def put_openml(home: Path, data_id: int, features: dict[str, str], rows: list[str]) -> None:
    """Write the four answers that a data set of OpenML consists of; the last feature is the target."""
    arff = "@relation tiny\n" + "".join(f"@attribute {name} {kind}\n" for name, kind in features.items())
    arff += "@data\n" + "".join(row + "\n" for row in rows)
    described = []
    for i, (name, kind) in enumerate(features.items()):
        nominal = kind.startswith("{")
        feature = {
            "index": str(i),
            "name": name,
            "data_type": "nominal" if nominal else "numeric",
            "is_target": str(i == len(features) - 1).lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        if nominal:
            feature["nominal_value"] = kind.strip("{}").split(",")
        described.append(feature)
    description = {
        "id": str(data_id),
        "name": "tiny",
        "version": "1",
        "description": "A few rows.",
        "format": "ARFF",
        "status": "active",
        "file_id": str(data_id),
        "url": f"https://www.openml.org/data/v1/download/{data_id}/tiny.arff",
        "md5_checksum": hashlib.md5(arff.encode()).hexdigest(),
    }
    qualities = [{"name": "NumberOfInstances", "value": str(float(len(rows)))}]
    answers = {
        f"api/v1/json/data/{data_id}": json.dumps({"data_set_description": description}),
        f"api/v1/json/data/features/{data_id}": json.dumps({"data_features": {"feature": described}}),
        f"api/v1/json/data/qualities/{data_id}": json.dumps({"data_qualities": {"quality": qualities}}),
        f"data/v1/download/{data_id}/tiny.arff": arff,
    }
    for path, text in answers.items():
        file = home / "openml" / "openml.org" / f"{path}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()))


def test_openml_labels_get_the_codes_of_the_local_files(tmp_path, offline):
    classes = "{tested_negative,tested_positive}"
    features = {"preg": "numeric", "mass": "numeric", "class": classes}
    put_openml(
        tmp_path, 37, features, ["6,33.6,tested_positive", "1,?,tested_negative", "8,23.3,tested_positive"]
    )
    bunch = datasets.load("pima", data_home=tmp_path)
    check_contract(bunch)
    assert bunch.feature_names == ["preg", "mass"]
    np.testing.assert_allclose(bunch.data, [[6, 33.6], [1, 28.45], [8, 23.3]], rtol=1e-6)
    assert bunch.target.tolist() == [1, 0, 1]
    assert bunch.target_names == ["tested_negative", "tested_positive"]
    assert not offline


def test_openml_nominal_features_keep_their_numbers(tmp_path, offline):
    features = {"age": "numeric", "education": "{1,2,3,4}", "faith": "{none,some}", "method": "{1,2,3}"}
    put_openml(tmp_path, 23, features, ["24,2,some,1", "45,4,none,3", "30,4,some,2"])
    bunch = datasets.load("cmc", data_home=tmp_path)
    assert bunch.feature_names == ["age", "education", "faith=none", "faith=some"]
    assert bunch.data.tolist() == [[24, 2, 0, 1], [45, 4, 1, 0], [30, 4, 0, 1]]
    assert bunch.target.tolist() == [0, 2, 1]
    assert bunch.target_names == ["no-use", "long-term", "short-term"]


def test_openml_yeast_counts_its_classes_like_the_paper(tmp_path, offline):
    features = {"mcg": "numeric", "class": "{MIT,NUC,CYT,ME1,EXC,ME2,ME3,VAC,POX,ERL}"}
    put_openml(tmp_path, 181, features, ["0.58,MIT", "0.43,CYT", "0.2,ERL"])
    bunch = datasets.load("yeast", data_home=tmp_path)
    assert [bunch.target_names[code] for code in bunch.target] == ["MIT", "CYT", "ERL"]
    assert bunch.target.tolist() == [2, 0, 9]


def test_a_local_file_is_preferred_to_openml(tmp_path, offline):
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "pima.csv").write_text("a,target\n1,1\n2,0\n")
    assert datasets.load("pima", data_home=tmp_path).target.tolist() == [1, 0]
    assert not offline


@pytest.mark.filterwarnings("error")
def test_without_a_network_one_sentence_says_where_a_file_may_be_put(tmp_path, offline):
    with pytest.raises(FileNotFoundError, match=r"put a file pima\.csv .* into '.*home'") as caught:
        datasets.load("pima", data_home=tmp_path / "home")
    assert "no network" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert offline[0].endswith("/api/v1/json/data/37")
