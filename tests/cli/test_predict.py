"""``opgrow predict --interval``: bounds beside the predictions of a regressor."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from opgrow import HeMLGOPClassifier, HeMLGOPRegressor
from tests.cli.commands import refused, run, write_csv

QUICK = {"preset": None, "max_layers": 1, "max_neurons": 20, "random_state": 0}


def saved(folder, n_targets):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    y = x[:, :1] * np.arange(1, n_targets + 1) + 0.1 * rng.normal(size=(120, n_targets))
    model = HeMLGOPRegressor(**QUICK).fit(x, y[:, 0] if n_targets == 1 else y)
    model.save(folder / "model.safetensors")
    write_csv(folder / "rows.csv", ["x0", "x1"], x.tolist())
    return model, x


@pytest.mark.parametrize("n_targets", [1, 2])
def test_bounds_stand_beside_predictions(tmp_path, n_targets):
    model, x = saved(tmp_path, n_targets)
    out = tmp_path / "out.csv"
    run("predict", tmp_path / "model.safetensors", tmp_path / "rows.csv", "--interval", "0.8", "-o", out)
    header, *rows = csv.reader(out.read_text().splitlines())
    ends = [""] if n_targets == 1 else ["_0", "_1"]
    assert header == [f"{kind}{end}" for kind in ("prediction", "low", "high") for end in ends]
    parts = [model.predict(x), *model.predict_interval(x, 0.8)]
    expected = np.concatenate([part.reshape(len(x), -1) for part in parts], axis=1)
    np.testing.assert_allclose(np.array(rows, float), expected, rtol=1e-6)


def test_classes_have_no_interval(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    HeMLGOPClassifier(**QUICK).fit(x, x[:, 0] > 0).save(tmp_path / "model.safetensors")
    write_csv(tmp_path / "rows.csv", ["x0", "x1"], x.tolist())
    error = refused(
        "predict",
        tmp_path / "model.safetensors",
        tmp_path / "rows.csv",
        "--interval",
        "0.9",
        "-o",
        tmp_path / "o.csv",
    )
    assert "--interval needs a regressor, and this model is a HeMLGOPClassifier" in error
    assert not (tmp_path / "o.csv").exists()


def test_a_share_above_one_is_refused(tmp_path):
    saved(tmp_path, 1)
    command = ("predict", tmp_path / "model.safetensors", tmp_path / "rows.csv", "--interval", "90")
    assert "coverage" in refused(*command, "-o", tmp_path / "o.csv")
