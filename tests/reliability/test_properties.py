"""Whatever is passed to an estimator: a model that works, or a documented exception of one sentence.

`make test` runs some hundred examples, `make properties` five thousand; OPGROW_EXAMPLES is their number.
"""

from __future__ import annotations

import copy
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from generated import DTYPES, LABELS, LAYOUTS, Case, cases, examples, laid_out, made, numbers
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from tiny_estimators import NAMES, digest

import opgrow

#: What docs/reliability.md names.
DOCUMENTED = (ValueError, TypeError, FloatingPointError)
LONGEST = 300
SEEDS = st.integers(0, 2**16)
SHAPES = st.tuples(st.integers(4, 60), st.integers(1, 12))


def problem(error: BaseException) -> str:
    """What is wrong about an exception that a user meets; "" if nothing is."""
    if not isinstance(error, DOCUMENTED):
        return f"{type(error).__name__} is not documented: {error}"
    if _by_scikit_learn(error):
        return ""
    text = str(error)
    if not text or "\n" in text or len(text) > LONGEST or ". " in text.rstrip("."):
        return f"not one sentence of at most {LONGEST} characters: {text!r}"
    return ""


def _by_scikit_learn(error: BaseException) -> bool:
    """Whether its validation of input, or what that calls, has raised it."""
    files = [frame.filename.replace("\\", "/") for frame in traceback.extract_tb(error.__traceback__)]
    return any("sklearn/utils/" in file for file in files) and "/opgrow/" not in files[-1]


def random_states() -> tuple[bytes, bytes]:
    return np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes()  # noqa: NPY002


def same(a: Any, b: Any) -> bool:
    """Whether two things that were passed to `fit` are equal, also where they are NaN."""
    if isinstance(a, tuple | list) and not isinstance(a, str):
        return len(a) == len(b) and all(same(p, q) for p, q in zip(a, b, strict=True))
    if isinstance(a, np.ndarray | torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and repr(a.tolist()) == repr(b.tolist())
    if hasattr(a, "equals"):
        return bool(a.equals(b))
    return a is b or repr(a) == repr(b)


def use(case: Case) -> Any:
    """Fit, predict, score, save and load; the estimator."""
    estimator, x, y = case.estimator.fit(case.x, case.y, **case.options), case.x, case.y
    predicted = estimator.predict(x)
    assert len(predicted) == len(x)
    if is_classifier(estimator):
        proba = estimator.predict_proba(x)
        assert proba.shape == (len(x), len(estimator.classes_))
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-5)
        assert set(np.asarray(predicted).tolist()) <= set(estimator.classes_.tolist())
    else:
        assert np.isfinite(predicted).all()
    assert np.isfinite(estimator.score(x, y))
    assert digest(clone(estimator).fit(x, y, **case.options)) == digest(estimator)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        estimator.save(path)
        loaded = opgrow.load(path)
    assert loaded.predict(x).tolist() == predicted.tolist()
    assert loaded.network_.outputs(x).tobytes() == estimator.network_.outputs(x).tobytes()
    return estimator


def refusal(case: Case) -> Exception | None:
    """The exception with which a case is refused, or None."""
    try:
        use(case)
    except AssertionError:
        raise
    except Exception as error:
        return error
    return None


@examples(0.4)
@given(cases())
def test_a_model_that_works_or_a_documented_exception(case):
    before, states = copy.deepcopy((case.x, case.y, case.options)), random_states()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        refused = refusal(case)
    if refused is not None and (wrong := problem(refused)):
        raise AssertionError(wrong) from refused
    internal = [str(w.message) for w in heard if issubclass(w.category, RuntimeWarning)]
    assert not internal
    assert same(before, (case.x, case.y, case.options))
    assert random_states() == states


@examples(0.12)
@given(st.sampled_from(NAMES), SHAPES, SEEDS, st.sampled_from(DTYPES), st.sampled_from(LAYOUTS))
def test_type_and_layout_do_not_change_the_network(name, shape, seed, dtype, layout):
    x = numbers(seed, *shape, np.dtype(np.int64))
    x = x % 2 if dtype.kind == "b" else x
    y = np.arange(len(x)) % 2
    wanted = made(name).fit(x.astype(np.float64), y)
    found = made(name).fit(laid_out(x.astype(dtype), layout), y)
    assert digest(found) == digest(wanted)


@examples(0.08)
@given(
    st.sampled_from([name for name in NAMES if name.endswith("Classifier")]),
    SHAPES,
    SEEDS,
    st.sampled_from(["negative", "uint8", "str", "object", "whole floats", "category", "list", "tensor"]),
)
def test_names_of_classes_do_not_matter(name, shape, seed, label):
    x, codes = numbers(seed, *shape, np.dtype(np.float64)), np.arange(shape[0]) % 3
    y = LABELS[label](codes)
    wanted, found = made(name).fit(x, codes), made(name).fit(x, y)
    assert digest(found) == digest(wanted)
    np.testing.assert_array_equal(found.predict(x), np.unique(np.asarray(y))[wanted.predict(x)])


@examples(0.08)
@given(st.sampled_from(NAMES), SHAPES, SEEDS, st.integers(1, 20))
def test_a_row_without_weight_is_a_row_that_is_not_there(name, shape, seed, n_more):
    x = numbers(seed, shape[0] + n_more, shape[1], np.dtype(np.float64))
    y = np.arange(len(x)) % 2
    weight = np.ones(len(x))
    weight[np.random.default_rng(seed).permutation(np.arange(4, len(x)))[:n_more]] = 0
    found = made(name).fit(x, y, sample_weight=weight)
    assert digest(found) == digest(made(name).fit(x[weight > 0], y[weight > 0]))


@examples(0.06)
@given(st.sampled_from(NAMES), SHAPES, SEEDS)
def test_weight_2_standardises_like_the_row_twice(name, shape, seed):
    """The rest of a fit looks at single rows: batches, validation, leave-one-out."""
    x, y = numbers(seed, *shape, np.dtype(np.float64)), np.arange(shape[0]) % 2
    weight = np.random.default_rng(seed).integers(1, 3, len(x))
    found = made(name, validation_fraction=0.0).fit(x, y, sample_weight=weight).network_
    twice = (
        made(name, validation_fraction=0.0).fit(np.repeat(x, weight, axis=0), np.repeat(y, weight)).network_
    )
    for constant in ("input_mean", "input_scale", "output_mean", "output_scale"):
        if getattr(found, constant) is not None and not (
            name == "POPRegressor" and constant == "output_scale"
        ):
            np.testing.assert_allclose(
                getattr(found, constant), getattr(twice, constant), rtol=1e-9, atol=1e-12
            )


@examples(0.06)
@given(st.sampled_from(NAMES), SHAPES, SEEDS)
def test_predictions_do_not_depend_on_the_rows_beside(name, shape, seed):
    x, y = numbers(seed, *shape, np.dtype(np.float64)), np.arange(shape[0]) % 2
    fitted = made(name).fit(x, y)
    together = fitted.network_.outputs(x)
    alone = np.concatenate([fitted.network_.outputs(x[i : i + 1]) for i in range(len(x))])
    # Of regression the last bits are in double precision.
    np.testing.assert_allclose(together, alone, rtol=1e-6 if is_classifier(fitted) else 1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_frames_with_names_are_compared_by_name(name):
    frame = pd.DataFrame(numbers(0, 20, 3, np.dtype(np.float64)), columns=["a", "<b>", "ä" * 200])
    fitted = made(name).fit(frame, np.arange(20) % 2)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[["<b>", "a", "ä" * 200]])
