"""What searches keep to save time is bounded, and changes nothing."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from sklearn.datasets import load_iris

from opgrow import HeMLRNClassifier
from opgrow.common import reservations


def test_searches_keep_no_more_than_their_bound_together() -> None:
    first = reservations.reserve(reservations.TOTAL_BYTES - 10)
    assert first is not None
    assert reservations.reserve(11) is None
    second = reservations.reserve(10)
    assert second is not None
    del first, second
    gc.collect()
    assert reservations.reserve(reservations.TOTAL_BYTES) is not None


def test_a_search_without_room_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = load_iris(return_X_y=True)

    def grown() -> np.ndarray:
        estimator = HeMLRNClassifier(n_min=5, max_layers=1, fine_tune_epochs=0, random_state=0)
        return estimator.fit(x, y).predict_proba(x)

    with_room = grown()
    monkeypatch.setattr(reservations, "TOTAL_BYTES", 0)
    assert np.array_equal(grown(), with_room)
