"""Exported C: it compiles without a warning, and says what the model says."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import opgrow
from opgrow import Block, Layer, Network, OperatorSet, export_c
from opgrow.cli import app
from opgrow.engine import reference
from opgrow.estimators import files as persistence
from opgrow.export.c_size import c_size
from opgrow.export.c_text import floating
from opgrow.export.float_emulation import features, head_outputs
from opgrow.export.program import program_of
from opgrow.operators import library, register_activation, registered, unregister
from opgrow.training.scores import probabilities
from tests.export.compiled import COMPILER, MODES, Library, compiled, name_of, needs_compiler, read_by_clang
from tests.networks import in_double

SMALL = {"n_min": 6, "max_layers": 1, "random_state": 0}
CLASSES = load_iris(return_X_y=True)
THREE_MODES: list[dict[str, str]] = [{}, {"weights": "int16"}, {"arithmetic": "integer"}]
NUMBERS = tuple(array[:150] for array in load_diabetes(return_X_y=True))


def as_regressor(network: Network) -> Any:
    """An estimator around a network that was not fitted."""
    estimator = opgrow.HeMLRNRegressor()
    estimator.network_, estimator.n_features_in_ = network, network.n_inputs
    estimator.n_targets_, estimator.single_target_ = network.n_outputs, False
    return estimator


def showing(n_inputs: int, blocks: list[Block], **constants: Any) -> Network:
    """A network whose outputs are the features of its blocks."""
    layer = Layer(blocks)
    network = Network(n_inputs, layer.n_neurons, [layer], **constants)
    network.head.weight[:] = np.eye(layer.n_neurons)
    return network


def randomise(block: Block, generator: torch.Generator, size: float = 0.7) -> Block:
    def normal(like: np.ndarray, spread: float = 1.0, centre: float = 0.0) -> np.ndarray:
        return centre + spread * torch.randn(like.shape, generator=generator).numpy()

    block.weight[:] = normal(block.weight, size)
    if block.has_bias:
        block.bias[:] = normal(block.bias, 0.3)
    if block.norm is not None:
        block.norm.mean[:] = normal(block.norm.mean, 0.2)
        block.norm.variance[:] = normal(block.norm.variance) ** 2 + 0.5
        block.norm.scale[:] = normal(block.norm.scale, 0.2, 1.0)
        block.norm.shift[:] = normal(block.norm.shift, 0.2)
    return block


def expected_outputs(network: Network, x: np.ndarray) -> np.ndarray:
    """The network in double precision, by the reference formulas."""
    return in_double(network, np.asarray(x, np.float32))


# --- the numbers ---


@pytest.fixture(scope="module")
def library_of_all(fitted: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Every estimator in floats, with small weights, and in integers; compiled once."""
    folder, files = tmp_path_factory.mktemp("all"), []
    for name, model in fitted.items():
        x = (CLASSES if name.endswith("Classifier") else NUMBERS)[0]
        for mode in THREE_MODES:
            files.append(folder / f"{name}_{name_of(mode)}.c")
            model.export_c(files[-1], calibration=x, min_agreement=0, **mode)
    read_by_clang(*files)
    return Library(files, "-O0")


@pytest.mark.cpu
@needs_compiler
def test_every_estimator_says_the_same_in_c(fitted: dict[str, Any], library_of_all: Library) -> None:
    library = library_of_all
    for name, model in fitted.items():
        classifies = name.endswith("Classifier")
        x = (CLASSES if classifies else NUMBERS)[0].astype(np.float32)
        expected = model.predict_proba(x) if classifies else model.predict(x).reshape(len(x), -1)
        exact = expected_outputs(model.network_, x)
        exact = probabilities(model.loss_, exact) if classifies else exact
        for mode, bound in (("plain", 1e-5), ("int16", 5e-3), ("integer", 2e-2)):
            scores = library.scores(f"{name}_{mode}", x, expected.shape[1])
            scale = 1.0 if classifies else np.abs(expected).max()
            # Some networks amplify the rounding of single precision: C may do so like the library.
            rounding = np.abs(expected - exact).max() / scale
            # Integer formats may leave out 2 % of the rows, which saturate.
            difference = np.sort(np.abs(scores - exact).max(axis=1))[: None if mode != "integer" else -3]
            assert difference.max() <= max(bound, 10 * rounding) * scale, (name, mode)
            assert rounding < 1e-4
            if not classifies:
                assert not library.has(f"{name}_{mode}_predict")
                continue
            # Rows between two classes may fall to either side where weights are rounded.
            margin = np.diff(np.sort(expected, axis=1)[:, -2:], axis=1)[:, 0]
            sure = margin > (0 if mode == "plain" else 2 * bound)
            actual = model.classes_[library.predict(f"{name}_{mode}", x)]
            assert np.array_equal(actual[sure], model.predict(x)[sure]), (name, mode)


