"""Arrays, moments, one-hot targets and the validation split."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from opgrow.rows import preparation
from opgrow.rows.preparation import as_array, moments, one_hot, split_rows, standardized


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_tensors_become_arrays(dtype):
    tensor = torch.tensor([[0, 1], [1, 1]]).to(dtype)
    result = as_array(tensor)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result.astype(float), [[0, 1], [1, 1]])


def test_tensors_with_gradients_become_arrays_and_the_rest_is_left_alone():
    np.testing.assert_array_equal(as_array(torch.ones(2, requires_grad=True)), [1, 1])
    for other in ([1, 2], None, np.ones(3)):
        assert as_array(other) is other


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 5)) * [1, 1e6, 1e-6, 3, 1] + [0, 1e6, 1e-6, 1e5, 0]
    x[:, 4] = 0.1  # constant, and not exactly representable
    return x, rng.uniform(0.1, 3, 500)


def test_moments_are_scikit_learns(table):
    x, weight = table
    mean, scale = moments(x, weight)
    scaler = StandardScaler().fit(x, sample_weight=weight)
    np.testing.assert_allclose(mean, scaler.mean_, rtol=1e-12)
    np.testing.assert_allclose(scale, scaler.scale_, rtol=1e-9)
    assert scale[4] == 1


def test_moments_do_not_depend_on_chunks(table, monkeypatch):
    x, weight = table
    whole = moments(x, weight)
    standard = standardized(x, *whole)
    monkeypatch.setattr(preparation, "_CHUNK_ELEMENTS", 5 * 7)
    for a, b in zip(whole, moments(x, weight), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_array_equal(standardized(x, *whole), standard)


def test_integer_weights_are_repetitions(table):
    x, _ = table
    weight = np.random.default_rng(1).integers(0, 4, len(x))
    for a, b in zip(
        moments(x, weight.astype(float)),
        moments(np.repeat(x, weight, axis=0), np.ones(weight.sum())),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_standardized_is_float32_in_c_order_and_leaves_its_input_alone(table):
    x, weight = table
    turned = np.asfortranarray(x)
    turned.flags.writeable = False
    result = standardized(turned, *moments(turned, weight))
    assert result.dtype == np.float32
    assert result.flags.c_contiguous
    np.testing.assert_allclose(np.average(result, axis=0, weights=weight), 0, atol=1e-4)
    np.testing.assert_array_equal(turned, x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, bool])
def test_moments_are_taken_in_double_precision(dtype):
    x = (np.arange(3000).reshape(1000, 3) % 2).astype(dtype)
    x[:, 0] = 1
    mean, scale = moments(x, np.ones(1000))
    np.testing.assert_allclose(mean, [1, 0.5, 0.5])
    np.testing.assert_allclose(scale, [1, 0.5, 0.5])


def test_a_class_becomes_a_row_with_a_single_one():
    result = one_hot(np.array([2, 0, 2]), 4)
    assert result.dtype == np.float32
    assert result.tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
def test_a_split_is_stratified_sorted_and_complete(fraction):
    codes = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [100, 300, 20]))
    train, held = split_rows(len(codes), fraction, codes, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(np.concatenate([train, held])), np.arange(420))
    assert (np.diff(train) > 0).all()
    assert (np.diff(held) > 0).all()
    for c in range(3):
        assert abs((codes[held] == c).sum() - fraction * (codes == c).sum()) <= 1


def test_many_small_classes_are_held_out_in_proportion_and_each_keeps_a_row():
    codes = np.repeat(np.arange(200), 2)
    train, held = split_rows(400, 0.2, codes, np.random.default_rng(0))
    assert len(held) == 80
    assert set(codes[train]) == set(range(200))
    alone = np.arange(10)
    train, held = split_rows(10, 0.5, alone, np.random.default_rng(0))
    assert len(held) == 0
    assert len(train) == 10


def test_a_split_depends_on_its_generator_alone():
    first = split_rows(100, 0.3, None, np.random.default_rng(5))
    again = split_rows(100, 0.3, None, np.random.default_rng(5))
    other = split_rows(100, 0.3, None, np.random.default_rng(6))
    np.testing.assert_array_equal(first[1], again[1])
    assert len(first[1]) == 30
    assert not np.array_equal(first[1], other[1])
