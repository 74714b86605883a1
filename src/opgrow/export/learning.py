"""The head that an exported program goes on learning with: a triangular factor in place of sums.

The sums of a running ridge (`opgrow.closed_form.running_ridge`) square the condition of the features, which
single precision does not bear. So a program holds the factor of the regularised Gram matrix of 1 and the
features, as R' D R with a unit upper triangle R and a diagonal D, and the targets T for which R w = T gives
the head's weights. A row is rotated into them without square roots (W. M. Gentleman, "Least squares
computations by Givens transformations without square roots", IMA Journal of Applied Mathematics 12, 1973).
D, which is a sum, never loses its sign, and forgetting multiplies D alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from ..closed_form.running_ridge import RunningRidge
from ..common.errors import NotFiniteError
from ..engine.native import native
from ..network import Block, Network
from ..network.scaling import Ranges
from .program import LINEAR, Program

__all__ = ["MOST_BYTES", "StartingHead", "check_learns", "folds", "starting_head", "state_bytes"]

#: Bytes of a state unless more are asked for.
MOST_BYTES = 32_768
#: Of the limits of targets, which are single precision.
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class StartingHead:
    """What a state begins with, and constants of the update.

    Attributes
    ----------
    weight : (p + 1,) the diagonal D; the first is the sum of the rows' weights
    factor : (p (p + 1) / 2,) R above its diagonal, row by row; the first row are the means of the features
    target : (p + 1, C) T, for targets as the update takes them
    spread, ridge : (p,) centred sums of squares of the features, and the part of D R that is their penalty
    low, high : (C,) the least and the largest target seen, or None where nothing limits outputs
    shift : (C,) what is subtracted from targets, or None for classes
    hot : what the target of a row's class is, and that of the others is 0
    penalty : the ridge, in units of the variance of a feature
    margin : part of the targets' range by which predictions may exceed it
    forgetting : by how much a row counts less with each row after it
    """

    weight: np.ndarray
    factor: np.ndarray
    target: np.ndarray
    spread: np.ndarray
    ridge: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    shift: np.ndarray | None
    hot: float
    penalty: float
    margin: float
    forgetting: float

    @property
    def n_features(self) -> int:
        return len(self.ridge)

    @property
    def members(self) -> dict[str, np.ndarray]:
        """The arrays of the state, flat and in order."""
        arrays = {
            "weight": self.weight,
            "factor": self.factor,
            "target": self.target,
            "spread": self.spread,
            "ridge": self.ridge,
        }
        if self.low is not None and self.high is not None:
            arrays |= {"low": self.low, "high": self.high}
        return {name: array.ravel().astype(np.float32) for name, array in arrays.items()}

    @property
    def n_bytes(self) -> int:
        """Of the state, which is made of these arrays."""
        return sum(array.nbytes for array in self.members.values())

    def outputs(self, seen: np.ndarray) -> np.ndarray:
        """What a program says at first of features (n, p), in single precision."""
        p, at = len(self.spread), 0
        members = self.members
        factor, target = members["factor"], members["target"].reshape(self.target.shape)
        rest = np.concatenate([np.ones((len(seen), 1)), seen], axis=1).astype(np.float32)
        out = np.zeros((len(seen), self.target.shape[1]), np.float32)
        for i in range(p + 1):
            row = factor[at : at + p - i]
            out += rest[:, i : i + 1] * target[i]
            rest[:, i + 1 :] -= rest[:, i : i + 1] * row[None]
            at += p - i
        out = out if self.shift is None else out + self.shift.astype(np.float32)
        if self.low is None or self.high is None:
            return out
        reach = self.margin * (self.high - self.low)
        return out.clip(self.low - reach, self.high + reach)


class Sums(Protocol):
    """What an estimator holds of the rows that it has seen."""

    sums: RunningRidge
    ridge: float
    factor: float
    ranges: Ranges


class Pupil(Protocol):
    """An estimator that holds sums, and whose head is theirs."""

    network_: Network
    running_: Sums
    loss_: str
    forgetting: float


def state_bytes(n_features: int, n_outputs: int, classification: bool) -> int:
    """How large the state of a head is."""
    p = n_features
    numbers = (p + 1) * (1 + n_outputs) + p * (p + 1) // 2 + 2 * p + 2 * n_outputs * (not classification)
    return 4 * numbers


def check_learns(model: Any, arithmetic: str, windows: bool, learn: bool | int) -> None:
    """Refuse, in one sentence, what cannot go on learning on a device."""
    if not isinstance(learn, int) or learn < 1:
        raise ValueError(
            "learn must be True, False or the bytes that the state may take, of which True allows "
            f"{MOST_BYTES}, got {learn!r}."
        )
    most_bytes = MOST_BYTES if learn is True else learn
    if arithmetic != "float":
        raise ValueError(f"learn needs arithmetic='float', got '{arithmetic}'.")
    if windows:
        raise ValueError("learn takes rows of features, and a pipeline of WindowFeatures takes windows.")
    if isinstance(model.network_.head, Block):
        raise ValueError(
            f"The head of this {type(model).__name__} has operators, and only linear heads learn on: call "
            "partial_fit before exporting it, which replaces the head by a linear one."
        )
    if getattr(model, "class_weight", None) is not None:
        raise ValueError("learn counts each row once, and this model has a class_weight: set it to None.")
    p, n = model.network_.head_width, model.network_.n_outputs
    size = state_bytes(p, n, hasattr(model, "classes_"))
    if size > most_bytes:
        raise ValueError(
            f"The state of a head of {p} features and {n} outputs takes {size} bytes, and at most "
            f"{most_bytes} are allowed: fit a network with fewer neurons, or pass learn={size}."
        )


def starting_head(pupil: Any, network: Program, program: Program) -> StartingHead:
    """The state of an estimator with sums (`IncrementalEstimator.with_sums`).

    Parameters
    ----------
    pupil : the estimator
    network, program : before and after scales and shifts of features became a part of the head
    """
    learner = cast("Pupil", pupil)
    running = learner.running_
    sums, ranges = running.sums, running.ranges
    scale, shift = _folded(network, program)
    mean, gram = (sums.mean - shift) / scale, sums.gram / scale / scale[:, None]
    unit, offset, centre = _target_form(learner)
    cross, target_mean = sums.cross / scale[:, None] * unit, sums.target_mean * unit + offset
    penalty = running.ridge * sums.weight / sums.count
    ridge = penalty * (sums.scale / scale) ** 2
    diagonal, triangle, target = _factored(gram + np.diag(ridge), cross)
    above = np.triu_indices(len(mean), 1)
    margin = _margin()
    low, high = _seen_targets(learner.network_, ranges, margin)
    return StartingHead(
        weight=np.concatenate([[sums.weight], diagonal]),
        factor=np.concatenate([mean, triangle[above]]),
        target=np.concatenate([target_mean[None], target]),
        spread=np.diag(gram).copy(),
        ridge=ridge,
        low=low,
        high=high,
        shift=centre,
        hot=running.factor,
        penalty=penalty,
        margin=margin,
        forgetting=float(learner.forgetting),
    )


def _margin() -> float:
    """Part of the targets' range by which predictions may exceed it."""
    of_one = Ranges(np.zeros(1), np.ones(1), np.zeros(1), np.ones(1))
    return float(of_one.output_limits()[1][0]) - 1