ALL_SETS = [
    OperatorSet(*names)
    for names in itertools.product(registered("nodal"), registered("pool"), registered("activation"))
]


def test_the_sets_tested_here_are_those_of_the_libraries() -> None:
    assert {*library("default"), *library("pygop")} <= set(ALL_SETS)


def normalised(blocks: list[Block], x: np.ndarray) -> list[Block]:
    """Blocks whose batch norms know the features of given rows, as those of a fitted network do."""
    for block in blocks:
        features = block.features(x).astype(np.float64)
        block.norm.mean[:] = features.mean(axis=0)
        block.norm.variance[:] = features.var(axis=0).clip(min=0.01)
    return blocks


@needs_compiler
@pytest.mark.parametrize("n_inputs", [1, 2, 7])
def test_every_operator_set_says_the_same_in_c(
    n_inputs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opgrow.export.heads, "PENALTIES", ())  # the head shows each set by itself
    generator = torch.Generator().manual_seed(n_inputs)
    mean = torch.randn(n_inputs, generator=generator).numpy()
    scale = torch.rand(n_inputs, generator=generator).numpy() + 0.5
    x = torch.randn(60, n_inputs, generator=generator).numpy()
    raw, networks, files = mean + scale * x, {}, []
    for pool in registered("pool"):  # a head that shows all sets at once would be a large matrix
        sets = [s for s in ALL_SETS if s.pool == pool]
        if n_inputs < 3:  # where pools are what may go wrong
            sets = [s for s in sets if s.activation in ("identity", "tanh")]
        blocks = normalised([randomise(Block(n_inputs, 1, s), generator, 0.4) for s in sets], x)
        networks[pool] = showing(n_inputs, blocks, input_mean=mean, input_scale=scale)
        files += [tmp_path / f"{pool}.c", tmp_path / f"{pool}_fixed.c"]
        as_regressor(networks[pool]).export_c(files[-2])
        # Some sets are steep, and the least agreement of all outputs counts.
        options = {"arithmetic": "integer", "calibration": raw, "min_agreement": 0}
        as_regressor(networks[pool]).export_c(files[-1], **options)
    library = Library(files, "-O0")
    for pool, network in networks.items():
        expected = expected_outputs(network, raw)
        names = [str(block.operator_set) for block in network.layers[0]]
        largest = np.maximum(1, np.abs(expected).max(axis=0))
        # Steep operators enlarge the rounding of 16-bit inputs, so single rows may be off by more.
        for name, order, bound in ((pool, np.inf, 1e-5), (f"{pool}_fixed", 2, 5e-3)):
            difference = (library.scores(name, raw, len(names)) - expected) / largest
            if order == 2:  # formats may leave out 2 % of the rows, two of 60
                difference = np.sort(np.abs(difference), axis=0)[:-2]
            error = np.linalg.norm(difference, order, axis=0) / (1 if order > 2 else np.sqrt(len(raw)))
            assert error.max() < bound, {n: e for n, e in zip(names, error, strict=True) if e >= bound}


