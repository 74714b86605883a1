"""Named points between small and accurate: how many networks, how large, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..network import Network
from ..parameters import check_choice, check_integer, is_auto

__all__ = ["PRESETS", "Preset", "preset_of", "student_follows", "student_size"]

#: Neurons that a student has at least and at most.
_FEWEST, _MOST = 12, 200


def _compact(n_inputs: int, n_outputs: int) -> int:
    return 500


def _tenth_of_an_mlp(n_inputs: int, n_outputs: int) -> int:
    """A tenth of the parameters of a multilayer perceptron with two layers of 200."""
    return (200 * n_inputs + 200 + 200 * 200 + 200 + 201 * n_outputs) // 10


@dataclass(frozen=True)
class Preset:
    """Values of the parameters that are "auto".

    ``allowed`` says how many parameters the network may have for so many inputs and outputs: an average with
    more of them is turned into a student that has not. None: as many as there are.
    """

    n_min: int
    n_step: int
    max_layers: int
    n_estimators: int
    allowed: Callable[[int, int], int] | None = None


PRESETS: dict[str | None, Preset] = {
    None: Preset(40, 20, 2, 1),
    "compact": Preset(20, 10, 1, 5, _compact),
    "balanced": Preset(20, 10, 1, 5, _tenth_of_an_mlp),
    "accurate": Preset(40, 20, 1, 10),
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
    n_estimators = found.get("n_estimators", preset.n_estimators)
    max_layers = found.get("max_layers", preset.max_layers if n_estimators == 1 else 1)
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
        max_layers,
        n_estimators,
        preset.allowed if is_auto(p.distill) else None,
    )


def student_follows(p: Any, max_parameters: int | None) -> bool:
    """Whether a student may take the place of what is grown."""
    if not is_auto(p.distill):
        return p.distill is not None
    preset = preset_of(p)
    return preset.allowed is not None or (max_parameters is not None and preset.n_estimators > 1)


def student_size(p: Any, network: Network, max_parameters: int | None = None) -> int | None:
    """Neurons of the student that takes a network's place; None where it stays."""
    if p.distill is None or not is_auto(p.distill):
        return p.distill
    allowed = preset_of(p).allowed
    bounds = [] if max_parameters is None else [max_parameters]
    if allowed is not None:
        bounds.append(allowed(network.n_inputs, network.n_outputs))
    if not bounds:
        return None
    most = min(bounds)
    if network.n_parameters() <= most:
        return None
    # Of a neuron: a weight for each input, a bias, scale and shift of its norm, and a weight to each output.
    each = network.n_inputs + 3 + network.n_outputs
    return min(max((most - network.n_outputs) // each, _FEWEST), _MOST)
