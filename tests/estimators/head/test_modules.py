"""Modules of torch as backbones: they stay what they are, and with their head they are a module again."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch import nn

from opgrow import BLSClassifier, BLSRegressor, GrowingHead

from ..test_incremental import small
from .examples import convolution, digits

pytestmark = pytest.mark.filterwarnings("ignore::opgrow.RangeWarning")


@pytest.fixture(scope="module")
def images():
    return digits()


@pytest.mark.parametrize("fails", [False, True])
def test_a_module_has_the_modes_weights_and_statistics_that_it_had(images, fails):
    x, y = images
    module = convolution()
    module[3].eval()
    modes = [part.training for part in module.modules()]
    before = pickle.dumps(module.state_dict())
    head = GrowingHead(module, small(BLSClassifier)).fit(x[:300], y[:300])
    if fails:
        with pytest.raises(ValueError, match="backbone fails on rows"):
            head.partial_fit(x[:, :, :2], y)
    for call in (head.predict, head.predict_proba, head.features):
        call(x[:50])
    head.to_torch()(x[:10]).sum().backward()
    assert [part.training for part in module.modules()] == modes
    assert pickle.dumps(module.state_dict()) == before
    assert all(p.grad is None and p.requires_grad for p in module.parameters())


def test_the_module_is_a_copy_unless_the_backbone_itself_is_wanted(images):
    x, y = images
    module = convolution()
    head = GrowingHead(module, small(BLSClassifier)).fit(x, y)
    whole = head.to_torch()
    assert not whole.training
    with torch.no_grad():
        before = whole(x)
        module[0].weight.zero_()
        torch.testing.assert_close(whole(x), before)
        assert head.to_torch(copy_backbone=False).backbone is module


def test_the_module_can_be_tuned_by_torch(images):
    x, y = images
    whole = GrowingHead(convolution(), small(BLSClassifier)).fit(x[:400], y[:400]).to_torch()
    target = torch.as_tensor(y[:400])
    optimizer = torch.optim.Adam(whole.parameters(), 1e-3)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(whole(x[:400]), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_module_can_be_traced_for_any_number_of_rows(images):
    x, y = images
    whole = GrowingHead(convolution(), small(BLSClassifier)).fit(x, y).to_torch()
    with torch.no_grad():
        traced = torch.jit.trace(whole, x[:3])
        torch.testing.assert_close(traced(x), whole(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_rows_are_taken_to_the_type_of_the_weights(images, dtype):
    x, y = images
    module = convolution().to(dtype)
    head = GrowingHead(module, small(BLSClassifier)).fit(x.double(), y)
    assert head.features(x).dtype == (np.float64 if dtype == torch.float64 else np.float32)
    with torch.no_grad():
        outputs = head.to_torch()(x.to(dtype)).softmax(dim=1)
    np.testing.assert_allclose(outputs.numpy(), head.predict_proba(x), rtol=1e-4, atol=1e-5)


def test_a_backbone_with_whole_numbers_or_one_feature():
    """An embedding takes indices as they are; a module may return a number for each row."""
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    words = rng.integers(40, size=(300, 5))
    y = np.where((words < 20).sum(axis=1) > 2, "low", "high")
    embedding = nn.Embedding(40, 4)
    head = GrowingHead(embedding, small(BLSClassifier)).fit(words, y)
    expected = embedding.weight.detach().numpy()[words].reshape(300, 20)
    np.testing.assert_array_equal(head.features(words), expected)

    class Mean(nn.Module):
        def forward(self, x):
            return x.mean(dim=1)

    x = rng.normal(size=(300, 3)).astype(np.float32)
    head = GrowingHead(Mean(), small(BLSRegressor)).fit(x, x.mean(axis=1))
    assert head.features(x).shape == (300, 1)
    with torch.no_grad():
        outputs = head.to_torch()(torch.as_tensor(x))[:, 0].numpy()
    np.testing.assert_allclose(outputs, head.predict(x), rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_backbone_computes_where_its_weights_are(images):
    x, y = images
    head = GrowingHead(convolution().cuda(), small(BLSClassifier)).fit(x[:500].numpy(), y[:500])
    whole = head.partial_fit(x[500:], y[500:]).to_torch()
    with torch.no_grad():
        outputs = whole(x.cuda()).softmax(dim=1).cpu().numpy()
    np.testing.assert_allclose(outputs, head.predict_proba(x), rtol=1e-3, atol=1e-4)
