"""Installs opgrow as users do, in environments of their own, and fits there: `make install-check`.

Usage: python packaging/check_install.py [CASE ...], where build is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS = str(ROOT / "constraints.txt")
#: Packages that nobody has to install for a fit on a CPU.
UNWANTED = {"torch", "triton", "numba", "llvmlite", "pandas", "pyarrow", "onnx", "ziglang", "cmake", "ninja"}
FIT = f"""
import importlib.metadata
from sklearn.datasets import load_iris
import opgrow
X, y = load_iris(return_X_y=True)
settings = dict(epochs=(2,), learning_rates=(0.01,), fine_tune_epochs=1, random_state=0)
fitted = opgrow.HeMLGOPClassifier(**settings).fit(X, y)
fitted.save("model.safetensors")
assert (opgrow.load("model.safetensors").predict(X) == fitted.predict(X)).all()
installed = {{each.name for each in importlib.metadata.distributions()}}
unwanted = installed & {UNWANTED!r}
assert not unwanted, unwanted
assert fitted.score(X, y) > 0.8
"""


def run(*command: str | Path, folder: Path, **variables: str) -> None:
    # Constraints by the environment reach pip's build environments as well.
    pinned = {"PIP_CONSTRAINT": CONSTRAINTS, "PIP_BUILD_CONSTRAINT": CONSTRAINTS}
    environment = os.environ | pinned | variables
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def fit_in(folder: Path, *installation: str | Path, **variables: str) -> None:
    """Install something in a new environment, and fit there."""
    place = folder / "environment"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    pip = (python, "-m", "pip", "-qq", "--disable-pip-version-check", "install", "--no-compile")
    run(*pip, *installation, folder=folder, **variables)
    run(python, "-I", "-c", FIT, folder=folder)


def sources(folder: Path) -> Path:
    """The source distribution."""
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT, folder=folder)
    [archive] = folder.glob("*.tar.gz")
    return archive


def wheel(folder: Path) -> None:
    """From the source distribution to a wheel, and nothing but the wheel is installed."""
    archive = sources(folder)
    build = (sys.executable, "-m", "pip", "-qq", "wheel", "--no-deps", "--wheel-dir", folder)
    run(*build, archive, folder=folder)
    [built] = folder.glob("*.whl")
    fit_in(folder, built)


def editable(folder: Path) -> None:
    """An editable installation of the unpacked source distribution."""
    run("tar", "--extract", "--file", sources(folder), folder=folder)
    [unpacked] = folder.glob("opgrow-*/")
    fit_in(folder, "--editable", unpacked)


def without_compiler(folder: Path) -> None:
    """No compiler, CMake or ninja is on the path: all of them come from PyPI."""
    empty = folder / "empty"
    empty.mkdir()
    fit_in(folder, sources(folder), PATH=str(empty), CC="")


CASES: dict[str, Callable[[Path], None]] = {
    "wheel": wheel,
    "editable": editable,
    "without-compiler": without_compiler,
}


def main() -> None:
    for name in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            CASES[name](Path(folder))
        print(f"{name}: installed and fitted", flush=True)


if __name__ == "__main__":
    main()
