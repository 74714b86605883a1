"""ONNX models that take the columns of a table: ONNX Runtime predicts what the estimator predicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import opgrow
from opgrow.rows.tables.dates import Reading

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

QUICK: dict[str, Any] = {"preset": None, "n_min": 6, "max_layers": 1, "random_state": 0}
N = 120


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    gap = np.arange(N) % 5 == 0
    return pd.DataFrame(
        {
            "age": np.where(gap, np.nan, rng.normal(size=N).round(3)),
            "size": rng.normal(size=N).astype(np.float32).astype(float),
            "colour 🎉": [None if g else ("red", "", "blue")[i % 3] for i, g in enumerate(gap)],
            "plain": ["x" if i % 2 else "y" for i in range(N)],
            "many": [f"level {i % 45}" if i % 7 else None for i in range(N)],
            "when": [
                None if g else f"2024-{1 + i % 12:02}-{1 + i % 28:02} {i % 24:02}:30"
                for i, g in enumerate(gap)
            ],
            "at": [f"{i % 24:02}:15" for i in range(N)],
            "label": ["one", "two"] * (N // 2),
            "same": ["one"] * N,
        }
    )


def feeds(session: Any, table: pd.DataFrame) -> dict[str, np.ndarray]:
    columns = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    types = {item.name: item.type for item in session.get_inputs()}
    assert [item["input"] for item in columns] == list(types)
    given = {}
    for item in columns:
        values = table[item["column"]]
        if item["holds"] == "text":
            assert types[item["input"]] == "tensor(string)"
            values = np.array([item["gap"] if pd.isna(v) else v for v in values], dtype=object)
        elif item["holds"].startswith("seconds"):
            form = Reading("date" if "1970" in item["holds"] else "time")
            values = np.array([np.nan if pd.isna(v) else form.seconds(v) for v in values])
        else:
            values = values.to_numpy(np.float32)
        given[item["input"]] = values[:, None]
    return given


@pytest.mark.parametrize("name", ["HeMLRNClassifier", "HeMLGOPRegressor"])
def test_columns_are_inputs(name: str, tmp_path: Path) -> None:
    x, y = frame(), np.arange(N) % 2
    with pytest.warns(opgrow.common.errors.TableWarning, match="'same'"):
        model = getattr(opgrow, name)(**QUICK).fit(x, y)
    assert model.export_onnx(tmp_path / "m.onnx").agreement > 0.99
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    new = x.copy()
    new.loc[3, "colour 🎉"] = new.loc[4, "plain"] = new.loc[5, "many"] = "never seen"
    new.loc[6, ["age", "size", "colour 🎉", "plain", "many", "when"]] = None
    with pytest.warns(opgrow.common.errors.TableWarning, match="not seen in fit"):
        expected = model.predict_proba(new) if hasattr(model, "classes_") else model.predict(new)[:, None]
    output = "probabilities" if hasattr(model, "classes_") else "variable"
    actual = session.run([output], feeds(session, new))[0]
    np.testing.assert_allclose(actual, expected, atol=2e-4)
    assert not np.allclose(actual[6], actual[7], atol=1e-3)


def test_a_table_of_numbers_is_one_matrix(tmp_path: Path) -> None:
    x, y = frame()[["age", "size"]], np.arange(N) % 2
    model = opgrow.HeMLRNClassifier(**QUICK).fit(x, y)
    assert model.network_.n_inputs == 3
    model.export_onnx(tmp_path / "m.onnx", calibration=x)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert [(item.name, item.shape) for item in session.get_inputs()] == [("X", ["N", 2])]
    actual = session.run(["probabilities"], {"X": x.to_numpy(np.float32)})[0]
    np.testing.assert_allclose(actual, model.predict_proba(x), atol=2e-4)
