"""The scripts of pages, run by node."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import numpy as np

from opgrow.report.live.data import Rows, as_json, live_data
from opgrow.report.live.scripts import EVALUATOR, operator_script, script_of
from opgrow.report.live.table import values_of

NODE = shutil.which("node") or shutil.which("nodejs")
NEEDED = "needs node (Debian: apt-get install nodejs)"


def run(*scripts: str) -> Any:
    """What scripts write to the standard output, as JSON."""
    assert NODE is not None, NEEDED
    text = '"use strict";\n' + "\n".join(scripts)
    done = subprocess.run([NODE, "-"], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def written(expression: str) -> str:
    """A script that writes the value of an expression; what is not finite becomes text."""
    odd = "(k, v) => typeof v === 'number' && !Number.isFinite(v) ? String(v) : v"
    return f"process.stdout.write(JSON.stringify({expression}, {odd}));"


def predictions(estimator: Any, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Outputs, shares and labels (as places) of rows of a user, all of them predicted in JavaScript."""
    matrix = estimator.network_rows(X)
    names = estimator.input_names or [f"x{i}" for i in range(estimator.network_.n_inputs)]
    outputs = [str(i) for i in range(estimator.network_.n_outputs)]
    data = live_data(estimator, Rows(X, matrix), names, outputs)
    values = values_of(estimator, X, matrix)
    assert values is not None
    rows = as_json(values.rows(range(values.n_rows)))
    said = "(({outputs, shares, label}) => [outputs, shares, label])"
    found = run(
        operator_script(estimator.network_),
        *(script_of(name) for name in EVALUATOR),
        f"const model = modelOf({as_json(data)});",
        written(f"{rows}.map((row) => {said}(model.predict(row)))"),
    )
    labels = [row[2] for row in found]
    return (
        np.array([row[0] for row in found], float),
        np.array([row[1] for row in found], float),
        None if labels[0] is None else np.array(labels),
    )
