"""Checks of what can be exported; whatever cannot is refused with one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from ..growth.model import GrownModel
from ..network import Block, Network
from ..operators.kinds import check_facts
from ..rows.signals import WindowFeatures

__all__ = ["check_exportable", "check_single_precision"]


#: What operators must state for a form of export; measuring programs in C takes the numpy formulas, too.
_FACTS = {
    "C": ("formula", "c"),
    "C with integer arithmetic": ("formula", "fixed"),
    "ONNX": ("onnx",),
}


def check_exportable(estimator: Any, form: str) -> Network:
    """The network of a fitted estimator of this package, whose operators state all that a form needs.

    ``form`` is "C", "C with integer arithmetic" or "ONNX".
    """
    name = type(estimator).__name__
    if not isinstance(estimator, GrownModel):
        hint = ": export its last step" if isinstance(estimator, Pipeline) else ""
        if hint and form == "ONNX" and isinstance(estimator.steps[0][1], WindowFeatures):
            hint = f"{hint}, which takes the features of windows, or to C, which computes them"
        raise TypeError(f"Only opgrow's own estimators can be exported, got {name}{hint}.")
    if not hasattr(estimator, "network_"):
        raise NotFittedError(f"This {name} is not fitted: call fit before exporting it.")
    network = estimator.network_
    blocks = [block for layer in network.layers for block in layer]
    if isinstance(network.head, Block):
        blocks.append(network.head)
    for block in blocks:
        for operator in block.operator_set.operators:
            check_facts(operator, _FACTS[form], form)
    return network


def check_single_precision(network: Network, otherwise: str = "") -> None:
    """Refuse inputs and outputs that single precision cannot hold; ``otherwise`` says what else to do."""
    single = np.finfo(np.float32)
    for what, mean, scale in (
        ("Input", network.input_mean, network.input_scale),
        ("Output", network.output_mean, network.output_scale),
    ):
        if mean is None or scale is None:
            continue
        lost = (scale < single.tiny) | (scale > single.max) | (np.abs(mean) > single.max)
        if lost.any():
            i = int(lost.argmax())
            raise ValueError(
                f"{what} {i} has a mean of {mean[i]:.3g} and a scale of {scale[i]:.3g}, which single "
                f"precision does not hold: rescale the data before fitting{otherwise}."
            )
