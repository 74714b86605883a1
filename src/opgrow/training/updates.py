"""How the reference changes parameters: Adam on all candidates at once, or a user's torch optimiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .candidates import Candidates, fill
from .settings import ADAM_EPSILON, TuningSettings

__all__ = ["Adam", "UsersOptimizer"]

_BETA1, _BETA2 = 0.9, 0.999


class Adam:
    """Adam for all candidates at once, each with its own learning rate and number of steps."""

    def __init__(self, candidates: Candidates, theta: Tensor, settings: TuningSettings) -> None:
        self.theta = theta
        decay = [shape.decay(settings.weight_decay) for shape in candidates.shapes]
        self.decay = torch.from_numpy(np.stack(decay)).to(theta.device)
        self.first, self.second = torch.zeros_like(theta), torch.zeros_like(theta)
        self.steps = torch.zeros(len(theta), dtype=torch.int64, device=theta.device)

    def __call__(self, active: np.ndarray, gradient: Tensor, rates: np.ndarray, finite: Tensor) -> None:
        moved = torch.from_numpy(active).to(self.theta.device)[finite]
        rate = torch.from_numpy(rates).to(self.theta.device)[moved]
        theta, first, second = self.theta[moved], self.first[moved], self.second[moved]
        slope = gradient[finite] + self.decay[moved] * theta
        self.steps[moved] += 1
        steps = self.steps[moved].double()
        first = first + (1 - _BETA1) * (slope - first)
        second = _BETA2 * second + (1 - _BETA2) * slope.square()
        size = (rate / (1 - _BETA1**steps)).float()[:, None]
        root = torch.sqrt(1 - _BETA2**steps).float()[:, None]
        self.theta[moved] = theta - size * first / (second.sqrt() / root + ADAM_EPSILON)
        self.first[moved], self.second[moved] = first, second

    def state(self) -> dict[str, np.ndarray]:
        named = {"first": self.first, "second": self.second, "steps": self.steps}
        return {name: tensor.cpu().numpy() for name, tensor in named.items()}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        for name in ("first", "second", "steps"):
            tensor = getattr(self, name)
            values = np.empty(tuple(tensor.shape), tensor.cpu().numpy().dtype)
            fill(values, arrays, name)
            tensor.copy_(torch.from_numpy(values))


class UsersOptimizer:
    """A torch optimiser for each candidate, whose parameters share the memory of the flat vectors."""

    def __init__(self, candidates: Candidates, theta: Tensor, settings: TuningSettings) -> None:
        self.shape = candidates.shapes[0]
        self.parameters = [self._groups(row) for row in theta]
        self.optimizers = [
            _made(
                settings,
                [
                    {"params": decayed, "weight_decay": settings.weight_decay},
                    {"params": plain, "weight_decay": 0.0},
                ],
            )
            for decayed, plain in self.parameters
        ]

    def _groups(self, vector: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Views of a vector: weights, which decay, and all else."""
        blocks = [block for layer in self.shape.blocks(vector) for block in layer]
        weight, bias = self.shape.head(vector)
        decayed = [*(block.weight for block in blocks), weight]
        plain = [part for block in blocks for part in (block.bias, block.scale, block.shift)] + [bias]
        return [part.detach() for part in decayed], [part.detach() for part in plain]

    def __call__(self, active: np.ndarray, gradient: Tensor, rates: np.ndarray, finite: Tensor) -> None:
        for k, row, usable in zip(active.tolist(), gradient, finite.tolist(), strict=True):
            if not usable:
                continue
            for parts, slopes in zip(self.parameters[k], self._groups(row), strict=True):
                for parameter, slope in zip(parts, slopes, strict=True):
                    parameter.grad = slope.contiguous()
            for group in self.optimizers[k].param_groups:
                group["lr"] = float(rates[k])
            self.optimizers[k].step()

    def state(self) -> dict[str, np.ndarray] | None:
        """What the optimisers remember of each parameter; None where that is more than tensors like it."""
        arrays: dict[str, np.ndarray] = {}
        for k, parameters in enumerate(self.parameters):
            for number, p in enumerate([*parameters[0], *parameters[1]]):
                for name, value in self.optimizers[k].state.get(p, {}).items():
                    if not isinstance(value, Tensor) or value.shape not in ((), p.shape):
                        return None
                    arrays[f"optimizer.{k}.{number}.{name}"] = value.detach().cpu().numpy()
        return arrays

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        for key, values in arrays.items():
            kind, *rest = key.split(".", 3)
            if kind != "optimizer":
                continue
            p = self._parameter(key, rest)
            if values.shape not in ((), tuple(p.shape)):
                raise ValueError(f"the array {key!r} has shape {values.shape}, expected {tuple(p.shape)}")
            # Torch's own optimisers keep their counts on the CPU.
            device = p.device if values.shape else "cpu"
            self.optimizers[int(rest[0])].state[p][rest[2]] = torch.from_numpy(values).to(device)

    def _parameter(self, key: str, place: Sequence[str]) -> Tensor:
        numbers = [int(part) if part.isdecimal() else -1 for part in place[:2]]
        everything = [[*decayed, *plain] for decayed, plain in self.parameters]
        if (
            len(place) != 3
            or not 0 <= numbers[0] < len(everything)
            or not 0 <= numbers[1] < len(everything[0])
        ):
            raise ValueError(f"the array {key!r} belongs to no parameter")
        return everything[numbers[0]][numbers[1]]


def _made(settings: TuningSettings, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    assert callable(settings.optimizer)
    made = settings.optimizer(groups)
    if not isinstance(made, torch.optim.Optimizer):
        raise ValueError(f"optimizer must return a torch optimiser, and returned a {type(made).__name__}")
    return made


def load_parameters(best: Tensor, theta: Tensor, arrays: Mapping[str, np.ndarray]) -> bool:
    """Fill in the best parameters and, where a training was under way, its own; whether one was."""
    for name, tensor in (("best", best), ("theta", theta)):
        if name == "theta" and name not in arrays:
            return False
        values = np.empty(tuple(tensor.shape), np.float32)
        fill(values, arrays, name)
        tensor.copy_(torch.from_numpy(values))
    return True
