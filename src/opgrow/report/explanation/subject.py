"""What is explained of a model: numbers made of its outputs that mean something to its user.

The two outputs of a classifier with two classes mean nothing alone: only their difference decides. So what is
explained are the log-odds of the second class; of more classes the logits, from which the mean of all classes
is subtracted, for a constant that is added to all of them changes nothing either. Each is a sum of the
network's outputs with fixed weights (`Quantity`), so that whatever adds up to the outputs also adds up to
these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ...network import Network
from ...training.scores import probabilities

__all__ = ["Quantity", "Subject", "class_text"]


@dataclass(frozen=True)
class Quantity:
    """One number that is explained.

    Attributes
    ----------
    name : str
    unit : "log-odds", "logit", "margin", "share" or "target"
    mix : weights of the network's outputs
    """

    name: str
    unit: str
    mix: tuple[float, ...]


class Subject:
    """A fitted estimator as functions of the rows that its network takes.

    Attributes
    ----------
    classes : texts of the classes, or None for a regressor
    quantities : what is explained
    """

    def __init__(self, estimator: Any, target: str | None = None) -> None:
        self.network: Network = estimator.network_
        self.loss: Any = estimator.loss_
        self.classes: list[str] | None = None
        self.labels: list[Any] | None = None
        self.target = target
        if is_classifier(estimator):
            self.labels = estimator.classes_.tolist()
            self.classes = [class_text(label) for label in self.labels]

    @cached_property
    def quantities(self) -> list[Quantity]:
        n = self.network.n_outputs
        if self.classes is None:
            name = self.target or "target"
            names = [name] if n == 1 else [f"{name} {i + 1}" for i in range(n)]
            return [Quantity(each, "target", _unit_vector(i, n)) for i, each in enumerate(names)]
        logits = self.loss != "mse"
        if n == 2:
            second = self.classes[1]
            if logits:
                return [Quantity(f"log-odds of {second}", "log-odds", (-1.0, 1.0))]
            return [Quantity(f"margin of {second} over {self.classes[0]}", "margin", (-1.0, 1.0))]
        if not logits:
            return [Quantity(name, "share", _unit_vector(i, n)) for i, name in enumerate(self.classes)]
        centred = (np.eye(n) - 1 / n).tolist()
        return [Quantity(name, "logit", tuple(centred[i])) for i, name in enumerate(self.classes)]

    @cached_property
    def mix(self) -> np.ndarray:
        """Weights (network outputs, quantities)."""
        return np.array([quantity.mix for quantity in self.quantities]).T

    def raw(self, rows: np.ndarray) -> np.ndarray:
        """Outputs of the network in double precision."""
        return np.asarray(self.network.outputs(rows), np.float64)

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """What is explained, for rows as the network takes them: (n, quantities)."""
        return self.raw(rows) @ self.mix

    def probabilities(self, raw: np.ndarray) -> np.ndarray | None:
        """Of classes, by outputs of the network; None for a regressor."""
        return None if self.classes is None else probabilities(self.loss, raw)

    def codes(self, rows: np.ndarray) -> np.ndarray:
        """The predicted class of each row, as its place among the classes."""
        return probabilities(self.loss, self.raw(rows)).argmax(axis=1)


def class_text(label: Any) -> str:
    """A class as people write it."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _unit_vector(place: int, n: int) -> tuple[float, ...]:
    return tuple(float(i == place) for i in range(n))
