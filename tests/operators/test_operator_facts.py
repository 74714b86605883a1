"""What every operator states about itself agrees: numpy with torch, slopes with automatic derivatives, codes
with the compiled kernels. The walk is over the registry, so that a new operator is tested by existing.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

import opgrow
from opgrow import operator_sets
from opgrow.operators import FixedActivation, FixedNodal, register_activation, register_nodal, register_pool
from opgrow.operators.registry import built_in, lookup

KINDS = ("nodal", "pool", "activation")
OPERATORS = [lookup(kind, name) for kind in KINDS for name in built_in(kind)]
ENGINE = Path(opgrow.__file__).parent / "engine"
every_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda op: f"{op.kind}-{op.name}")


def arguments(operator, dtype=np.float64, n_inputs=6):
    """Ordinary values, and some beyond all clamps."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(40, n_inputs, 3)) * rng.choice([0.1, 1.0, 8.0], size=(40, 1, 1))
    if operator.kind == "nodal":
        return z.astype(dtype), rng.uniform(-2, 2, (1, n_inputs, 3)).astype(dtype)
    return (z.astype(dtype),)


@every_operator
def test_everything_is_stated(operator):
    missing = {field.name for field in fields(operator) if getattr(operator, field.name) is None}
    if operator.kind == "pool":  # of which a window says everything about floats
        windowed = {"onnx", "fold", "c"}
        assert missing == (windowed if operator.window is not None else {"window", "c"})
    else:
        assert missing <= {"single"}


@every_operator
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_inputs", [1, 2, 6])
def test_numpy_and_torch_say_the_same(operator, dtype, n_inputs):
    values = arguments(operator, dtype, n_inputs)
    actual = operator.formula(*values)
    expected = operator.function(*map(torch.from_numpy, values)).numpy()
    assert actual.dtype == expected.dtype == dtype
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@every_operator
@pytest.mark.parametrize("n_inputs", [1, 2, 6])
def test_slopes_are_the_automatic_derivatives(operator, n_inputs):
    values = arguments(operator, n_inputs=n_inputs)
    leaves = [torch.tensor(np.broadcast_to(v, values[0].shape), requires_grad=True) for v in values]
    expected = torch.autograd.grad(operator.function(*leaves).sum(), leaves)
    slopes = operator.slopes(*values)
    # Of a nodal operator by the weight, which is its second argument, and then by the input.
    actual = slopes[::-1] if operator.kind == "nodal" else (slopes,)
    for slope, gradient in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.broadcast_to(slope, gradient.shape), gradient, rtol=1e-9, atol=1e-9)


@every_operator
def test_the_order_of_c_gives_the_formula(operator):
    if operator.kind == "pool" or operator.single is None:
        return
    values = arguments(operator, np.float32)
    actual = operator.single(*values)
    expected = operator.formula(*(v.astype(np.float64) for v in values))
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_those_of_the_engine(kind):
    header = (ENGINE / "c" / "pools.h").read_text()
    enumerated = re.search(rf"enum {{ ([A-Z0-9_, ]*), OG_N_{kind.upper()}S }};", header)[1].split(", ")
    assert [name.removeprefix("OG_").lower() for name in enumerated] == list(built_in(kind))
    assert [lookup(kind, name).code for name in built_in(kind)] == list(range(len(enumerated)))


@pytest.mark.parametrize("kind", ["nodal", "activation"])
def test_the_engine_walks_over_the_same_operators(kind):
    header = (ENGINE / "c" / "pools.h").read_text()
    macro = re.search(rf"#define OG_FOR_{kind.upper()}S\(X\) ((?:.*\\\n)*.*)", header)[1]
    assert re.findall(r"X\((\w+)\)", macro) == list(built_in(kind))
    functions, slopes = (ENGINE / "c" / "operators.h").read_text(), "slopes" if kind == "nodal" else "slope"
    for name in built_in(kind):
        assert f"OG_INLINE float og_{name}(float " in functions
        assert f" og_{name}_{slopes}(float " in functions


