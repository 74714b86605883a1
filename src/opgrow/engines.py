"""Two engines that take the same steps of back-propagation.

`CompiledEngine` runs an epoch as one call into C; `ReferenceEngine` is plain torch autograd, for custom
operators, losses and optimisers, and the oracle of the tests. All parameters are one flat vector, laid out
as `engine.training` says; `Shape` knows where each of them lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .engine import training
from .engine.native import native
from .engine.sums import LOSSES
from .kernels import reference
from .network import NORM_EPSILON, Block, Head, Layer
from .operators import OperatorSet
from .scores import Loss, row_losses

__all__ = [
    "ADAM_EPSILON",
    "LOSS_CODES",
    "CompiledEngine",
    "Moments",
    "Optimizer",
    "ReferenceEngine",
    "Shape",
    "TuningData",
    "TuningSettings",
    "assign_block",
    "assign_head",
    "assign_moments",
    "batch_bounds",
    "choose_engine",
    "compiled_settings",
    "fill",
    "is_plain",
    "make_optimizer",
    "single",
]

#: As in Keras, which the public implementation of the paper used.
ADAM_EPSILON = 1e-7
#: Losses as the compiled engine and the kernels of GPUs know them.
LOSS_CODES = {name: code for code, name in enumerate(LOSSES)}
#: Codes of a linear head, and of operators that have only their torch function.
LINEAR, UNKNOWN = (-1, -1, -1), (-2, -2, -2)


#: "adam", or a function from parameter groups (as torch optimisers take them) to a torch optimiser.
Optimizer = str | Callable[[Iterable[dict]], torch.optim.Optimizer]


@dataclass(frozen=True)
class TuningSettings:
    """Schedule and regularisation.

    ``learning_rates[i]`` is used for ``epochs[i]`` epochs, or until ``patience`` epochs of it have passed
    without a better score.
    """

    loss: Loss = "cross_entropy"
    learning_rates: tuple[float, ...] = (0.01, 0.001, 0.0001)
    epochs: tuple[int, ...] = (20, 40, 40)
    patience: int | None = None
    batch_size: int = 32
    dropout: float = 0.0
    input_dropout: float = 0.0
    weight_decay: float = 0.0
    max_norm: float | None = None
    optimizer: Optimizer = "adam"
    n_threads: int = 1


class TuningData(training.Rows):
    """Rows to tune or score on.

    Attributes
    ----------
    x : (N, D) inputs of the first tuned layer; frozen : (N, F) features that feed the head unchanged
    target : (N, outputs); weight : (N,) with mean 1; all float32 and contiguous
    """

    def tensors(self) -> list[Tensor]:
        """Inputs, frozen features, targets and weights as tensors that share the memory."""
        return [torch.from_numpy(a) for a in (self.x, self.frozen, self.target, self.weight)]


@dataclass(frozen=True)
class Moments:
    """Weighted mean and variance of a block's raw features over the training set."""

    mean: np.ndarray
    variance: np.ndarray


def single(variance: Tensor) -> Tensor:
    """Variances in single precision; those that do not fit are NaN.

    Divided by an infinite deviation, a feature would vanish, and the score would not show it.
    """
    variance = variance.float()
    return torch.where(variance.isinf(), torch.nan, variance)


@dataclass(frozen=True)
class _Views:
    """A block's parameters as views into the flat vector, an array or a tensor."""

    operator_set: OperatorSet
    weight: Any
    bias: Any
    scale: Any
    shift: Any