def _seen_targets(
    network: Network, ranges: Ranges, margin: float
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The least and the largest targets, such that the limits of the network follow from them."""
    if network.output_low is None or network.output_high is None:
        return None, None
    low, high = (limit.clip(-_LARGEST, _LARGEST) for limit in (network.output_low, network.output_high))
    beyond = margin / (1 + 2 * margin) * (high - low)
    return np.minimum(low + beyond, ranges.target_low), np.maximum(high - beyond, ranges.target_high)


def _target_form(learner: Pupil) -> tuple[np.ndarray | float, np.ndarray | float, np.ndarray | None]:
    """Factor and summand that make the update's targets of the sums', and what a target is shifted by.

    Classes become logits; other targets are in units of the user, less their mean in single precision.
    """
    network = learner.network_
    if network.output_mean is None or network.output_scale is None:
        return learner.running_.factor, 0.0, None
    centre = network.output_mean.astype(np.float32).astype(np.float64)
    return network.output_scale, network.output_mean - centre, centre


def _factored(gram: np.ndarray, cross: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """D, R and T of a regularised Gram matrix (p, p) and its right-hand sides (p, C)."""
    lower = native().cholesky(np.ascontiguousarray(gram))
    if lower is None:
        raise NotFiniteError("the Gram matrix of the features has no Cholesky factor")
    diagonal = np.diag(lower).copy()
    target = native().substitute(lower, np.ascontiguousarray(cross)) / diagonal[:, None]
    return diagonal * diagonal, (lower / diagonal).T, target


def _folded(network: Program, program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Scale and shift (p,) that features of the network have, and those of the program lack."""
    p = network.head.n_inputs
    scale, shift, at = np.ones(p), np.zeros(p), 0
    if network.keeps_layers or not network.layers:
        return scale, shift
    for before, after in zip(network.layers[-1], program.layers[-1], strict=True):
        span = slice(at, at := at + before.n_neurons)
        if before.scale is not None and before.shift is not None and after.scale is None:
            scale[span], shift[span] = before.scale, before.shift
    return scale, shift


def folds(network: Program, program: Program) -> bool:
    """Whether what a program computes tells the features of the network: no scale is 0."""
    assert program.head.operators == LINEAR
    return bool((_folded(network, program)[0] != 0).all())