@pytest.mark.cpu
@needs_compiler
@pytest.mark.parametrize("level", ["-O3", "-Os"])
@pytest.mark.parametrize("weights", ["float32", "int8", "int4"])
def test_floats_are_emulated_bit_for_bit(weights: str, level: str, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(5)
    names = [*((n, "sum", "tanh") for n in registered("nodal")), ("harmonic", "correlation1", "elu")]
    names += [("exponential", "correlation2", "softplus"), ("dog", "maximum", "sigmoid")]
    blocks = [randomise(Block(7, n, OperatorSet(*s), norm=None), generator) for n, s in enumerate(names, 1)]
    blocks.append(
        randomise(Block(7, 6, OperatorSet("gaussian", "sum", "elu"), norm="unit", bias=False), generator)
    )
    layer = Layer(blocks)
    network = Network(7, 3, [layer], input_mean=np.ones(7), input_scale=np.full(7, 0.3), input_bound=3.0)
    network.head.weight[:] = torch.randn(network.head.weight.shape, generator=generator).numpy()
    x = torch.randn(200, 7, generator=generator).numpy() * np.float32([0.1, 1, 1, 1, 1, 1, 1000])
    estimator = as_regressor(network)
    estimator.export_c(tmp_path / "model.c", weights=weights)
    program = program_of(estimator)
    actual = Library([tmp_path / "model.c"], level, ("-ffp-contract=off",)).scores("model", x, 3)
    expected = head_outputs(program, features(program, x, weights), weights)
    assert np.array_equal(actual, expected)


@needs_compiler
def test_every_kind_of_block_norm_and_head(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(3)
    tanh = OperatorSet("harmonic", "sum", "tanh")
    relu = OperatorSet("multiplication", "sum", "relu")
    linear = OperatorSet("multiplication", "sum", "identity")
    tanh_sum = OperatorSet("multiplication", "sum", "tanh")

    def block(n_inputs: int, n_neurons: int, operators: OperatorSet, **options: Any) -> Block:
        return randomise(Block(n_inputs, n_neurons, operators, **options), generator)

    def finished(network: Network) -> Network:
        if isinstance(network.head, Block):
            randomise(network.head, generator)
        else:
            network.head.weight[:] = torch.randn(network.head.weight.shape, generator=generator).numpy()
            network.head.bias[:] = torch.randn(network.n_outputs, generator=generator).numpy()
        return network

    first = [
        block(5, 4, tanh),
        block(5, 3, tanh, norm=None),
        block(5, 3, relu, norm=None, bias=False),
        block(5, 4, relu, norm="unit", bias=False),
        block(5, 4, tanh, norm="unit", bias=False),
        block(5, 1, tanh, bias=False),
        block(5, 1, tanh, bias=False),  # merged with the one before
    ]
    width = sum(one.n_neurons for one in first)
    deep = [Layer([block(width, 6, tanh), block(width, 2, relu)]), Layer([block(8, 5, linear, norm=None)])]
    constants = {
        "output_mean": np.array([100.0, -3.0]),
        "output_scale": np.array([20.0, 0.5]),
    }
    networks = {
        "blocks": showing(5, first),
        "deep": finished(Network(5, 2, [Layer(first), *deep], **constants)),
        "gop": finished(Network(5, 2, [Layer(first)], head_operators=tanh, **constants)),
        "broad": Network(
            5,
            2,
            [
                Layer([block(5, 4, linear, norm=None), block(5, 3, linear, norm=None)]),
                Layer([block(4, 3, tanh, norm=None), block(7, 2, tanh, norm=None)]),
            ],
            broad=True,
        ),
        "wide": Network(  # linear neurons that are composed with what follows, for they outnumber the inputs
            5,
            2,
            [
                Layer([block(5, 9, linear, norm=None, bias=False), block(5, 7, linear)]),
                Layer([block(9, 6, tanh_sum, norm=None), block(16, 4, tanh_sum, norm=None)]),
            ],
            broad=True,
            input_mean=np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
            **constants,
        ),
        "shallow": Network(5, 3),
        "single": Network(5, 1, [Layer([block(5, 1, relu, norm=None)])]),
    }
    for name in ("broad", "wide", "shallow", "single"):
        finished(networks[name])
    x = torch.randn(50, 5, generator=generator).numpy()
    files = []
    for name, network in networks.items():
        for mode in MODES:
            files.append(tmp_path / f"{name}_{name_of(mode)}.c")
            as_regressor(network).export_c(files[-1], calibration=x, min_agreement=0, **mode)
    assert "layer 2" not in (tmp_path / "wide_plain.c").read_text()
    library = Library(files)
    bounds = {"plain": 1e-5, "int16": 1e-3, "int8": 0.1, "integer": 5e-3, "integer_int8": 0.1}
    bounds |= {"int4": 1.0, "integer_int4": 1.0}
    for name, network in networks.items():
        expected = expected_outputs(network, x)
        for mode, bound in bounds.items():
            error = np.abs(library.scores(f"{name}_{mode}", x, network.n_outputs) - expected).max()
            assert error < bound * np.abs(expected).max(), (name, mode, error)


@needs_compiler
def test_rows_of_zeros_have_a_unit_norm_of_zero(tmp_path: Path) -> None:
    relu = OperatorSet("multiplication", "sum", "relu")
    block = randomise(Block(3, 4, relu, norm="unit", bias=False), torch.Generator().manual_seed(0))
    model = as_regressor(showing(3, [block]))
    files = [tmp_path / "unit.c", tmp_path / "fixed.c"]
    model.export_c(files[0])
    model.export_c(files[1], arithmetic="integer", calibration=np.eye(3), min_agreement=0)
    library = Library(files)
    for name in ("unit", "fixed"):
        assert np.array_equal(library.scores(name, np.zeros((1, 3)), 4), np.zeros((1, 4)))


@needs_compiler
def test_a_large_mean_with_a_small_deviation_keeps_its_digits(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    tanh = OperatorSet("multiplication", "sum", "tanh")
    mean, scale = np.array([1000.123456, 5e6 + 0.3]), np.array([0.01, 3.0])
    network = showing(2, [randomise(Block(2, 5, tanh), generator)], input_mean=mean, input_scale=scale)
    x = (mean + scale * torch.randn(40, 2, generator=generator).numpy()).astype(np.float32)
    as_regressor(network).export_c(tmp_path / "means.c")
    as_regressor(network).export_c(tmp_path / "fixed.c", arithmetic="integer", calibration=x)
    library = Library([tmp_path / "means.c", tmp_path / "fixed.c"])
    expected = expected_outputs(network, x)
    assert np.abs(library.scores("means", x, 5) - expected).max() < 1e-5
    assert np.abs(library.scores("fixed", x, 5) - expected).max() < 5e-3
    assert "FIXED_INPUT_BITS {" in (tmp_path / "fixed.h").read_text()


def _reference(block: Block, x: np.ndarray) -> np.ndarray:
    """A block by the plain formulas, in single precision."""
    tensors = (torch.from_numpy(array) for array in (x, block.weight, block.bias))
    return block.norm.apply(reference.features(*tensors, block.operator_set).numpy())


@needs_compiler
def test_extreme_inputs_are_treated_as_the_library_does(fitted: dict[str, Any], tmp_path: Path) -> None:
    extremes = [0.0, 1e4, -1e4, 1e12, -1e12, 1e25, -3e38]
    x = np.array(list(itertools.product(extremes, repeat=4)), np.float32)[::7]
    generator = torch.Generator().manual_seed(1)
    growing = [
        OperatorSet(*names)
        for names in itertools.product(
            ("multiplication", "quadratic", "gaussian", "dog", "exponential", "pygop_quadratic"),
            ("sum", "correlation2", "maximum"),
            ("relu", "elu", "softplus", "sigmoid"),
        )
    ]
    network = showing(4, [randomise(Block(4, 1, operators), generator) for operators in growing])
    as_regressor(network).export_c(tmp_path / "growing.c")
    model = fitted["HeMLGOPClassifier"]
    model.export_c(tmp_path / "model.c")
    model.export_c(tmp_path / "fixed.c", arithmetic="integer", calibration=CLASSES[0])
    library = Library([tmp_path / f"{name}.c" for name in ("growing", "model", "fixed")])
    with np.errstate(all="ignore"):
        features = [_reference(block, x) for block in network.layers[0]]
        expected = np.concatenate(features, axis=1)
        # Shown through the head a value that is not finite spoils the row, so these rows are set apart.
        rows = np.isfinite(expected).all(axis=1)
        assert 10 < rows.sum() < len(rows)
        actual = library.scores("growing", x, len(growing))
        assert np.isnan(actual[~rows]).any(axis=1).all()
        assert np.allclose(actual[rows], expected[rows], rtol=1e-4, atol=1e-4)
    # A sine of millions is noise in single precision; classes are only asked to be classes.
    for name in ("model", "fixed"):
        assert set(library.predict(name, x)) <= {0, 1, 2}


@needs_compiler
def test_a_nan_among_the_inputs_makes_all_scores_nan_and_the_class_minus_one(
    fitted: dict[str, Any], library_of_all: Library
) -> None:
    for (name, model), mode in itertools.product(fitted.items(), THREE_MODES):
        n_inputs, n_outputs, stem = (
            model.network_.n_inputs,
            model.network_.n_outputs,
            f"{name}_{name_of(mode)}",
        )
        x = np.zeros((n_inputs, n_inputs))
        np.fill_diagonal(x, np.nan)
        assert np.isnan(library_of_all.scores(stem, x, n_outputs)).all(), stem
        if hasattr(model, "classes_"):
            assert (library_of_all.predict(stem, x) == -1).all(), stem


@needs_compiler
def test_a_nan_that_no_pool_reads_comes_out_all_the_same(tmp_path: Path) -> None:
    network = showing(1, [Block(1, 2, OperatorSet("gaussian", "correlation1", "tanh"), norm=None)])
    as_regressor(network).export_c(tmp_path / "model.c")
    assert np.isnan(Library([tmp_path / "model.c"]).scores("model", np.array([[np.nan]]), 2)).all()


# --- what the source is like ---


@needs_compiler
@pytest.mark.parametrize("mode", MODES, ids=name_of)
def test_no_warning_at_any_level(mode: dict[str, str], fitted: dict[str, Any], tmp_path: Path) -> None:
    """Nor without optimisation, as the other tests compile."""
    files, defines = [], []
    for name in ("HeMLGOPClassifier", "PLNRegressor", "BLSClassifier", "POPRegressor"):
        x = (CLASSES if name.endswith("Classifier") else NUMBERS)[0]
        files.append(tmp_path / f"{name}.c")
        fitted[name].export_c(files[-1], calibration=x, min_agreement=0, **mode)
        defines += [f"-D{name.upper()}_FLOAT", f"-D{name.upper()}_LABELS"]
    compiled("-O2", *defines, "-shared", "-fPIC", *files, "-o", tmp_path / "made.so")
    compiled("-Os", "-shared", "-fPIC", *files, "-o", tmp_path / "made.so")
    read_by_clang(*defines, *files)


@pytest.mark.parametrize("mode", MODES, ids=name_of)
def test_the_source_has_no_state_no_allocation_and_no_double(
    mode: dict[str, str], fitted: dict[str, Any], tmp_path: Path
) -> None:
    for name, model in fitted.items():
        x = (CLASSES if name.endswith("Classifier") else NUMBERS)[0]
        model.export_c(tmp_path / "model.c", calibration=x, min_agreement=0, **mode)
        source = re.sub(r"/\*.*?\*/", "", (tmp_path / "model.c").read_text(), flags=re.DOTALL)
        assert not re.search(r"\b(double|malloc|free|goto)\b", source)
        assert not re.search(r"\d\.\d*(e[-+]?\d+)?(?![\df.e])\b", source)  # every constant has its f
        for line in source.splitlines():
            if line.startswith("static") and "(" not in line:
                assert line.startswith("static const "), line
        included = set(re.findall(r"#include <(.*?)>", source))
        if "arithmetic" in mode:
            outside = re.sub(r"#ifdef MODEL_FLOAT.*?#endif|sizeof|f_", "", source, flags=re.DOTALL)
            assert not re.search(r"\bfloat\b|\d\.\d|math\.h|f\(", outside)
        allowed = {"float.h", "stdint.h", "avr/pgmspace.h", "arm_acle.h"}  # all of them the compiler's
        assert included <= (allowed | {"math.h"} if "arithmetic" in mode else allowed)


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names registers of x86-64")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
def test_integer_arithmetic_has_no_floating_point_instruction(fitted: dict[str, Any], tmp_path: Path) -> None:
    def assembly(**mode: str) -> str:
        made = tmp_path / "model.o"
        fitted["HeMLGOPClassifier"].export_c(tmp_path / "model.c", calibration=CLASSES[0], **mode)
        # Vector registers are also used to move integers, which is left to the compiler elsewhere.
        compiled("-Os", "-fno-tree-vectorize", "-c", tmp_path / "model.c", "-o", made)
        done = subprocess.run(["objdump", "-d", str(made)], capture_output=True, text=True, check=True)
        return done.stdout

    floating_point = re.compile(r"xmm|ymm|\bf(ld|st|add|mul)")
    assert floating_point.search(assembly())
    assert not floating_point.search(assembly(arithmetic="integer"))


@needs_compiler
@pytest.mark.parametrize("weights", ["int16", "int4"])
def test_integer_arithmetic_never_overflows(weights: str, fitted: dict[str, Any], tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    models = {name: fitted[name] for name in ("HeMLGOPClassifier", "PLNRegressor", "BLSClassifier")}
    for pool in registered("pool"):
        sets = [randomise(Block(4, 1, s), generator) for s in ALL_SETS if s.pool == pool]
        models[pool] = as_regressor(showing(4, sets))
    files = [tmp_path / f"{name}.c" for name in models]
    for file, model in zip(files, models.values(), strict=True):
        rows = torch.randn(30, model.network_.n_inputs, generator=generator).numpy()
        model.export_c(file, arithmetic="integer", weights=weights, calibration=rows, min_agreement=0)
    # An overflow, a wrong shift or an index beyond an array ends the process.
    trap = ("-fsanitize=undefined,bounds", "-fsanitize-undefined-trap-on-error")
    code = (
        "import ctypes, sys, numpy as np\n"
        "library = ctypes.CDLL(sys.argv[1])\n"
        "rng = np.random.default_rng(0)\n"
        "ends = [0, 1, -1, 2**31 - 1, -2**31, 2**16, -2**20]\n"
        "for item in sys.argv[2:]:\n"
        "    name, n = item.split(':')\n"
        "    out = np.zeros(1000, np.int32)\n"
        "    for i in range(300):\n"
        "        x = rng.integers(-2**31, 2**31, int(n)) >> rng.integers(0, 16)\n"
        "        x = np.where(rng.random(int(n)) < 0.2, rng.choice(ends, int(n)), x).astype(np.int32)\n"
        "        getattr(library, name + '_scores')(x.ctypes.data_as(ctypes.c_void_p),\n"
        "            out.ctypes.data_as(ctypes.c_void_p))\n"
    )
    made = tmp_path / "trapping.so"
    compiled("-O1", "-shared", "-fPIC", *trap, *files, "-o", made, flags=["-std=c99"])
    inputs = [f"{name}:{model.network_.n_inputs}" for name, model in models.items()]
    command = [sys.executable, "-c", code, str(made), *inputs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_constants_read_back_as_the_same_floats() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 2000, dtype=np.uint32).view(np.float32)
    for value in [
        *bits[np.isfinite(bits)],
        np.float32(0),
        np.float32(1),
        np.float32(1e-45),
        -np.float32(3e38),
    ]:
        written = floating(float(value))
        assert re.fullmatch(r"-?\d+(\.\d+(e[-+]\d+)?|e[-+]\d+)f", written), written
        assert np.float32(written[:-1]) == value
    with pytest.raises(ValueError, match="does not fit into single precision"):
        floating(1e39)


@needs_compiler
@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes */ /* \\", 'ünsure ??/ "q"\n'],
        [-5, 0, 2**31 - 1],
        [1, 2, 2**40],
        [-1.0, 0.0, 2.0],
    ],
    ids=["text", "integers", "large", "whole floats"],
)
def test_labels_come_out_as_they_are(labels: list[Any], tmp_path: Path) -> None:
    x, codes = CLASSES
    model = opgrow.HeMLRNClassifier(**SMALL).fit(x, np.array(labels)[codes])
    model.export_c(tmp_path / "model.c")
    classes = model.classes_.tolist()
    whole = not isinstance(classes[0], str)
    kind = "int64_t" if whole else "const char *"
    wrapper = tmp_path / "labels.c"
    wrapper.write_text(
        f'#define MODEL_LABELS\n#include "model.h"\n{kind} label(int i);\n'
        f"{kind} label(int i) {{ return model_labels[i]; }}\n"
    )
    library = Library([tmp_path / "model.c", wrapper]).functions
    library.label.restype = ctypes.c_int64 if whole else ctypes.c_char_p
    actual = [library.label(i) for i in range(3)]
    assert actual == (classes if whole else [str(label).encode() for label in classes])


@needs_compiler
def test_feature_names_cannot_break_the_source(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(CLASSES[0], columns=["a */ int x;", "/*", "größe\\", "??/\n"])
    opgrow.HeMLRNClassifier(**SMALL).fit(frame, CLASSES[1]).export_c(tmp_path / "model.c")
    compiled("-c", tmp_path / "model.c", "-o", tmp_path / "model.o")
    assert "größe" in (tmp_path / "model.c").read_text()


@needs_compiler
def test_the_header_is_for_cpp_too_and_an_example_main_runs(fitted: dict[str, Any], tmp_path: Path) -> None:
    model = fitted["HeMLGOPClassifier"]
    model.export_c(tmp_path / "iris.c")
    row = CLASSES[0][100].astype(np.float32)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#define IRIS_LABELS\n#include "iris.h"\n'
        "int main(void)\n{\n"
        f"    const float x[IRIS_N_INPUTS] = {{{', '.join(map(floating, row))}}};\n"
        '    printf("%d\\n", (int)iris_labels[iris_predict(x)]);\n    return 0;\n}\n'
    )
    compiled("-O2", tmp_path / "main.c", tmp_path / "iris.c", "-o", tmp_path / "main")
    printed = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True).stdout
    assert int(printed) == model.predict(row[None])[0]
    assert 'extern "C"' in (tmp_path / "iris.h").read_text()


def test_the_comment_tells_what_the_file_holds(fitted: dict[str, Any], tmp_path: Path) -> None:
    model = fitted["HeMLGOPClassifier"]
    model.export_c(tmp_path / "model.c")
    source = (tmp_path / "model.c").read_text()
    top = source[: source.index("*/")]
    topology, size = model.network_.topology(), model.network_.n_parameters()
    assert f"HeMLGOPClassifier {topology}, {size} parameters" in top
    for block in itertools.chain.from_iterable(model.network_.layers):
        assert str(block.operator_set) in top
    assert "Classes: 0 = 0, 1 = 1, 2 = 2." in top
    constants = int(re.search(r"Constants: (\d+) bytes", top)[1])
    counts = re.findall(r"^static const (float|weight_t) \w+\[(\d+)\]", source, re.MULTILINE)
    assert constants == 4 * sum(int(count) for _, count in counts)


# --- accuracy and size ---


@needs_compiler
def test_small_weights_and_integers_lose_at_most_a_point_on_digits(tmp_path: Path) -> None:
    x, y = load_digits(return_X_y=True)
    train, test = slice(0, 1200), slice(1200, None)
    short = {"n_min": 40, "max_neurons": 80, "max_layers": 1, "epochs": (10, 10), "fine_tune_epochs": 5}
    model = opgrow.HeMLGOPClassifier(n_estimators=1, random_state=0, **short).fit(x[train], y[train])
    files = [tmp_path / f"{name_of(mode)}.c" for mode in MODES]
    for file, mode in zip(files, MODES, strict=True):
        model.export_c(file, calibration=x[train], **mode)
    library, accuracy = Library(files), model.score(x[test], y[test])
    for mode in MODES:
        actual = np.mean(library.predict(name_of(mode), x[test]) == y[test])
        assert actual >= accuracy - (0.01 if mode else 0.0), mode


@needs_compiler
def test_sixty_neurons_for_pima_take_less_than_8_kb(data_home: Path, tmp_path: Path) -> None:
    table = np.genfromtxt(data_home / "paper" / "pima.csv", delimiter=",", skip_header=1)
    model = opgrow.HeMLGOPClassifier(
        preset=None, n_min=40, n_step=20, max_neurons=60, max_layers=1, block_threshold=-1e9, random_state=0
    ).fit(table[:, :-1], table[:, -1].astype(int))
    assert model.network_.topology() == "8-60-2"
    for mode in MODES:
        model.export_c(tmp_path / "pima.c", calibration=table[:, :-1], **mode)
        size = c_size(tmp_path / "pima.c")
        assert size is not None
        assert size.code + size.constants < 8192, mode


@needs_compiler
def test_sizes_are_those_of_the_object_file(fitted: dict[str, Any], tmp_path: Path) -> None:
    fitted["BLSClassifier"].export_c(tmp_path / "model.c")
    size = c_size(tmp_path / "model.c")
    assert size is not None
    source = (tmp_path / "model.c").read_text()
    stated = int(re.search(r"Constants: (\d+) bytes", source)[1])
    arrays = int(re.search(r"Stack: (\d+) bytes", source)[1])
    assert stated <= size.constants < stated + 256
    assert size.stack is None or arrays <= size.stack < arrays + 1024
    assert 100 < size.code < 8000
    (tmp_path / "model.c").write_text("int broken(")
    with pytest.raises(RuntimeError, match="failed"):
        c_size(tmp_path / "model.c")


def test_without_a_compiler_sizes_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert c_size(tmp_path / "model.c") is None


# --- errors ---


def test_errors_are_a_sentence_and_leave_nothing_behind(fitted: dict[str, Any], tmp_path: Path) -> None:
    model, path = fitted["HeMLGOPClassifier"], tmp_path / "model.c"
    with pytest.raises(
        NotFittedError, match="^This PLNRegressor is not fitted: call fit before exporting it.$"
    ):
        opgrow.PLNRegressor().export_c(path)
    with pytest.raises(TypeError, match="Only opgrow's own estimators .* got LogisticRegression"):
        export_c(LogisticRegression(), path)
    for name in ("two words", "1st", "", "a-b", "größe", "x" * 60):
        with pytest.raises(ValueError, match="cannot begin the names of C functions"):
            model.export_c(path, name=name)
    with pytest.raises(ValueError, match="the file name 'my-model' cannot begin"):
        model.export_c(tmp_path / "my-model.c")
    with pytest.raises(ValueError, match="must end in '.c', got 'model.cpp'"):
        model.export_c(tmp_path / "model.cpp")
    with pytest.raises(ValueError, match="weights must be one of .* got 'int2'"):
        model.export_c(path, weights="int2")
    with pytest.raises(ValueError, match="arithmetic must be 'float' or 'integer', got 'fixed'"):
        model.export_c(path, arithmetic="fixed")
    with pytest.raises(ValueError, match="X has 3 features"):
        model.export_c(path, arithmetic="integer", calibration=CLASSES[0][:, :3])
    with pytest.raises(ValueError, match="infinity"):
        model.export_c(path, arithmetic="integer", calibration=np.full((2, 4), np.inf))
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        model.export_c(tmp_path / "nowhere" / "model.c")
    assert list(tmp_path.iterdir()) == []


def test_missing_facts_of_registered_operators_are_named(tmp_path: Path) -> None:
    def swish(x: np.ndarray) -> np.ndarray:
        return x / (1 + np.exp(-x))

    register_activation("swish", torch.nn.functional.silu)
    try:
        network = showing(2, [Block(2, 2, OperatorSet("dog", "sum", "swish"))])
        for arithmetic, facts, message in (
            ("float", {}, "to C: it was registered without its numpy formula, formula="),
            ("float", {"formula": swish}, "to C: it was registered without its C text, c="),
            (
                "integer",
                {"formula": swish, "c": "x / (1.0f + expf(-x))"},
                "to C with integer arithmetic: it was registered without its fixed-point form, fixed=",
            ),
        ):
            unregister("activation", "swish")
            register_activation("swish", torch.nn.functional.silu, **facts)
            sentence = re.escape(f"The activation operator 'swish' cannot be exported {message}")
            with pytest.raises(ValueError, match=sentence):
                as_regressor(network).export_c(tmp_path / "model.c", arithmetic=arithmetic)
    finally:
        unregister("activation", "swish")
    assert list(tmp_path.iterdir()) == []


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    network = Network(2, 1)
    network.head.weight[0, 0] = np.nan
    with pytest.raises(ValueError, match="its head holds values that are not finite"):
        as_regressor(network).export_c(tmp_path / "model.c")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_files(
    fitted: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted["HeMLGOPClassifier"].export_c(tmp_path / "model.c")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*arguments: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        fitted["PLNRegressor"].export_c(tmp_path / "model.c")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


# --- the command line ---


def run(*arguments: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def test_export_from_the_command_line(fitted: dict[str, Any], tmp_path: Path) -> None:
    model, out = tmp_path / "model.safetensors", tmp_path / "iris.c"
    fitted["HeMLGOPClassifier"].save(model)
    header = ",".join(["a", "b", "c", "d"])
    np.savetxt(tmp_path / "rows.csv", CLASSES[0], delimiter=",", header=header, comments="")
    printed = run("export", model, "--format", "c", "--out", out).stdout
    assert "iris.c" in printed
    assert ("bytes of code" in printed) == (COMPILER is not None)
    fitted["HeMLGOPClassifier"].export_c(tmp_path / "again.c", name="iris")
    assert out.read_text() == (tmp_path / "again.c").read_text().replace("again.", "iris.")
    options = ["--weights", "int8", "--arithmetic", "integer", "--calibration", tmp_path / "rows.csv"]
    data = json.loads(run("export", model, "--out", out, *options, "--name", "flower", "--json").stdout)
    assert (data["output"], data["header"]) == (str(out), str(out.with_suffix(".h")))
    assert (data["size"] is None) == (COMPILER is None)
    assert "flower_predict(const int32_t" in out.read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "which", lambda name: None)
        assert "no C compiler was found" in run("export", model, "--out", out).stdout
    fitted["HeMLGOPClassifier"].save(model, sample=False)
    missing = run("export", model, "--out", out, "--arithmetic", "integer", code=2)
    assert missing.stderr.startswith("error: Integer arithmetic needs calibration rows")
    assert missing.stderr.count("\n") == 1


def test_the_inputs_of_a_table_model_are_named(tmp_path: Path) -> None:
    x, y = CLASSES
    table = {"size": x[:, 0], "colour": [("red", "blue", "green")[code] for code in y]}
    model = opgrow.HeMLRNClassifier(**SMALL).fit(table, y)
    persistence.save(model, tmp_path / "model.safetensors")
    run("export", tmp_path / "model.safetensors", "--out", tmp_path / "model.c")
    assert ", ".join(model.table_.get_feature_names_out()) in (tmp_path / "model.c").read_text()