class Shape:
    """Where each parameter lies in the flat vector."""

    def __init__(self, layers: Sequence[Layer], head: Head, n_frozen: int) -> None:
        self.sets = [block.operator_set for layer in layers for block in layer]
        self.widths = np.array([layer.n_neurons for layer in layers], np.int64)
        self.n_features, self.n_outputs = head.weight.shape
        self.n_frozen = n_frozen
        self.head_set = head.operator_set if isinstance(head, Block) else None
        codes = LINEAR if self.head_set is None else self.head_set.codes
        self.head_codes = np.array(codes or UNKNOWN, np.int64)
        rows, offset = [], 0
        for number, layer in enumerate(layers):
            column = 0
            for block in layer:
                codes = block.operator_set.codes or UNKNOWN
                rows.append([*codes, block.n_inputs, block.n_neurons, offset, number, column])
                offset += block.n_neurons * (block.n_inputs + 3)
                column += block.n_neurons
        self.plan = np.array(rows, np.int64)
        self.head_at = offset
        self.size = offset + (self.n_features + 1) * self.n_outputs

    @property
    def compilable(self) -> bool:
        return bool((self.plan[:, :3] > UNKNOWN[0]).all() and (self.head_codes > UNKNOWN[0]).all())

    def compiled(self) -> training.Shape:
        """The same for the compiled engine."""
        nodal, pool, activation = self.head_codes.tolist()
        head = nodal, pool, activation
        return training.Shape(self.plan, self.widths, head, self.n_frozen, self.n_outputs)

    def blocks(self, theta: Any) -> list[list[_Views]]:
        layers: list[list[_Views]] = [[] for _ in self.widths]
        for operator_set, row in zip(self.sets, self.plan, strict=True):
            n_in, d, at, layer = row[3:7]
            end = at + n_in * d
            rest = (theta[end + i * d : end + (i + 1) * d] for i in range(3))
            parts = theta[at:end].reshape(n_in, d), *rest
            layers[layer].append(_Views(operator_set, *parts))
        return layers

    def head(self, theta: Any) -> tuple[Any, Any]:
        weight = theta[self.head_at : self.size - self.n_outputs].reshape(self.n_features, self.n_outputs)
        return weight, theta[self.size - self.n_outputs :]

    def decay(self, weight_decay: float) -> np.ndarray:
        """Decay of each parameter: weights of blocks and head, but no bias and no batch norm."""
        decay = np.zeros(self.size, np.float32)
        for layer in self.blocks(decay):
            for block in layer:
                block.weight[:] = weight_decay
        self.head(decay)[0][:] = weight_decay
        return decay

    def flatten(self, layers: Sequence[Layer], head: Head) -> np.ndarray:
        theta = np.empty(self.size, np.float32)
        for views, layer in zip(self.blocks(theta), layers, strict=True):
            for view, block in zip(views, layer, strict=True):
                view.weight[:], view.bias[:] = block.weight, block.bias
                view.scale[:], view.shift[:] = block.norm.scale, block.norm.shift
        weight, bias = self.head(theta)
        weight[:], bias[:] = head.weight, head.bias
        return theta

    def restore(
        self, theta: np.ndarray, moments: Sequence[Moments], layers: Sequence[Layer], head: Head
    ) -> None:
        statistics = iter(moments)
        for views, layer in zip(self.blocks(theta), layers, strict=True):
            for view, block in zip(views, layer, strict=True):
                assign_block(block, view.weight, view.bias, view.scale, view.shift)
                found = next(statistics)
                assign_moments(block, found.mean, found.variance)
        weight, bias = self.head(theta)
        assign_head(head, weight, bias)


def assign_block(
    block: Block, weight: np.ndarray, bias: np.ndarray, scale: np.ndarray, shift: np.ndarray
) -> None:
    """Set a block's parameters."""
    with np.errstate(over="ignore"):  # what single precision does not hold is noticed later
        block.weight[:], block.bias[:] = weight, bias
        block.norm.scale[:], block.norm.shift[:] = scale, shift


def assign_moments(block: Block, mean: np.ndarray, variance: np.ndarray) -> None:
    """Set the statistics that a block's batch norm predicts with."""
    with np.errstate(over="ignore"):
        block.norm.mean[:], block.norm.variance[:] = mean, variance


def assign_head(head: Head, weight: np.ndarray, bias: np.ndarray) -> None:
    """Set a head from weights (features, outputs) and biases."""
    with np.errstate(over="ignore"):
        head.weight[:], head.bias[:] = weight, bias


