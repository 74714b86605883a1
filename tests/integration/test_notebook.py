"""Progress in a notebook: plain lines on standard error, and nothing where verbose=0."""

from __future__ import annotations

import re

import pytest

nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
pytest.importorskip("ipykernel", reason="needs ipykernel")

FIT = """
from sklearn.datasets import load_iris
from opgrow import HeMLGOPClassifier

settings = dict(n_min=6, n_step=3, epochs=(3, 2), max_layers=1, random_state=0)
clf = HeMLGOPClassifier(verbose={verbose}, **settings).fit(*load_iris(return_X_y=True))
"""


@pytest.mark.slow
def test_a_notebook_shows_a_line_a_step_and_a_summary() -> None:
    cells = [nbformat.v4.new_code_cell(FIT.format(verbose=verbose)) for verbose in (1, 0)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    loud, silent = (cell.outputs for cell in notebook.cells)
    assert silent == []
    assert {output.name for output in loud} == {"stderr"}  # no HTML, no widget
    text = "".join(output.text for output in loud)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()  # notebooks show colours
    assert all("\x1b" not in line for line in lines)  # nothing moves a cursor
    assert any(re.match(r"network 1  accepted  layer 1 block 1 .* s so far", line) for line in lines)
    assert sum(re.match(r"HeMLGOP \d of 5 grew ", line) is not None for line in lines) == 5
    size = r"4-.*-3, [\d,]+ parameters"
    assert re.match(rf"done: the mean of 5 networks, {size}, brier [\d.e-]+ on held-out rows, ", lines[-1])
