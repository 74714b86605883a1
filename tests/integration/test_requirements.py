"""What an installation of the package brings along."""

from __future__ import annotations

import re
from importlib.metadata import requires

LARGE = {"torch", "triton", "numba", "llvmlite", "pandas", "pyarrow", "onnx", "onnxruntime", "ray"}


def test_the_package_alone_brings_nothing_large() -> None:
    always = [line for line in requires("opgrow") or [] if "extra ==" not in line]
    names = {re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in always}
    assert {"numpy", "scikit-learn"} <= names
    assert not names & LARGE