def choose_engine(
    shape: Shape, theta: np.ndarray, train: TuningData, settings: TuningSettings
) -> CompiledEngine | ReferenceEngine:
    """The compiled engine where it can do the work, else the reference."""
    if shape.compilable and is_plain(settings):
        return CompiledEngine(shape, theta, train, settings)
    return ReferenceEngine(shape, torch.from_numpy(theta), train.tensors(), settings)


def is_plain(settings: TuningSettings) -> bool:
    """Whether the compiled loops know the loss and the optimiser."""
    return isinstance(settings.loss, str) and settings.optimizer == "adam"


def make_optimizer(settings: TuningSettings, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    """The optimiser of torch that the settings ask for."""
    if not callable(settings.optimizer):
        return torch.optim.Adam(groups, eps=ADAM_EPSILON)
    made = settings.optimizer(groups)
    if not isinstance(made, torch.optim.Optimizer):
        raise ValueError(f"optimizer must return a torch optimiser, and returned a {type(made).__name__}")
    return made


def batch_bounds(n_rows: int, batch_size: int) -> np.ndarray:
    """Borders of batches of nearly equal size, so that no last batch is tiny."""
    n_batches = -(-n_rows // batch_size)
    return np.arange(n_batches + 1, dtype=np.int64) * n_rows // n_batches


def compiled_settings(shape: Shape, settings: TuningSettings) -> training.Settings:
    """What the compiled engine is to do in a step; for settings that `is_plain` accepts."""
    assert isinstance(settings.loss, str)
    decay, max_norm = shape.decay(settings.weight_decay), settings.max_norm or 0.0
    return training.Settings(settings.loss, decay, settings.dropout, settings.input_dropout, max_norm)


class CompiledEngine:
    """Epochs as calls of the compiled engine, which change ``theta`` in place."""

    def __init__(self, shape: Shape, theta: np.ndarray, train: TuningData, settings: TuningSettings) -> None:
        self.shape, self.settings = shape.compiled(), compiled_settings(shape, settings)
        self.batch_size, self.moving = settings.batch_size, training.State(theta)
        self.use(train)

    def use(self, train: TuningData) -> None:
        """Go on with other rows."""
        self.train, self.bounds = train, batch_bounds(len(train.x), self.batch_size)

    def epoch(self, order: np.ndarray, rate: float, seed: int) -> tuple[float, int]:
        moving, batches = self.moving, (order, self.bounds)
        moving.skipped = 0
        native().train_epoch(self.shape, self.train, self.settings, moving, batches, rate, seed)
        return moving.loss, moving.skipped

    def state(self) -> dict[str, np.ndarray]:
        """What an epoch goes on from, beside the parameters."""
        moving = self.moving
        return {"first": moving.first, "second": moving.second, "step": np.array([moving.step])}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `state` has said."""
        moving, step = self.moving, np.zeros(1, np.int64)
        for target, name in ((moving.first, "first"), (moving.second, "second"), (step, "step")):
            fill(target, arrays, name)
        moving.step = int(step[0])


def fill(target: np.ndarray, arrays: Mapping[str, np.ndarray], name: str) -> None:
    """Copy an array of exactly this shape and type."""
    values = arrays.get(name)
    if values is None or values.shape != target.shape or values.dtype != target.dtype:
        found = "missing" if values is None else f"of shape {values.shape} and type {values.dtype}"
        raise ValueError(
            f"the array {name!r} is {found}, expected shape {target.shape} and type {target.dtype}"
        )
    target[...] = values


class ReferenceEngine:
    """The same steps with torch autograd, on any device. Also runs operators, losses and optimisers of users.

    ``data`` are inputs, frozen features, targets and weights, with rows as their first dimension.
    """

    def __init__(self, shape: Shape, theta: Tensor, data: Sequence[Tensor], settings: TuningSettings) -> None:
        self.shape, self.theta, self.settings = shape, theta, settings
        self.bounds = batch_bounds(len(data[0]), settings.batch_size)
        self.data = data
        # Parameters share memory with the flat vector.
        self.layers = [
            [[_leaf(a) for a in (view.weight, view.bias, view.scale, view.shift)] for view in layer]
            for layer in shape.blocks(theta)
        ]
        self.head = [_leaf(a) for a in shape.head(theta)]
        decayed = [block[0] for layer in self.layers for block in layer] + [self.head[0]]
        plain = [p for layer in self.layers for block in layer for p in block[1:]] + [self.head[1]]
        groups = [
            {"params": decayed, "weight_decay": settings.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        self.optimizer = make_optimizer(settings, groups)
        self.parameters = decayed + plain

    def use(self, train: TuningData) -> None:
        """Go on with other rows, in the memory of the host."""
        self.data, self.bounds = train.tensors(), batch_bounds(len(train.x), self.settings.batch_size)

    def epoch(self, order: np.ndarray | Tensor, rate: float, seed: int) -> tuple[float, int]:
        generator = torch.Generator(self.theta.device).manual_seed(seed % 2**63)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        rows = torch.as_tensor(order, device=self.theta.device)
        total, skipped = 0.0, 0
        for start, stop in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            self.optimizer.zero_grad()
            loss = self._loss(rows[start:stop], generator)
            loss.backward()
            total += float(loss.detach())
            if all(p.grad is None or p.grad.isfinite().all() for p in self.parameters):
                self.optimizer.step()
                self._limit_norms()
            else:
                skipped += 1
        return total / (len(self.bounds) - 1), skipped

    def state(self) -> dict[str, np.ndarray] | None:
        """What the optimiser remembers of each parameter; None where that is more than tensors like it."""
        found: dict[str, np.ndarray] = {}
        for number, p in enumerate(self.parameters):
            for name, value in self.optimizer.state.get(p, {}).items():
                if not isinstance(value, Tensor) or value.shape not in ((), p.shape):
                    return None
                found[f"optimizer.{number}.{name}"] = value.detach().cpu().numpy()
        return found

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `state` has said."""
        for key, values in arrays.items():
            kind, _, rest = key.partition(".")
            number, _, name = rest.partition(".")
            if kind != "optimizer" or not number.isdecimal() or int(number) >= len(self.parameters):
                continue
            p = self.parameters[int(number)]
            if values.shape not in ((), tuple(p.shape)):
                raise ValueError(f"the array {key!r} has shape {values.shape}, expected {tuple(p.shape)}")
            # Torch's own optimisers keep their counts on the CPU.
            self.optimizer.state[p][name] = torch.from_numpy(values).to(p.device if values.shape else "cpu")

    def _loss(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        x, frozen, target, weight = (tensor[rows] for tensor in self.data)
        settings, sets = self.settings, iter(self.shape.sets)
        x = _dropout(x, settings.input_dropout, generator)
        frozen = _dropout(frozen, settings.dropout, generator)
        for layer in self.layers:
            parts = []
            for w, b, scale, shift in layer:
                raw = reference.features(x, w, b, next(sets))
                deviation = torch.sqrt(raw.var(dim=0, correction=0) + NORM_EPSILON)
                parts.append((raw - raw.mean(dim=0)) / deviation * scale + shift)
            x = _dropout(torch.cat(parts, dim=1), settings.dropout, generator)
        features, head_set = torch.cat([frozen, x], dim=1), self.shape.head_set
        weight_out, bias_out = self.head
        if head_set is None:
            outputs = features @ weight_out + bias_out
        else:
            outputs = reference.features(features, weight_out, bias_out, head_set)
        return (row_losses(settings.loss, outputs, target) * weight).mean()

    def _limit_norms(self) -> None:
        if self.settings.max_norm:
            with torch.no_grad():
                for layer in self.layers:
                    for block in layer:
                        norms = block[0].norm(dim=0).clamp_min(1e-30)
                        block[0].mul_((self.settings.max_norm / norms).clamp_max(1.0))


def _leaf(values: Tensor) -> Tensor:
    return values.detach().requires_grad_()


def _dropout(x: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    if rate <= 0:
        return x
    keep = torch.rand(x.shape, generator=generator, device=x.device) >= rate
    return x * keep / (1 - rate)
