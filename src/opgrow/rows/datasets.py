"""Named data sets, ready for an estimator: a float32 matrix, labels or numbers, and names.

Some come with scikit-learn, three small tables of the HeMLGOP paper (pima, cmc, yeast) come from OpenML, and
any CSV or NPZ file in a folder of yours is a data set under its own name. A local file is always preferred to
the network, so that experiments run offline.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
from sklearn.utils import Bunch

from opgrow.rows.tables import Table, TableEncoder, infer_task, read_table
from opgrow.rows.tables.files import read_npz

__all__ = ["BUNDLED", "available", "in_folder", "load", "load_table"]

HOME_VARIABLE = "OPGROW_DATA"
ENDINGS = (".csv.gz", ".csv", ".npz")


@dataclass(frozen=True)
class _Bundled:
    """A data set that comes with scikit-learn."""

    loader: Callable[[], Bunch]
    task: str
    about: str


@dataclass(frozen=True)
class _OpenML:
    """A data set of OpenML; its classes in the order of their codes, whichever way it is obtained."""

    data_id: int
    classes: dict[str, str]  # label at OpenML to the name of the class
    about: str


def _same(*labels: str) -> dict[str, str]:
    return {label: label for label in labels}


_BUNDLED = {
    "digits": _Bundled(
        sklearn.datasets.load_digits,
        "classification",
        "Handwritten digits, 8 x 8 pixels (Alpaydin & Kaynak, 1998; UCI; comes with scikit-learn).",
    ),
    "breast_cancer": _Bundled(
        sklearn.datasets.load_breast_cancer,
        "classification",
        "Breast cancer Wisconsin, diagnostic (Wolberg et al., 1993; UCI; comes with scikit-learn).",
    ),
    "wine": _Bundled(
        sklearn.datasets.load_wine,
        "classification",
        "Chemical analysis of wines of three cultivars (Forina, 1991; UCI; comes with scikit-learn).",
    ),
    "iris": _Bundled(
        sklearn.datasets.load_iris,
        "classification",
        "Iris flowers (Fisher, 1936; comes with scikit-learn).",
    ),
    "diabetes": _Bundled(
        sklearn.datasets.load_diabetes,
        "regression",
        "Progression of diabetes after one year (Efron et al., 2004; comes with scikit-learn).",
    ),
}
_OPENML = {
    "pima": _OpenML(
        37,
        _same("tested_negative", "tested_positive"),
        "Onset of diabetes among Pima women (Smith et al., 1988; OpenML 37).",
    ),
    "cmc": _OpenML(
        23,
        {"1": "no-use", "2": "long-term", "3": "short-term"},
        "Contraceptive method choice (Lim, Loh & Shih, 2000; UCI; OpenML 23).",
    ),
    "yeast": _OpenML(
        181,
        _same("CYT", "NUC", "MIT", "ME3", "ME2", "ME1", "EXC", "VAC", "POX", "ERL"),
        "Localisation sites of yeast proteins (Horton & Nakai, 1996; UCI; OpenML 181).",
    ),
}


def available(data_home: str | os.PathLike[str] | None = None) -> list[str]:
    """List the names that `load` knows.

    Parameters
    ----------
    data_home : str or path-like, optional
        A folder with data sets; the one named by the environment variable ``OPGROW_DATA`` is listed as well.

    Returns
    -------
    list of str
        The data sets of scikit-learn, those of the paper, then those found in the folders.

    Examples
    --------
    >>> available()[:8]
    ['digits', 'breast_cancer', 'wine', 'iris', 'diabetes', 'pima', 'cmc', 'yeast']
    """
    local = {_name_of(path) for path in _local_files(data_home)}
    names = [*_BUNDLED, *_OPENML]
    return names + sorted(local.difference(names))


def load(name: str | os.PathLike[str], data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Load a data set by its name or from a file.

    Parameters
    ----------
    name : str or path-like
        - digits, breast_cancer, wine, iris, diabetes: come with scikit-learn.
        - pima, cmc, yeast: from a local file if there is one, otherwise from OpenML.
        - NAME of any ``NAME.csv``, ``NAME.csv.gz`` or ``NAME.npz`` in ``data_home`` or a folder directly in
          it.
        - A path to a table file that `opgrow.data.read_table` reads.

        The target of a table is its column ``target``, or else its last one.
    data_home : str or path-like, optional
        A folder with data sets, and where OpenML's files are kept. The folder named by the environment
        variable ``OPGROW_DATA`` is searched after it.

    Returns
    -------
    sklearn.utils.Bunch
        - ``data``, float32 of shape (n_rows, n_features): text is one-hot encoded, and missing values are
          replaced by the column's median, as by `opgrow.data.TableEncoder`;
        - ``target`` of shape (n_rows,): class codes from 0 (int64), or numbers (float64);
        - ``feature_names``, list of str; ``target_names``, list of str, or None for regression;
        - ``task``, "classification" or "regression" (see `opgrow.data.infer_task`; integers and text in array
          ``y`` of an NPZ file are always classes); ``DESCR``, a line about the data and its source;
        - further arrays of an NPZ file with one value per row, such as ``split``, under their own names.

    Raises
    ------
    ValueError
        If the name is not known, or a file is not what it should be.
    FileNotFoundError
        If a file does not exist, or OpenML is needed and cannot be reached.

    Examples
    --------
    >>> iris = load("iris")
    >>> iris.data.shape, iris.task, iris.target_names
    ((150, 4), 'classification', ['setosa', 'versicolor', 'virginica'])
    """
    text, found = _found(name, data_home)
    if isinstance(found, _Bundled):
        return _from_sklearn(found)
    if found is None:
        return _encoded(_from_openml(text, data_home))
    bunch = _from_file(found, _OPENML.get(text))
    return _encoded(bunch) if "table" in bunch else bunch


