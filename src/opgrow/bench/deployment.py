"""What a prediction costs where it is made: exported C beside ONNX Runtime, PyTorch and other models as C.

All models see the same rows. The others are sized by their training rows alone: the smallest that is within
half a point of the best of its kind in cross-validation. Every runtime gets one row at a time and one thread;
they are timed in turns, and the medians of their processor times are reported. Accuracy and agreement are
those of the labels that the runtime itself gave.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..common.extras import has, needs
from ..common.threads import single_threaded_libraries
from ..estimators import HeMLGOPClassifier
from ..export.c_size import find_compiler
from ..rows import datasets
from .c_programs import CFunction, build
from .protocols import draw_split

__all__ = ["Deployment", "measure_deployment"]

#: Our models: one as the paper's, of up to 60 neurons, and one that learned from an average.
OURS: dict[str, dict[str, Any]] = {
    "HeMLGOP, up to 60 neurons": {"n_min": 40, "n_step": 20, "max_neurons": 60, "max_layers": 1},
    "HeMLGOP, compact": {"preset": "compact"},
}
#: Exports to C, by what is said of them.
EXPORTS: dict[str, dict[str, str]] = {
    "C, float32": {},
    "C, int16 weights": {"weights": "int16"},
    "C, int8 weights": {"weights": "int8"},
    "C, integers, int16 weights": {"arithmetic": "integer"},
    "C, integers, int8 weights": {"arithmetic": "integer", "weights": "int8"},
}
TREES = (1, 3, 5, 10, 20, 50, 100)
HIDDEN = (4, 8, 16, 32, 60)
#: Cross-validated accuracy that the smallest model may lack to the best of its kind.
TOLERANCE = 0.005
#: Seconds that a runtime of Python is timed for in a turn.
_TURN = 0.05


@dataclass(frozen=True)
class Row:
    """A model in a runtime; its bytes are code and constants, or the file (None: no such thing)."""

    model: str
    runtime: str
    accuracy: float
    n_bytes: int | None
    microseconds: float
    agreement: float


@dataclass(frozen=True)
class Deployment:
    """All rows, and a line for each thing that was left out."""

    dataset: str
    n_train: int
    n_test: int
    n_inputs: int
    rows: list[Row]
    skipped: list[str]

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    def markdown(self) -> str:
        """The table, in the order of the models."""
        head = ("Model", "Runtime", "Accuracy (%)", "Bytes", "µs a row", "Labels as in Python (%)")
        lines = [f"| {' | '.join(head)} |", "|---|---|--:|--:|--:|--:|"]
        for row in self.rows:
            size = "" if row.n_bytes is None else f"{row.n_bytes:,}"
            cells = (row.model, row.runtime, f"{100 * row.accuracy:.1f}", size, _figure(row.microseconds))
            lines.append(f"| {' | '.join(cells)} | {100 * row.agreement:.1f} |")
        rows = f"{self.n_train} rows to learn from and {self.n_test} to test"
        about = f"{self.dataset}: {self.n_inputs} inputs, {rows}"
        return "\n".join([about, "", *lines])


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@dataclass(frozen=True)
class _Candidate:
    """A model in a runtime, before it is timed; ``labels`` are indices of classes."""

    model: str
    runtime: str
    labels: np.ndarray
    expected: np.ndarray
    n_bytes: int | None
    seconds: Callable[[], float]


class _Bench:
    """Rows, a folder for files, a compiler, and what was left out."""

    def __init__(self, name: str, data_home: str | None, folder: Path, seed: int) -> None:
        bunch = datasets.load(name, data_home)
        if bunch.task != "classification":
            raise ValueError(f"bench deploy compares classifiers, and {name!r} is a data set for regression")
        split = draw_split(bunch.target, seed)
        train = split.train if split.validation is None else np.concatenate([split.train, split.validation])
        x = np.asarray(bunch.data, np.float32)
        self.x, self.y = x[train], bunch.target[train]
        self.x_test, self.y_test = x[split.test], bunch.target[split.test]
        self.folder, self.seed = folder, seed
        self.skipped: list[str] = []
        self.compiler = find_compiler()
        if self.compiler is None:
            self.skipped.append("C: no C compiler was found; install gcc or clang, or set CC")

    def has(self, package: str, extra: str) -> bool:
        if has(package):
            return True
        line = needs("This peer", package, extra)
        if line not in self.skipped:
            self.skipped.append(line)
        return False

    # --- ours ---

    def ours(self, name: str, settings: dict[str, Any]) -> Iterator[_Candidate]:
        model = HeMLGOPClassifier(random_state=self.seed, **settings).fit(self.x, self.y)
        described = f"{name} ({model.network_.topology()}, {model.network_.n_parameters():,} parameters)"
        expected = self._codes(model)
        for runtime, options in EXPORTS.items():
            yield from self._compiled(described, runtime, expected, partial(self._export, model, options))
        if self.has("onnx", "onnx") and self.has("onnxruntime", "onnx"):
            yield self._onnx(described, model, expected)
        if self.has("torch", "torch"):
            yield self._torch(described, model, expected)
        yield self._predict(described, model, expected)

    def _torch(self, described: str, model: Any, expected: np.ndarray) -> _Candidate:
        import torch

        network = model.network_.to_torch()

        def label(row: np.ndarray) -> int:
            with torch.no_grad():
                return int(network(torch.from_numpy(row)).argmax())

        return self._python(described, "PyTorch", label, expected)

    def _export(self, model: Any, options: dict[str, str], path: Path) -> CFunction:
        model.export_c(path, name="model", calibration=self.x, min_agreement=0, **options)
        if "arithmetic" not in options:
            return CFunction(path, "model_predict")
        text = path.with_suffix(".h").read_text()
        found = re.search(r"#define MODEL_INPUT_BITS \{?([-\d, ]+)", text)
        assert found is not None
        return CFunction(path, "model_predict", "int32_t", tuple(map(int, found[1].split(","))))

    def _onnx(self, described: str, model: Any, expected: np.ndarray) -> _Candidate:
        import onnxruntime

        path = self.folder / "model.onnx"
        model.export_onnx(path, min_agreement=0)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path.read_bytes(), options)

        def label(row: np.ndarray) -> int:
            return int(session.run(["label"], {"X": row})[0][0])

        return self._python(described, "ONNX Runtime", label, expected, path.stat().st_size)

    # --- others ---

    def others(self) -> Iterator[_Candidate]:
        forests = {n: RandomForestClassifier(n, min_samples_leaf=3, random_state=self.seed) for n in TREES}
        n, forest = self._smallest(forests)
        expected = self._codes(forest)
        name = f"random forest ({n} trees)"
        yield from self._m2cgen(name, forest, expected)
        yield from self._emlearn(name, forest, expected, method="inline", dtype="float")
        yield self._predict(name, forest, expected)
        mlps = {n: _scaled(MLPClassifier((n,), max_iter=1000, random_state=self.seed)) for n in HIDDEN}
        n, mlp = self._smallest(mlps)
        expected = self._codes(mlp)
        name = f"MLP ({n} hidden)"
        yield from self._emlearn(name, _on_raw_inputs(mlp), expected)
        yield self._predict(name, mlp, expected)
        linear = _scaled(LogisticRegression(max_iter=1000)).fit(self.x, self.y)
        expected = self._codes(linear)
        yield from self._m2cgen("logistic regression", _on_raw_inputs(linear), expected)
        yield self._predict("logistic regression", linear, expected)

    def _smallest(self, models: dict[int, Any]) -> tuple[int, Any]:
        """The smallest model that is about as good as the best, by cross-validation on the training rows."""
        folds = StratifiedKFold(5, shuffle=True, random_state=self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            scores = {n: cross_val_score(m, self.x, self.y, cv=folds).mean() for n, m in models.items()}
            chosen = next(n for n, score in scores.items() if score >= max(scores.values()) - TOLERANCE)
            return chosen, models[chosen].fit(self.x, self.y)

    def _m2cgen(self, name: str, model: Any, expected: np.ndarray) -> Iterator[_Candidate]:
        if not self.has("m2cgen", "bench"):
            return
        import m2cgen

        def write(path: Path) -> CFunction:
            n_classes = len(model.classes_)
            text = m2cgen.export_to_c(model)
            face = _MANY if "void score(" in text else _TWO
            path.write_text(text + face % {"n": n_classes})
            return CFunction(path, "model_predict", "double")

        yield from self._compiled(name, "C by m2cgen", expected, write)

    def _emlearn(self, name: str, model: Any, expected: np.ndarray, **options: str) -> Iterator[_Candidate]:
        if not self.has("emlearn", "bench"):
            return
        with np.errstate():  # which importing it changes for the whole process
            import emlearn

        def write(path: Path) -> CFunction:
            with chdir(path.parent):  # it leaves files behind where it works
                converted = emlearn.convert(model, **options)
            converted.save(file=str(path.with_name("emlearn_model.h")), name="emlearn_model")
            path.write_text(_EMLEARN % {"n": self.x.shape[1]})
            return CFunction(path, "model_predict", flags=(f"-I{emlearn.includedir}",))

        yield from self._compiled(name, "C by emlearn", expected, write)

    # --- runtimes ---

    def _compiled(
        self, name: str, runtime: str, expected: np.ndarray, write: Callable[[Path], CFunction]
    ) -> Iterator[_Candidate]:
        """A model as C; what another package or the compiler cannot do is left out with its reason."""
        if self.compiler is None:
            return
        folder = self.folder / f"{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        try:
            program = build(write(folder / "model.c"), self.x_test, self.compiler)
        except (RuntimeError, NotImplementedError, TypeError, AttributeError, ValueError) as error:
            self.skipped.append(f"{name}, {runtime}: {' '.join(str(error).split())[:200]}")
            return
        yield _Candidate(name, runtime, program.labels(), expected, program.n_bytes, program.seconds)

    def _predict(self, name: str, model: Any, expected: np.ndarray) -> _Candidate:
        return self._python(name, "predict, Python", lambda row: int(model.predict(row)[0]), expected)

    def _python(
        self,
        name: str,
        runtime: str,
        label: Callable[[np.ndarray], int],
        expected: np.ndarray,
        n_bytes: int | None = None,
    ) -> _Candidate:
        rows = [self.x_test[i : i + 1].copy() for i in range(len(self.x_test))]

        def seconds() -> float:
            started, calls = time.process_time(), 0
            while (taken := time.process_time() - started) < _TURN:
                for row in rows[:8]:
                    label(row)
                calls += len(rows[:8])
            return taken / calls

        return _Candidate(name, runtime, np.array([label(row) for row in rows]), expected, n_bytes, seconds)

    def _codes(self, model: Any) -> np.ndarray:
        return np.asarray(model.predict(self.x_test))


#: Below the output of m2cgen: what makes a class of its scores.
_TWO = """
int model_predict(const double *x)
{
    return score((double *)x) > 0.0;
}
"""
_MANY = """
int model_predict(const double *x)
{
    double out[%(n)d];
    int best = 0;
    score((double *)x, out);
    for (int i = 1; i < %(n)d; i++) {
        if (out[i] > out[best]) best = i;
    }
    return best;
}
"""
_EMLEARN = """
#include "emlearn_model.h"

