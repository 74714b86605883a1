"""The model files that are mutated: every method, both kinds of targets, encoder, pipeline, older formats."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
from pandas import DataFrame
from safetensors import safe_open
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)

from opgrow import PageHinkley, estimators
from opgrow.common.errors import TableWarning
from opgrow.estimators.files import packed, save
from opgrow.rows.tables import TableEncoder

__all__ = ["make_bases"]

FIXTURES = Path(__file__).parents[1] / "fixtures"
QUICK = {
    "n_min": 4,
    "n_step": 2,
    "max_neurons": 6,
    "max_layers": 2,
    "widths": (4, 3),
    "operators": [("harmonic", "sum", "tanh"), ("multiplication", "maximum", "sigmoid")],
    "learning_rates": (0.01,),
    "epochs": (2,),
    "fine_tune_epochs": 1,
    "block_threshold": -10.0,
    "layer_threshold": -10.0,
    "random_state": 0,
}


def in_half_precision(path: Path) -> bytes:
    """A model file with its parameters in half precision."""
    with safe_open(path, "numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text = json.loads(file.metadata()["opgrow"])
    half = {n: a.astype(np.float16) if a.dtype == np.float32 else a for n, a in arrays.items()}
    return packed(json.dumps({key: value for key, value in text.items() if key != "checksum"}), half)


def make_pipeline_base(folder: Path, table: dict[str, list], labels: np.ndarray) -> None:
    """A pipeline with most kinds of steps, on the same table."""
    numbers = make_pipeline(
        SimpleImputer(add_indicator=True),
        PolynomialFeatures(2, include_bias=False),
        SelectKBest(k=2),
        StandardScaler(),
        PCA(2),
    )
    texts = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"),
        OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
    )
    columns = ColumnTransformer(
        [("numbers", numbers, ["size"]), ("texts", texts, ["colour"])],
        remainder=QuantileTransformer(n_quantiles=10),
    )
    cls = estimators.HeMLGOPClassifier
    model = cls(**{key: value for key, value in QUICK.items() if key in cls._get_param_names()})
    pipeline = Pipeline([("columns", columns), ("scale", MinMaxScaler()), ("model", model)])
    save(
        pipeline.fit(DataFrame(table).astype({"colour": object}), labels),
        folder / "Pipeline.safetensors",
        target="y",
    )


def make_bases(folder: Path) -> None:
    """Fit small models and save them, beside the table that the last of them was fitted to."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    y = x[:, 0] * x[:, 1]
    for name in estimators.__all__:
        cls = getattr(estimators, name)
        known = cls._get_param_names()
        model = cls(**{key: value for key, value in QUICK.items() if key in known})
        target = np.where(y > 0.3, "high", np.where(y < -0.3, "low", "mid")) if "Class" in name else y
        model.fit(x, target).save(folder / f"{name}.safetensors")
    table = {"size": x[:, 0].tolist(), "wide": x[:, 1].tolist(), "colour": ["red", "blue", None, "ü"] * 10}
    labels = (y > 0).astype(int)
    cls = estimators.HeMLGOPClassifier
    model = cls(**{key: value for key, value in QUICK.items() if key in cls._get_param_names()})
    table |= {
        "when": [f"2024-{1 + i % 12:02}-{1 + i % 28:02} 0{i % 9}:30" for i in range(40)],
        "many": [f"level {i % 13}" for i in range(40)],
        "gaps": [None if i % 3 else float(i) for i in range(40)],
        "same": ["one"] * 40,
    }
    model.set_params(table=TableEncoder(max_categories=10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # of the column that is left out
        model.fit(table, labels)
    save(model, folder / "Table.safetensors", target="y")
    rows = zip(*table.values(), labels.tolist(), strict=True)
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    (folder / "table.csv").write_text("\n".join([",".join([*table, "y"]), *lines]))
    (folder / "Half.safetensors").write_bytes(in_half_precision(folder / "HeMLGOPClassifier.safetensors"))
    make_pipeline_base(folder, {name: table[name] for name in ("size", "wide", "colour")}, labels)
    pipeline = make_pipeline(
        TableEncoder(max_categories=10), StandardScaler(), clone(model).set_params(table=None)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        save(pipeline.fit(table, labels), folder / "TablePipeline.safetensors", target="y")
    many = estimators.PLNClassifier(random_state=0, max_layers=1)
    many.fit(np.repeat(x, 10, axis=0), [f"class {i}" for i in range(200)] * 2)
    many.save(folder / "ManyClasses.safetensors")
    stream = estimators.BLSClassifier(
        max_neurons=10, n_min=5, drift=PageHinkley(threshold=5.0), random_state=0
    )
    for start in range(0, 40, 20):
        span = slice(start, start + 20)
        stream.partial_fit(np.repeat(x[span], 5, axis=0), np.repeat(labels[span] ^ (start > 0), 5))
    stream.save(folder / "Stream.safetensors", sums=True)
    for path in FIXTURES.glob("*.safetensors"):
        shutil.copy(path, folder)
