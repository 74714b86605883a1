"""Which device a fit runs on."""

from __future__ import annotations

import pytest
import torch

from opgrow import HeMLGOPClassifier
from opgrow.growth import devices
from opgrow.growth.engine import NativeEngine


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cuda:-1", "", None, 0, torch.device("cpu")])
def test_an_unknown_device_is_refused_in_words(device):
    with pytest.raises(ValueError, match="device must be one of 'auto', 'cpu', 'cuda' or 'cuda:N', got"):
        devices.check_device(device)


def test_a_gpu_that_is_not_there_is_refused_in_words(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device='cuda' needs a GPU that torch can use"):
        HeMLGOPClassifier(device="cuda").fit([[0.0], [1.0]], [0, 1])


def test_missing_triton_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(devices, "has", lambda name: name == "torch")
    with pytest.raises(ValueError, match="pip install 'opgrow\\[gpu\\]'"):
        devices.check_device("cuda")


def test_without_torch_only_the_cpu_is_there(monkeypatch):
    monkeypatch.setattr(devices, "has", lambda name: False)
    assert devices.choose_device("auto", 10**9) == "cpu"
    with pytest.raises(ValueError, match="device='cuda' needs torch: pip install 'opgrow\\[gpu\\]'"):
        devices.check_device("cuda")


def test_a_gpu_beyond_those_that_are_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    devices.check_device("cuda:1")
    with pytest.raises(ValueError, match="torch sees 2 GPUs"):
        devices.check_device("cuda:2")


@pytest.mark.parametrize("there", [False, True])
def test_auto_takes_a_gpu_for_large_data_only(monkeypatch, there):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert devices.choose_device("auto", devices.AUTO_VALUES - 1) == "cpu"
    assert devices.choose_device("auto", devices.AUTO_VALUES) == ("cuda" if there else "cpu")


def test_the_cpu_has_its_own_backend():
    assert devices.choose_engine("cpu", 10**9, 2) == NativeEngine(2)


def test_a_network_grown_on_a_gpu_predicts_where_there_is_none(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    x, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    model = HeMLGOPClassifier(n_min=2, max_neurons=2, epochs=(1, 1), random_state=0).fit(x, y)
    expected = model.predict_proba(x)
    model.set_params(device="cuda")
    assert (model.predict_proba(x) == expected).all()
