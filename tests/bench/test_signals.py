"""Splits by time and at random: what leaks is seen in one and not in the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from opgrow import WindowFeatures
from opgrow.bench.signals import Model, Recording, blocks_of, features_beside_samples, study

RNG = np.random.default_rng(0)


def test_windows_stay_within_their_block():
    time = np.arange(105)
    blocks = blocks_of(Recording(time[:, None], time % 2), 10, 4, 3)
    seen = [set(block.samples.ravel().tolist()) for block in blocks]
    assert sum(map(len, seen)) == len(set().union(*seen))
    assert all(max(a) < min(b) for a, b in pairwise(seen))


def test_a_drifting_level_looks_like_knowledge_only_at_random():
    """Labels are tossed for each second of a level that only rises: no second tells of another."""
    labels = np.repeat(RNG.integers(0, 2, 100), 20)
    level = np.arange(2000.0)[:, None]
    models = {
        "samples": Model(lambda: KNeighborsClassifier(3), 1),
        "windows": Model(
            lambda: make_pipeline(WindowFeatures(features=("mean",)), KNeighborsClassifier(3)), 8
        ),
    }
    lines = list(features_beside_samples(Recording(level, labels), 10, 2, models))
    found = {(line["model"], line["split"]): line["accuracy"] for line in lines}
    for model in models:
        assert found[model, "at random"] > 0.9
        assert abs(found[model, "blocks of time"] - 0.5) < 0.2


def test_what_windows_know_and_samples_do_not_is_seen_in_both():
    labels = np.repeat(np.arange(40) % 2, 50)
    noise = RNG.normal(size=(2000, 1)) * np.where(labels, 1.0, 3.0)[:, None]
    spread = Model(lambda: make_pipeline(WindowFeatures(bands=2), KNeighborsClassifier(3)), 25)
    for line in features_beside_samples(Recording(noise, labels), 10, 5, {"windows": spread}):
        assert line["accuracy"] > 0.9
        assert line["majority"] == pytest.approx(0.5, abs=0.05)


def test_it_needs_the_recording(tmp_path):
    with pytest.raises((FileNotFoundError, ValueError), match="eeg_eye_state"):
        next(study(tmp_path))
