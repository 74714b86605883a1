"""A fitted estimator as the plain steps that a program without this library would take.

A network becomes lists of `Step`: neurons with one operator set, each followed by a scale and a shift. Batch
norms, and for regression the constants of the targets, are folded into these; blocks side by side that
compute alike become one step. What reads a `Program` needs to know nothing of networks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from ..engine.wiring import Span
from ..network import Block, Network
from ..network.scaling import squash
from ..network.tensors import LIMITS
from ..operators import OperatorSet
from ..rows.signals import WindowForm
from .reach import limits_in_reach

__all__ = ["LINEAR", "Program", "Step", "program_of", "steps_of"]

LINEAR = OperatorSet("multiplication", "sum", "identity")
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Step:
    """Neurons that share an operator set: scale * f(rho(psi(x, weight)) + bias) + shift.

    Attributes
    ----------
    operators : OperatorSet
    weight : array of shape (n_neurons, n_inputs)
    bias, scale, shift : arrays of shape (n_neurons,), or None where there are none
    unit : whether the pooled values are divided by their Euclidean norm before the activation
    mean : what the neurons yield on average before scale and shift, where a batch norm knows it
    first : the first output of the layer before that the neurons read
    """

    operators: OperatorSet
    weight: np.ndarray
    bias: np.ndarray | None = None
    scale: np.ndarray | None = None
    shift: np.ndarray | None = None
    unit: bool = False
    mean: np.ndarray | None = None
    first: int = 0

    @property
    def reads(self) -> slice:
        """What the neurons read of the layer before."""
        return slice(self.first, self.first + self.n_inputs)

    @property
    def n_inputs(self) -> int:
        return self.weight.shape[1]

    @property
    def n_neurons(self) -> int:
        return len(self.weight)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What two steps must have in common to be computed by one piece of code."""
        return self.operators, self.bias is not None, self.scale is not None, self.unit


@dataclass(frozen=True)
class Program:
    """Everything that a prediction needs.

    Attributes
    ----------
    estimator : name of the estimator's class
    topology : widths from input to output, such as "8-60-2"
    parameters : how many the network has
    input_mean, input_scale : arrays of shape (n_inputs,), in double precision
    layers : the steps of each layer
    head : the last step
    head_spans : what the head sees of the layers, in the order of its weights
    loss : "mse" for clipped outputs and otherwise softmax, or None for regression
    classes : the labels, or None for regression
    features : names of the inputs, or None
    head_sees_input : whether the head sees the network's input before the layers
    input_bound : where the standardised input is squashed smoothly to, or None
    output_low, output_high : arrays of shape (n_outputs,) that outputs are clamped to, or None
    head_low, head_high : arrays of shape (n_features,) that features are clamped to below the head, or None
    window : what is computed of windows of signals, where that is what the network takes, or None
    """

    estimator: str
    topology: str
    parameters: int
    input_mean: np.ndarray
    input_scale: np.ndarray
    layers: list[list[Step]]
    head: Step
    head_spans: tuple[Span, ...]
    loss: str | None
    classes: list[Any] | None
    features: list[str] | None
    head_sees_input: bool = False
    input_bound: float | None = None
    output_low: np.ndarray | None = None
    output_high: np.ndarray | None = None
    head_low: np.ndarray | None = None
    head_high: np.ndarray | None = None
    window: WindowForm | None = None

    @property
    def n_inputs(self) -> int:
        return len(self.input_mean)

    @property
    def n_outputs(self) -> int:
        return self.head.n_neurons

    @property
    def standardizes(self) -> bool:
        return bool(self.input_mean.any() or (self.input_scale != 1).any())

    @property
    def changes_input(self) -> bool:
        """Whether the network's input is another than the raw one."""
        return self.standardizes or self.input_bound is not None

    def network_input(self, rows: np.ndarray) -> np.ndarray:
        """Raw rows (n, n_inputs), standardised and squashed, in double precision."""
        return squash((np.asarray(rows, np.float64) - self.input_mean) / self.input_scale, self.input_bound)

    @property
    def keeps_layers(self) -> bool:
        """Whether the head sees more than the last layer, so that others are kept for it."""
        return self.head_sees_input or any(span.layer < len(self.layers) - 1 for span in self.head_spans)

    def seen_by_head(self, x: np.ndarray, outputs: Sequence[np.ndarray]) -> np.ndarray:
        """What the head sees of the network's input and of the outputs of all layers."""
        seen = [outputs[layer][:, start:stop] for layer, start, stop in self.head_spans]
        if self.head_sees_input or not outputs:
            seen = [x, *seen]
        return np.concatenate(seen, axis=1)

    @property
    def limits_features(self) -> bool:
        """Whether the head reads features within limits."""
        return self.head_low is not None and self.head_high is not None

    def read_by_head(self, seen: np.ndarray) -> np.ndarray:
        """Features (n, n_features) that the head sees as it reads them."""
        if self.head_low is None or self.head_high is None:
            return seen
        return np.clip(seen, self.head_low.astype(seen.dtype), self.head_high.astype(seen.dtype))

    def with_scaled_features(self, columns: slice, scale: np.ndarray, shift: np.ndarray) -> Program:
        """The program with limits for features that have become ``(feature - shift) / scale``.

        The head and the layers are the caller's; ``columns`` are the features that the head sees.
        """
        if self.head_low is None or self.head_high is None:
            return self
        low, high = self.head_low.copy(), self.head_high.copy()
        with np.errstate(all="ignore"):
            ends = [(limit[columns] - shift) / scale for limit in (low, high)]
        # A feature that is multiplied by 0 is the same whatever it is.
        low[columns] = np.where(scale == 0, -_LARGEST_SINGLE, np.minimum(*ends))
        high[columns] = np.where(scale == 0, _LARGEST_SINGLE, np.maximum(*ends))
        low, high = (limit.clip(-_LARGEST_SINGLE, _LARGEST_SINGLE) for limit in (low, high))
        return replace(self, head_low=low, head_high=high)

    @property
    def steps(self) -> list[Step]:
        return [*(step for layer in self.layers for step in layer), self.head]

    @property
    def places(self) -> list[tuple[str, Step]]:
        """All steps, each with what its tables are called by."""
        hidden = [(f"{i}_{j}", s) for i, layer in enumerate(self.layers, 1) for j, s in enumerate(layer, 1)]
        return [*hidden, ("head", self.head)]

    @property
    def widths(self) -> list[int]:
        """Neurons of each layer, without the head."""
        return [sum(step.n_neurons for step in layer) for layer in self.layers]