int model_predict(const float *x)
{
    return emlearn_model_predict(x, %(n)d);
}
"""


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _on_raw_inputs(pipeline: Any) -> Any:
    """The model of a pipeline with the scaler before it in its own weights."""
    scaler, model = pipeline[0], deepcopy(pipeline[-1])
    if hasattr(model, "coefs_"):
        first = model.coefs_[0] / scaler.scale_[:, None]
        model.intercepts_[0] = model.intercepts_[0] - scaler.mean_ @ first
        model.coefs_[0] = first
    else:
        model.coef_ = model.coef_ / scaler.scale_
        model.intercept_ = model.intercept_ - model.coef_ @ scaler.mean_
    return model


def measure_deployment(
    name: str,
    data_home: str | None,
    repeats: int,
    seed: int,
    folder: Path,
    tell: Callable[[str], None] = lambda line: None,
) -> Deployment:
    """Fit, compile and time all models on a data set; files go to an empty folder.

    ``tell`` hears what is being done, which takes a minute or two.
    """
    bench = _Bench(name, data_home, folder, seed)
    candidates: list[_Candidate] = []
    for described, settings in OURS.items():
        tell(f"{described}: fitting and exporting")
        candidates += bench.ours(described, settings)
    tell("others: choosing sizes, fitting and exporting")
    candidates += bench.others()
    tell(f"timing {len(candidates)} rows {repeats} times, in turns")
    rows = _timed(candidates, bench.y_test, repeats)
    return Deployment(name, len(bench.x), len(bench.x_test), bench.x.shape[1], rows, bench.skipped)


def _timed(candidates: Sequence[_Candidate], target: np.ndarray, repeats: int) -> list[Row]:
    times: list[list[float]] = [[] for _ in candidates]
    with single_threaded_libraries():
        for candidate in candidates:
            candidate.seconds()
        for _ in range(repeats):
            for taken, candidate in zip(times, candidates, strict=True):
                taken.append(candidate.seconds())
    return [
        Row(
            c.model,
            c.runtime,
            float(np.mean(c.labels == target)),
            c.n_bytes,
            1e6 * float(np.median(taken)),
            float(np.mean(c.labels == c.expected)),
        )
        for c, taken in zip(candidates, times, strict=True)
    ]
