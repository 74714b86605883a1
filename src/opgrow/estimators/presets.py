"""Named points between small and accurate: how many networks, how large, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..network import Network
from ..parameters import check_choice, check_integer, is_auto

__all__ = ["PRESETS", "Preset", "preset_of", "student_size"]

#: Neurons that a student has at most.
_MOST = 200


def _each(n_inputs: int, n_outputs: int) -> int:
    """Parameters of a neuron: its inputs and bias, scale and shift of its norm, a weight to each output."""
    return n_inputs + 3 + n_outputs


def _compact(n_inputs: int, n_outputs: int) -> int:
    """500 on small problems; where those are not enough, a neuron for each class."""
    if n_inputs <= 20 and n_outputs <= 10:
        return 500
    return max(20, n_outputs) * _each(n_inputs, n_outputs) + n_outputs


def _tenth_of_an_mlp(n_inputs: int, n_outputs: int) -> int | None:
    """A tenth of the parameters of a multilayer perceptron with two layers of 200.

    None where that is too little: students with fewer than 40 neurons, or than one for each class, are points
    behind the averages that they learn from.
    """
    tenth = (200 * n_inputs + 200 + 200 * 200 + 200 + 201 * n_outputs) // 10
    neurons = (tenth - n_outputs) // _each(n_inputs, n_outputs)
    return tenth if neurons >= max(40, n_outputs) else None


@dataclass(frozen=True)
class Preset:
    """Values of the parameters that are "auto".

    ``allowed`` says how many parameters the network may have for so many inputs and outputs: an average with
    more of them is turned into a student that has not. None, or that it says so: as many as there are.
    """

    n_min: int
    n_step: int
    n_estimators: int
    allowed: Callable[[int, int], int | None] | None = None
    max_layers: int = 1


PRESETS: dict[str | None, Preset] = {
    None: Preset(40, 20, 1, max_layers=2),
    "compact": Preset(20, 10, 5, _compact),
    "balanced": Preset(20, 10, 5, _tenth_of_an_mlp),
    "accurate": Preset(40, 20, 10),
}


def preset_of(p: Any) -> Preset:
    """The preset of an estimator, with what its own parameters say instead; all of them checked."""
    check_choice("preset", p.preset, tuple(PRESETS))
    preset = PRESETS[p.preset]
    found = {}
    for name in ("n_min", "n_step", "n_estimators", "max_layers"):
        value = getattr(p, name)
        if not is_auto(value):
            check_integer(name, value, 1, " or 'auto'")
            found[name] = int(value)
    # Only networks with one layer can be averaged: who asks for more layers gets one network.
    automatic = preset.n_estimators if found.get("max_layers", 1) == 1 else 1
    n_estimators = found.get("n_estimators", automatic)
    max_layers = found.get("max_layers", 2 if n_estimators == 1 else 1)
    if max_layers > 1 and n_estimators > 1:
        raise ValueError(
            f"n_estimators={n_estimators} averages networks with one layer each: max_layers must be 1 or "
            f"'auto', got {max_layers}"
        )
    if p.distill is not None and not is_auto(p.distill):
        check_integer("distill", p.distill, 1, ", None or 'auto'")
    return Preset(
        found.get("n_min", preset.n_min),
        found.get("n_step", preset.n_step),
        n_estimators,
        preset.allowed if is_auto(p.distill) else None,
        max_layers,
    )


def student_size(p: Any, network: Network) -> int | None:
    """Neurons of the student that takes a network's place; None where it stays."""
    if p.distill is None or not is_auto(p.distill):
        return p.distill
    allowed = preset_of(p).allowed
    if allowed is None:
        return None
    most = allowed(network.n_inputs, network.n_outputs)
    if most is None or network.n_parameters() <= most:
        return None
    return min((most - network.n_outputs) // _each(network.n_inputs, network.n_outputs), _MOST)