def program_of(estimator: Any, features: Sequence[str] | None = None) -> Program:
    """The program of an estimator that can be exported (`check_exportable`)."""
    network: Network = estimator.network_
    loss = getattr(estimator, "loss_", None)
    classes = estimator.classes_.tolist() if hasattr(estimator, "classes_") else None
    if features is None:
        features = estimator.input_names
    if features is not None and len(features) != network.n_inputs:
        raise ValueError(f"features has {len(features)} names, and the model takes {network.n_inputs}.")
    layers, head = steps_of(network)
    limits = [_limits(network, name) if limits_in_reach(network) else None for name in LIMITS]
    return Program(
        estimator=type(estimator).__name__,
        topology=network.topology(),
        parameters=network.n_parameters(),
        input_mean=_values(network.input_mean, "input"),
        input_scale=_values(network.input_scale, "input"),
        layers=layers,
        head=head,
        head_spans=tuple(network.head_spans()),
        loss=None if classes is None else loss,
        classes=classes,
        features=None if features is None else list(features),
        input_bound=network.input_bound,
        output_low=_limits(network, "output_low"),
        output_high=_limits(network, "output_high"),
        head_low=limits[0],
        head_high=limits[1],
    )


def _limits(network: Network, name: str) -> np.ndarray | None:
    limits = getattr(network, name)
    if limits is None:
        return None
    # What single precision cannot hold is no limit in it.
    return limits.astype(np.float64).clip(-_LARGEST_SINGLE, _LARGEST_SINGLE)


def steps_of(network: Network) -> tuple[list[list[Step]], Step]:
    """The steps of all layers, and that of the head."""
    layers = [_layer_steps(network, number) for number in range(len(network.layers))]
    if isinstance(network.head, Block):
        head = _block_step(network.head)
    else:
        head = Step(LINEAR, _values(network.head.weight.T, "head"), _values(network.head.bias, "head"))
    if network.output_scale is not None and network.output_mean is not None:
        scale, shift = _values(network.output_scale, "output"), _values(network.output_mean, "output")
        head = replace(head, scale=scale, shift=shift)
    return layers, head


def _layer_steps(network: Network, number: int) -> list[Step]:
    """The steps of a layer; what the head sees and what it does not see are kept in different places."""
    seen = [range(start, stop) for layer, start, stop in network.head_spans() if layer == number]
    steps, column = [], 0
    for block, span in zip(network.layers[number], network.block_spans()[number], strict=True):
        steps.append((any(column in span for span in seen), replace(_block_step(block), first=span.start)))
        column += block.n_neurons
    groups = groupby(steps, lambda pair: pair[0])
    return [step for _, group in groups for step in _merged(step for _, step in group)]


def _block_step(block: Block) -> Step:
    operators = block.operator_set
    what = f"block {operators}"
    step = Step(
        operators,
        _values(block.weight, what).T,
        _values(block.bias, what) if block.has_bias else None,
        unit=block.normalization == "unit",
    )
    if block.norm is None:
        return step
    norm = block.norm
    mean, *_ = (_values(array, what) for array in (norm.mean, norm.variance, norm.scale, norm.shift))
    scale, shift = norm.folded()
    return replace(step, scale=scale, shift=shift, mean=mean)


def _merged(steps: Iterable[Step]) -> list[Step]:
    """Neighbours of the same kind and inputs as one step; a unit norm is over its own block alone."""
    merged: list[Step] = []
    for step in steps:
        last = merged[-1] if merged else None
        if last is None or step.unit or last.kind != step.kind or last.reads != step.reads:
            merged.append(step)
            continue
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(last, name), getattr(step, name)])
            for name in ("weight", "bias", "scale", "shift", "mean")
            if getattr(step, name) is not None
        }
        merged[-1] = replace(last, **joined)
    return merged


def _values(array: np.ndarray, what: str) -> np.ndarray:
    values = array.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"The network cannot be exported: its {what} holds values that are not finite.")
    return values
