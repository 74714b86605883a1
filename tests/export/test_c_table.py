"""C programs that take rows of a table: compiled, they predict what the estimator predicts."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import opgrow
from opgrow.common.errors import TableWarning
from opgrow.rows.tables.dates import Reading
from tests.export.compiled import MODES, Library, name_of, needs_compiler
from tests.export.test_onnx_table import QUICK, N, frame


def codes_in(header: str) -> dict[str, int]:
    return {name: int(code) for name, code in re.findall(r"^    (M_\w+) = (\d+)", header, re.MULTILINE)}


def rows_of(table: pd.DataFrame, header: str, bits: list[int] | None) -> np.ndarray:
    """Rows of a table as a user of the header would write them."""
    codes, columns = codes_in(header), []
    gap: Any = np.nan if bits is None else -(2**31)
    for name in re.findall(r"^ \*\s+row\[\d+\] (.*?): ", header, re.MULTILINE):
        known = "colour 🎉" if name.startswith("colour") else name
        values = table[known]
        prefix = "M_" + re.sub(r"[^A-Z0-9]+", "_", known.upper().encode("ascii", "replace").decode()).strip(
            "_"
        )
        if known in ("age", "size"):
            scale = 1 if bits is None else 2.0 ** bits[len(columns) + (len(columns) and 1)]
            columns.append([gap if pd.isna(v) else v * scale for v in values])
        elif known in ("when", "at"):
            read = Reading("date" if known == "when" else "time")
            columns.append([gap if pd.isna(v) else read.seconds(v) for v in values])
        else:
            text = ["GAP" if pd.isna(v) else v.upper().replace(" ", "_") or "EMPTY" for v in values]
            columns.append([codes.get(f"{prefix}_{t}", -1) for t in text])
    return np.array(columns).T


@needs_compiler
@pytest.mark.parametrize("mode", MODES, ids=name_of)
def test_rows_of_a_table_become_inputs(mode: dict[str, str], tmp_path: Path) -> None:
    x, y = frame(), np.arange(N) % 2
    whole = "arithmetic" in mode
    if whole:
        x = x.drop(columns=["when", "at"])
    with pytest.warns(TableWarning, match="'same'"):
        model = opgrow.HeMLRNClassifier(**QUICK).fit(x, y)
    path = tmp_path / "m.c"
    model.export_c(path, min_agreement=0, **mode)
    header = path.with_suffix(".h").read_text()
    n, width = int(re.search(r"N_COLUMNS (\d+)", header)[1]), model.network_.n_inputs
    bits = None
    if whole:
        single = re.search(r"INPUT_BITS (\d+)", header)
        listed = re.search(r"INPUT_BITS \{(.*)\}", header)
        bits = [int(single[1])] * width if single else [int(b) for b in listed[1].split(",")]
    new = x.copy()
    new.loc[5, "many"] = new.loc[4, "plain"] = "never seen"
    rows = np.ascontiguousarray(rows_of(new, header, bits), np.int32 if whole else np.float64)
    assert rows.shape == (N, n)
    library = Library([path])
    made = np.zeros((N, width), np.int32 if whole else np.float32)
    for row, out in zip(rows, made, strict=True):
        arguments = (part.ctypes.data_as(ctypes.c_void_p) for part in (row, out))
        library.functions.m_encode(*arguments)
    with pytest.warns(TableWarning, match="'plain' that were not seen"):
        expected = model.network_rows(new)
    actual = made if bits is None else np.ldexp(made.astype(float), -np.array(bits))
    np.testing.assert_allclose(actual, expected, atol=1e-5 if bits is None else 1e-3)


def test_dates_need_floating_point(tmp_path: Path) -> None:
    x = frame()[["age", "when"]]
    model = opgrow.HeMLRNClassifier(**QUICK).fit(x, np.arange(N) % 2)
    with pytest.raises(ValueError, match="Integer arithmetic cannot encode dates and times, as .* 'when'"):
        model.export_c(tmp_path / "m.c", arithmetic="integer")
    assert not list(tmp_path.iterdir())
