"""The polynomial functions of the compiled kernels against numpy in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, vectorize

from opgrow.kernels import cpu_math

pytestmark = pytest.mark.cpu


def over_array(function):
    return vectorize(["float32(float32)"], nopython=True)(function)


def relative_error(found, wanted):
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    tiny = 1e-36  # below, float32 has fewer digits
    return (np.abs(found - wanted) / np.maximum(np.abs(wanted), tiny)).max()


def values(low, high, n=200_001):
    """Evenly spread and random float32 numbers, with many close to zero."""
    rng = np.random.default_rng(0)
    small = np.exp(rng.uniform(np.log(1e-12), np.log(max(abs(low), abs(high))), n)) * rng.choice([-1, 1], n)
    x = np.concatenate([np.linspace(low, high, n), rng.uniform(low, high, n), small]).astype(np.float32)
    return x[(x >= low) & (x <= high)]


@pytest.fixture(scope="module")
def functions():
    names = (
        "exp",
        "expm1",
        "bounded_exp2",
        "bounded_exp2m1",
        "sin_pi",
        "sigmoid",
        "tanh",
        "softplus_negative",
    )
    return {name: over_array(getattr(cpu_math, name)) for name in names}


def test_exp(functions):
    x = values(-80, 80)
    # An argument's rounding is multiplied by the argument: a few units in the last place of x.
    error = np.abs(functions["exp"](x) / np.exp(x.astype(np.float64)) - 1)
    assert (error <= 5e-7 + 2e-7 * np.abs(x)).all()


def test_expm1_keeps_its_digits_near_zero(functions):
    x = values(-1, 1)
    assert relative_error(functions["expm1"](x), np.expm1(x.astype(np.float64))) < 2e-6


def test_exp_far_out_is_finite_and_monotone(functions):
    x = np.float32([-1e30, -1e4, -100, -88, 0, 88, 100, 1e4, 1e30])
    for name in ("exp", "expm1"):
        found = functions[name](x)
        assert np.isfinite(found).all()
        assert (np.diff(found) >= 0).all()
    assert functions["exp"](x)[0] < 1e-37
    assert functions["exp"](x)[-1] > 1e37


def test_bounded_exponentials_clamp_their_argument_to_ten(functions):
    x = values(-30, 30)
    t = (x.astype(np.float64) / np.log(2)).astype(np.float32)
    wanted = np.exp(np.clip(t.astype(np.float64) * np.log(2), -10, 10))
    assert relative_error(functions["bounded_exp2"](t), wanted) < 3e-6
    small = values(-1, 1)
    wanted = np.expm1(small.astype(np.float64) * np.log(2))
    assert relative_error(functions["bounded_exp2m1"](small), wanted) < 2e-6
    far = np.float32([-1e30, -1e3, 1e3, 1e30])
    wanted = np.exp([-10.0, -10.0, 10.0, 10.0])
    np.testing.assert_allclose(functions["bounded_exp2"](far), wanted, rtol=2e-6)
    np.testing.assert_allclose(functions["bounded_exp2m1"](far), wanted - 1, rtol=2e-6)


def test_sine(functions):
    t = values(-1000, 1000)
    exact = t.astype(np.float64)
    wanted = np.sin(np.pi * (exact - 2 * np.round(exact / 2)))
    assert np.abs(functions["sin_pi"](t) - wanted).max() < 5e-7
    near = values(-0.5, 0.5)
    assert relative_error(functions["sin_pi"](near), np.sin(np.pi * near.astype(np.float64))) < 5e-7


def test_sine_and_cosine_together():
    @njit
    def both(t, sine, cosine):
        for j in range(t.size):
            sine[j], cosine[j] = cpu_math.sin_cos_pi(t[j])

    t = values(-100, 100)
    sine, cosine = np.empty_like(t), np.empty_like(t)
    both(t, sine, cosine)
    exact = t.astype(np.float64)
    exact -= 2 * np.round(exact / 2)
    assert np.abs(sine - np.sin(np.pi * exact)).max() < 5e-7
    assert np.abs(cosine - np.cos(np.pi * exact)).max() < 5e-7


def test_sine_of_huge_arguments_stays_a_sine(functions):
    rng = np.random.default_rng(0)
    t = (10.0 ** rng.uniform(5, 38, 100_000) * rng.choice([-1, 1], 100_000)).astype(np.float32)
    found = functions["sin_pi"](t)
    assert np.isfinite(found).all()
    assert (np.abs(found) <= 1).all()


def test_sigmoid(functions):
    x = values(-80, 80)
    wanted = 1 / (1 + np.exp(-x.astype(np.float64)))
    error = np.abs(functions["sigmoid"](x) / wanted - 1)
    assert (error <= 5e-7 + 2e-7 * np.abs(x)).all()
    assert functions["sigmoid"](np.float32([-1e30, 1e30])).tolist() == pytest.approx([0, 1])


def test_tanh(functions):
    x = values(-50, 50)
    assert relative_error(functions["tanh"](x), np.tanh(x.astype(np.float64))) < 2e-6
    found = functions["tanh"](np.float32([-1e30, 1e30]))
    assert found.tolist() == pytest.approx([-1, 1])


def test_softplus_of_the_negative(functions):
    x = values(-80, 80)
    wanted = np.logaddexp(0, -x.astype(np.float64))
    error = np.abs(functions["softplus_negative"](x) / wanted - 1)
    assert (error <= 5e-7 + 2e-7 * np.maximum(x, 0)).all()
    far = functions["softplus_negative"](np.float32([-1e30, 1e30]))
    assert far[0] == np.float32(1e30)
    assert 0 <= far[1] < 1e-37