def test_the_engine_includes_every_nodal_operator():
    included = re.findall(r"#define OG_NODAL (\w+)", (ENGINE / "c" / "for_nodals.h").read_text())
    assert included == list(built_in("nodal"))


@pytest.mark.parametrize(("kind", "last"), [("nodal", "pygop_dog"), ("activation", "identity")])
def test_triton_has_a_branch_for_every_operator(kind, last):
    text = (ENGINE / "cuda" / "triton_math.py").read_text()
    codes = {
        name.lower(): int(code)
        for name, code in re.findall(r"^([A-Z_]+) = tl.constexpr\((\d+)\)", text, re.M)
    }
    for name in built_in(kind):
        if name != last:  # the last one is what is left
            assert codes[name] == lookup(kind, name).code
        branches = len(re.findall(rf"== {name.upper()}:", text))
        assert branches == (0 if name == last else 2), name  # the operator and its slope


def test_the_guide_has_every_operator_of_the_paper():
    page = (Path(__file__).parents[2] / "docs" / "growth.md").read_text()
    rows = [re.split(r" *\| *", line)[1:-1] for line in page.splitlines() if line.startswith("| ")]
    table = rows[[row[0] for row in rows].index("nodal") :][:7]
    for column, kind in enumerate(KINDS):
        cells = [row[2 * column] for row in table]
        named = [name for cell in cells[1:] for name in cell.split(", ") if name]
        assert cells[0] == kind
        assert set(named) == {getattr(operators, kind) for operators in operator_sets()}


# --- what users state ---


def psi(y, w):
    return torch.cos(w * y)


@pytest.mark.parametrize(
    ("register", "function", "facts", "error", "message"),
    [
        (
            register_nodal,
            psi,
            {"formula": lambda y, w: np.sin(w * y)},
            ValueError,
            "the numpy formula of",
        ),
        (register_nodal, psi, {"formula": lambda y, w: np.cos(w)[:1]}, ValueError, "has shape"),
        (
            register_nodal,
            psi,
            {"slopes": lambda y, w: (y * w, w * y)},
            ValueError,
            "a slope of nodal",
        ),
        (register_nodal, psi, {"c": 3}, TypeError, "c of nodal operator 'mine' must be of type str, got int"),
        (register_nodal, psi, {"fixed": "text"}, TypeError, "must be of type FixedNodal, got str"),
        (register_nodal, psi, {"onnx": "Cos"}, TypeError, "onnx of nodal operator 'mine' must be a function"),
        (
            register_nodal,
            psi,
            {"window": 2},
            TypeError,
            "cannot state 'window'; facts are: formula",
        ),
        (register_nodal, psi, {"code": 3}, TypeError, "cannot state 'code'"),
        (register_pool, lambda z: z.mean(1), {"window": 1.5}, TypeError, "must be of type int, got float"),
        (
            register_pool,
            lambda z: z.mean(1),
            {"slopes": np.ones_like},
            ValueError,
            "a slope of pool",
        ),
        (register_activation, torch.tanh, {"formula": np.sin}, ValueError, "differs by"),
        (
            register_activation,
            torch.tanh,
            {"fixed": FixedNodal("", lambda *a: a)},
            TypeError,
            "must be of type FixedActivation, got FixedNodal",
        ),
    ],
)
def test_registration_refuses_facts_that_are_wrong(register, function, facts, error, message):
    with pytest.raises(error, match=message):
        register("mine", function, **facts)
    for kind in KINDS:
        with pytest.raises(ValueError, match="unknown"):
            lookup(kind, "mine")


def test_fractional_bits_of_an_activation():
    plain, fine = (
        FixedActivation("", lambda a, z, bits: z),
        FixedActivation("", lambda a, z, bits: z, bits=30),
    )
    assert (plain.result_bits(12), fine.result_bits(12)) == (12, 30)
