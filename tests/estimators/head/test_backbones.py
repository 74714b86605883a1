"""Transformers of scikit-learn as backbones: fitted ones are used, others are cloned and fitted."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader

from opgrow import BLSClassifier, GrowingHead

from ..test_incremental import small
from .examples import digits, loader

pytestmark = pytest.mark.filterwarnings("ignore::opgrow.RangeWarning")


@pytest.fixture(scope="module")
def images():
    return digits()


def test_a_transformer_that_was_fitted_is_used_and_another_one_is_cloned_and_fitted(images):
    x, y = images[0].flatten(1).numpy(), images[1]
    fitted, fresh = PCA(10).fit(x[:500]), PCA(10)
    for backbone in (fitted, fresh):
        head = GrowingHead(backbone, small(BLSClassifier), first_rows=256).fit(x, y)
        expected = fitted if backbone is fitted else PCA(10).fit(x[:256])
        np.testing.assert_allclose(head.features(x), expected.transform(x), rtol=1e-4, atol=1e-5)
        assert (head.backbone_ is backbone) == (backbone is fitted)
    assert not hasattr(fresh, "components_")
    np.testing.assert_allclose(
        GrowingHead(fresh, small(BLSClassifier)).fit(x, y).backbone_.components_, PCA(10).fit(x).components_
    )
    by_loader = GrowingHead(StandardScaler(), small(BLSClassifier), first_rows=100)
    by_loader.fit(loader(images[0].flatten(1), y, 50))
    np.testing.assert_allclose(by_loader.backbone_.mean_, x[:100].mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize("backbone", [TfidfVectorizer(), HashingVectorizer(n_features=64)], ids=str)
def test_texts(backbone):
    """Of lists, arrays and loaders; sparse features become dense a batch at a time."""
    rng = np.random.default_rng(0)
    y = rng.choice(["warm", "cold"], 300)
    words = {"warm": ["sun", "fire", "summer"], "cold": ["ice", "snow", "winter"]}
    texts = [" ".join(rng.permutation([*rng.choice(words[label], 2), "the", "day"])) for label in y]
    head = GrowingHead(backbone, small(BLSClassifier), batch_rows=50)
    assert head.fit(texts[:200], y[:200]).score(texts[200:], y[200:]) == 1.0
    assert head.partial_fit(np.array(texts), y).score(np.array(texts), y) == 1.0
    pairs = list(zip(texts, y.tolist(), strict=True))
    assert head.fit(DataLoader(pairs, batch_size=30)).score(DataLoader(pairs, batch_size=70)) == 1.0
    np.testing.assert_array_equal(head.predict(DataLoader(texts, batch_size=2)), y)