def load_table(name: str | os.PathLike[str], data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Load a data set as it is, with its text and its gaps: for encoders that may see training rows only.

    Parameters
    ----------
    name, data_home
        As for `load`.

    Returns
    -------
    sklearn.utils.Bunch
        ``table``, a `opgrow.data.Table`, or a float32 matrix where the source is one (NPZ files, and the data
        sets of scikit-learn); ``target``, ``target_names``, ``task`` and ``DESCR`` as of `load`.

    Examples
    --------
    >>> load_table("iris").table.shape
    (150, 4)
    """
    text, found = _found(name, data_home)
    if isinstance(found, _Bundled):
        bunch = _from_sklearn(found)
    elif found is None:
        bunch = _from_openml(text, data_home)
    else:
        bunch = _from_file(found, _OPENML.get(text))
    table = bunch["table"] if "table" in bunch else bunch["data"]
    return Bunch(table=table, **{key: bunch[key] for key in ("target", "target_names", "task", "DESCR")})


#: Names of the data sets that come with scikit-learn.
BUNDLED = tuple(_BUNDLED)


def in_folder(folder: str, data_home: str | os.PathLike[str] | None = None) -> list[str]:
    """Names of the data sets in a folder directly in ``data_home``; an empty name means all folders."""
    files = _local_files(data_home)
    return sorted({_name_of(path) for path in files if not folder or path.parent.name == folder})


def _found(
    name: str | os.PathLike[str], data_home: str | os.PathLike[str] | None
) -> tuple[str, _Bundled | Path | None]:
    """The name as text, and where its data set is: in scikit-learn, in a file, or (None) at OpenML."""
    text = os.fspath(name)
    if not isinstance(text, str):
        raise TypeError(f"The name of a data set is text, got {name!r}.")
    if text in _BUNDLED:
        return text, _BUNDLED[text]
    if text.lower().endswith((".csv", ".csv.gz", ".npz", ".parquet")):
        return text, Path(text).expanduser()
    path = next((path for path in _local_files(data_home) if _name_of(path) == text), None)
    if path is None and text not in _OPENML:
        raise ValueError(
            f"There is no data set {text!r}: expected {', '.join(available(data_home))}, "
            f"a NAME.csv or NAME.npz in data_home or ${HOME_VARIABLE}, or a path to such a file."
        )
    return text, path


def _name_of(path: Path) -> str:
    return next(path.name.removesuffix(ending) for ending in ENDINGS if path.name.endswith(ending))


def _homes(data_home: str | os.PathLike[str] | None) -> list[Path]:
    homes = [home for home in (data_home, os.environ.get(HOME_VARIABLE)) if home]
    return [Path(home).expanduser() for home in homes]


def _local_files(data_home: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield the data files in order of preference: the folder itself, then those directly in it."""
    for home in _homes(data_home):
        if home.is_dir():
            folders = [home, *sorted(path for path in home.iterdir() if path.is_dir())]
            for folder in folders:
                yield from sorted(path for path in folder.iterdir() if path.name.endswith(ENDINGS))


def _from_sklearn(bundled: _Bundled) -> Bunch:
    raw = bundled.loader()
    names = getattr(raw, "target_names", None)
    return Bunch(
        data=raw.data.astype(np.float32),
        target=raw.target.astype(np.int64 if bundled.task == "classification" else np.float64),
        feature_names=[str(name) for name in raw.feature_names],
        target_names=None if names is None else [str(name) for name in names],
        task=bundled.task,
        DESCR=bundled.about,
    )


def _from_file(path: Path, described: _OpenML | None = None) -> Bunch:
    about = described.about if described else f"Read from {path.name}."
    names = list(described.classes.values()) if described else None
    if path.suffix.lower() == ".npz":
        return _from_npz(path, about, names)
    table = read_table(path)
    target = "target" if "target" in table.columns else table.names[-1]
    return _from_table(table.drop(target), table.columns[target], about, names, owner=repr(str(path)))


def _from_npz(path: Path, about: str, class_names: list[str] | None) -> Bunch:
    # Not by way of a table: a matrix of images would be copied to float64 and back for nothing.
    arrays = read_npz(path)
    if "y" not in arrays:
        raise ValueError(f"{str(path)!r} must hold a target as array 'y', and holds {', '.join(arrays)}.")
    matrix, values = arrays["X"], arrays["y"]
    if not matrix.size:
        raise ValueError(f"{str(path)!r} has no data rows.")
    if "classes" in arrays:
        class_names = [str(name) for name in arrays["classes"]]
    task = infer_task(values) if values.dtype.kind == "f" else "classification"
    target, target_names = _encode_target(values, task, class_names, owner=repr(str(path)))
    bunch = Bunch(
        data=matrix.astype(np.float32, copy=False),
        target=target,
        feature_names=arrays["feature_names"].tolist(),
        target_names=target_names,
        task=task,
        DESCR=about,
    )
    further = {key: a for key, a in arrays.items() if a.shape == (len(matrix),) and key not in ("X", "y")}
    return Bunch(**{**further, **bunch})


def _from_table(
    features: Table, values: np.ndarray, about: str, class_names: list[str] | None, owner: str
) -> Bunch:
    if not features.columns:
        raise ValueError(f"{owner} has a single column: expected features and a target.")
    task = infer_task(values)
    target, target_names = _encode_target(values, task, class_names, owner)
    return Bunch(table=features, target=target, target_names=target_names, task=task, DESCR=about)


def _encoded(bunch: Bunch) -> Bunch:
    """A data set with its table as a matrix."""
    encoder = TableEncoder(max_categories=100, many="pool", gaps="fill")
    encoder.learn(bunch["table"], keep_constant=True)
    data = encoder.transform(bunch["table"])
    names = encoder.get_feature_names_out().tolist()
    rest = {key: bunch[key] for key in ("target", "target_names", "task", "DESCR")}
    return Bunch(data=data, feature_names=names, **rest)


def _encode_target(
    values: np.ndarray, task: str, class_names: list[str] | None, owner: str
) -> tuple[np.ndarray, list[str] | None]:
    """Number the classes from 0; `class_names` count if the values are their codes or their names."""
    if values.dtype == object:
        missing = np.array([value is None for value in values])
    else:
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    if missing.any():
        raise ValueError(
            f"The target of {owner} is missing in {missing.sum()} rows: fill it in or leave them out."
        )
    if task == "regression":
        return values.astype(np.float64), None
    if class_names is not None:
        codes = dict(zip(class_names, range(len(class_names)), strict=True))
        codes |= {str(code): code for code in codes.values() if str(code) not in codes}
        texts = [_label(value) for value in values.tolist()]
        if all(text in codes for text in texts):
            return np.array([codes[text] for text in texts], dtype=np.int64), class_names
    distinct, target = np.unique(values, return_inverse=True)
    return target.astype(np.int64), [_label(value) for value in distinct.tolist()]


def _label(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _from_openml(name: str, data_home: str | os.PathLike[str] | None) -> Bunch:
    described = _OPENML[name]
    home = None if data_home is None else os.fspath(Path(data_home).expanduser())
    try:
        with warnings.catch_warnings():
            # Each attempt of several warns; the error below says it once.
            warnings.filterwarnings("ignore", message="A network error occurred")
            raw = sklearn.datasets.fetch_openml(
                data_id=described.data_id, data_home=home, as_frame=False, parser="liac-arff"
            )
    except (OSError, HTTPException) as error:
        places = (
            " or ".join(repr(str(folder)) for folder in _homes(data_home)) or "a folder given as data_home"
        )
        raise FileNotFoundError(
            f"Data set {name!r} could not be fetched from OpenML ({error}): put a file {name}.csv with a "
            f"column 'target' into {places}."
        ) from error
    columns = {
        feature: _openml_column(raw.data[:, i], raw.categories.get(feature))
        for i, feature in enumerate(raw.feature_names)
    }
    labels = np.array([described.classes.get(label, label) for label in raw.target], dtype=object)
    owner = f"OpenML's data set {described.data_id}"
    return _from_table(Table(columns), labels, described.about, list(described.classes.values()), owner)


def _openml_column(values: np.ndarray, categories: list[str] | None) -> np.ndarray:
    """Undo the ordinal codes of a nominal feature: its labels, as numbers if they all are, else as text."""
    values = values.astype(np.float64)
    if categories is None:
        return values
    labels = [None if np.isnan(code) else categories[int(code)] for code in values]
    try:
        return np.array([np.nan if label is None else float(label) for label in labels])
    except ValueError:
        return np.array(labels, dtype=object)
