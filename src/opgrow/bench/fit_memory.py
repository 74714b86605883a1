"""The memory that `opgrow fit` takes, measured in a process of its own, beside what `--dry-run` says before.

Tuning is cut short, because its length does not change the memory, and growth ends after some seconds. The
POP family searches only two operator sets, because each of them is trained, and grows all its layers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Measured", "measure_memory", "parse_sizes"]

_MIB = 1 << 20
#: Runs a command and adds, as the last line of its standard error, the most KiB that it has had.
_MEASURING = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
unit = 1024 if sys.platform == "darwin" else 1
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // unit, file=sys.stderr)
sys.exit(code)
"""


@dataclass(frozen=True)
class Measured:
    """One fit; memory in MiB."""

    method: str
    rows: int
    inputs: int
    classes: int
    estimate: int
    measured: int
    topology: str

    HEAD = (
        "| method | rows | inputs | classes | estimate (MiB) | measured (MiB) | ratio |\n" + "|---" * 7 + "|"
    )

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def text(self) -> str:
        """A line of a table."""
        numbers = (self.rows, self.inputs, self.classes, self.estimate, self.measured)
        cells = [self.method, *(f"{n:,}" for n in numbers), f"{self.estimate / self.measured:.2f}"]
        return f"| {' | '.join(cells)} |"


def parse_sizes(text: str) -> list[tuple[int, int, int]]:
    """Sizes such as ``1000x10x2``, rows, inputs and classes, separated by commas."""
    sizes = []
    for item in text.split(","):
        parts = item.strip().split("x")
        if len(parts) != 3 or not all(part.isdecimal() for part in parts):
            raise ValueError(f"SIZES are ROWSxINPUTSxCLASSES, separated by commas, got {text!r}")
        rows, inputs, classes = map(int, parts)
        if inputs < 1 or classes < 2 or rows < 10 * classes:
            raise ValueError(f"{item!r} needs an input, two classes, and ten rows of each")
        sizes.append((rows, inputs, classes))
    return sizes


def measure_memory(
    sizes: Sequence[tuple[int, int, int]], methods: Sequence[str], seconds: float, folder: Path
) -> Iterator[Measured]:
    """Estimate and measure each method on random data of each size, written to a folder."""
    for rows, inputs, classes in sizes:
        table = folder / f"{rows}x{inputs}x{classes}.npz"
        _write(table, rows, inputs, classes)
        for method in methods:
            yield _measured(method, (rows, inputs, classes), table, seconds)
        table.unlink()


def _write(path: Path, rows: int, inputs: int, classes: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, inputs), dtype=np.float32)
    y = np.tanh(x @ rng.standard_normal((inputs, classes), dtype=np.float32)).argmax(axis=1)
    y[:classes] = range(classes)
    np.savez(path, X=x, y=y)


def _measured(method: str, sizes: tuple[int, int, int], table: Path, seconds: float) -> Measured:
    from ..estimators.by_method import estimators_of
    from ..estimators.files import read

    parameters = estimators_of("classification")[method]().get_params()
    short = {"epochs": "[1,0,0]", "fine_tune_epochs": "1", "max_seconds": str(seconds)}
    if "n_min" in parameters and "operators" in parameters:  # as far as they are estimated to grow
        short |= {"n_step": "40", "max_neurons": "120", "max_layers": "1", "block_threshold": "-1e9"}
    if "widths" in parameters:
        sets = [["multiplication", "sum", "tanh"], ["harmonic", "sum", "tanh"]]
        short |= {"operators": json.dumps(sets), "layer_threshold": "-1e9"}
    options = [f"--param={name}={value}" for name, value in short.items() if name in parameters]
    model = table.with_suffix(".safetensors")
    fit = [sys.executable, "-m", "opgrow", "fit", str(table), "--task", "classification"]
    fit += ["--method", method, "--device", "cpu", "--output", str(model), "--json", *options]
    plan = json.loads(_run([*fit, "--dry-run"]).stdout)
    kib = int(_run([sys.executable, "-c", _MEASURING, *fit, "--quiet"]).stderr.split()[-1])
    topology = read(model).estimator.network_.topology()
    model.unlink()
    return Measured(method, *sizes, plan["memory"]["peak"] // _MIB, kib * 1024 // _MIB, topology)


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[0] if done.stderr.strip() else "a fit has failed")
    return done
