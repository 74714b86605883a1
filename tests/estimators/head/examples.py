"""Images, and a backbone for them."""

from __future__ import annotations

import pickle

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def digits():
    """Images of shape (900, 1, 8, 8), and their labels."""
    x, y = load_digits(return_X_y=True)
    return torch.tensor(x[:900] / 16, dtype=torch.float32).reshape(-1, 1, 8, 8), y[:900]


def convolution(seed=0):
    """A backbone with all that is different while a module trains: (n, 1, 8, 8) to (n, 6, 3, 3)."""
    torch.manual_seed(seed)
    layers = nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Dropout(0.3), nn.MaxPool2d(2)
    return nn.Sequential(*layers)


def features_by_hand(module, x):
    with torch.no_grad():
        return pickle.loads(pickle.dumps(module)).eval()(x).flatten(1).numpy()


def loader(x, y, batch_size=37):
    return DataLoader(TensorDataset(x, torch.as_tensor(y)), batch_size=batch_size)
