"""What works where torch is not installed: everything but the parts that are written in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: Hides torch from everything that is imported afterwards.
HIDDEN = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""
MODEL = """
import opgrow
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
model = opgrow.load(sys.argv[1])
print(model.score(X, y) > 0.9, "torch" in sys.modules)
"""


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", HIDDEN + script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    script = """
import opgrow
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
parameters = dict(n_min=6, epochs=(3, 2), fine_tune_epochs=2, max_layers=1, random_state=0)
opgrow.HeMLGOPClassifier(**parameters).fit(X, y).save(sys.argv[1])
"""
    path = tmp_path_factory.mktemp("models") / "iris.safetensors"
    run(script, path)
    return path


def test_fits_and_predictions_need_no_torch(path: Path) -> None:
    assert run(MODEL, path) == "True False\n"


@pytest.mark.parametrize("name", ["PLNClassifier", "BLSClassifier", "POPFastClassifier", "POPMemHRegressor"])
def test_other_methods_fit_without_torch(name: str) -> None:
    script = """
import opgrow
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
parameters = {"max_neurons": 12}
if "POP" in sys.argv[1]:
    sets = [("multiplication", "sum", "tanh"), ("gaussian", "sum", "tanh")]
    parameters = {"widths": (8,), "epochs": (30,), "learning_rates": (0.01,), "operators": sets}
print(getattr(opgrow, sys.argv[1])(random_state=0, **parameters).fit(X, y).score(X, y) > 0.5)
"""
    assert run(script, name) == "True\n"


def test_reports_and_c_files(path: Path, tmp_path: Path) -> None:
    script = """
import opgrow
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
model = opgrow.load(sys.argv[1])
model.report(sys.argv[2] + "/page.html", X, y)
for arithmetic in ("float", "integer"):
    model.export_c(sys.argv[2] + f"/{arithmetic}.c", arithmetic=arithmetic)
"""
    run(script, path, tmp_path)
    assert {file.suffix for file in tmp_path.iterdir()} == {".html", ".c", ".h"}


def test_heads_on_transformers_need_no_torch() -> None:
    script = """
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from opgrow import BLSClassifier, GrowingHead
x, y = load_iris(return_X_y=True)
head = GrowingHead(PCA(2), BLSClassifier(random_state=0)).fit(x, y)
print(head.partial_fit(iter([(x, y)])).score(x, y) > 0.8, "torch" in sys.modules)
"""
    assert run(script) == "True False\n"


def test_the_command_line_needs_no_torch(path: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b,target\n" + "".join(f"{i},{i % 7},{i % 2}\n" for i in range(60)))
    script = """
from opgrow.cli import main
main()
"""
    model = tmp_path / "model.safetensors"
    small = ("-p", "epochs=[1]", "-p", "learning_rates=[0.01]", "-p", "preset=None")
    run(script, "fit", tmp_path / "rows.csv", "-o", model, *small)
    run(script, "predict", model, tmp_path / "rows.csv", "-o", tmp_path / "said.csv")
    assert (tmp_path / "said.csv").exists()
    assert len(run(script, "inspect", model, "--digest").strip()) == 64


def test_what_needs_torch_says_so() -> None:
    script = """
import opgrow
for call in (opgrow.Network(3, 2).to_torch, lambda: opgrow.register_nodal("mine", lambda y, w: y)):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    assert run(script).splitlines() == [
        "A network as a torch module needs torch: pip install 'opgrow[torch]'",
        "Registering an operator needs torch: pip install 'opgrow[torch]'",
    ]
