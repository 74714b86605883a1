"""Presets, from small to accurate: how many networks are grown, how large, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ...common.checks import check_choice, check_integer, is_auto
from ..base import NetworkSize

__all__ = [
    "PRESETS",
    "Preset",
    "PresetParameters",
    "finds_its_size",
    "n_networks",
    "preset_of",
    "sizes_up_to",
    "student_follows",
    "student_size",
    "widest",
    "widths",
]

#: Neurons that a student has at most, and a layer.
_MOST, _WIDEST = 200, 400
#: Layers that a network has at most.
_DEPTH = 3
#: The part of a layer that its next block has, where the user names no number of neurons.
_SHARE = 0.5
#: Up to so many rows an average has all its networks; then fewer, as there is less to average away, and at
#: least three.
_ROWS, _FEWEST = 20_000, 3
#: Networks that are tuned as a whole may come to have a neuron in each layer for so many training rows.
_LEAST_ROWS_OF_A_NEURON = 5
#: The fewest and the most neurons that each of their layers has.
_WIDTHS = 10, 100
#: A doubled width is cut to the most there may be, and is not tried where it is hardly a larger one then.
_LEAST_STEP = 1.5
#: Above so many training rows there are no such networks, as they would take too long.
_ROWS_OF_WHOLE = 16_000


class PresetParameters(Protocol):
    """The parameters that presets give values to."""

    preset: str | None
    n_min: int | str
    n_step: int | str
    max_neurons: int | str
    max_layers: int | str
    n_estimators: int | str
    distill: int | str | None


@dataclass(frozen=True)
class Preset:
    """Values of the parameters that are "auto".

    Attributes
    ----------
    n_min, n_step, n_estimators, max_layers : values of the parameters of these names
    step_share : the part of its layer that a block has at least
    rows_of_a_neuron : for so many training rows, layers of networks that are tuned as a whole have a neuron
        to begin with
    student : how many parameters the network may have in the end, for so many inputs and outputs; a larger
        one becomes the teacher of one that has not
    """

    n_min: int
    n_step: int
    n_estimators: int = 1
    max_layers: int = _DEPTH
    step_share: float = _SHARE
    rows_of_a_neuron: int = 80
    student: Callable[[int, int], int] | None = None


def _each(n_inputs: int, n_outputs: int) -> int:
    """Parameters of a neuron: its inputs and bias, scale and shift of its norm, a weight to each output."""
    return n_inputs + 3 + n_outputs


def _compact(n_inputs: int, n_outputs: int) -> int:
    """500 parameters on small problems; where those are not enough, a neuron for each class."""
    if n_inputs <= 20 and n_outputs <= 10:
        return 500
    return max(20, n_outputs) * _each(n_inputs, n_outputs) + n_outputs


PRESETS: dict[str | None, Preset] = {
    None: Preset(10, 10),
    "compact": Preset(10, 10, 5, student=_compact),
    "balanced": Preset(10, 10, 5),
    "accurate": Preset(10, 10, 15, rows_of_a_neuron=20),
}


def preset_of(p: PresetParameters) -> Preset:
    """The preset of an estimator, with what its own parameters say instead; all of them checked."""
    check_choice("preset", p.preset, tuple(PRESETS))
    preset = PRESETS[p.preset]
    own: dict[str, Any] = {}
    for name in ("n_min", "n_step", "n_estimators", "max_layers"):
        value = getattr(p, name)
        if not is_auto(value):
            check_integer(name, value, 1, " or 'auto'")
            own[name] = int(value)
    if "n_step" in own:
        own["step_share"] = 0.0
    preset = replace(preset, **own)
    if p.distill is not None and not is_auto(p.distill):
        check_integer("distill", p.distill, 1, ", None or 'auto'")
    if not is_auto(p.max_neurons):
        check_integer("max_neurons", p.max_neurons, 1, " or 'auto'")
    return preset


def n_networks(p: PresetParameters, n_rows: int) -> int:
    """How many networks are grown from so many rows."""
    most = preset_of(p).n_estimators
    return min(most, max(_FEWEST, _ROWS * most // n_rows)) if is_auto(p.n_estimators) else most


def widths(p: PresetParameters, n_rows: int) -> list[int]:
    """Neurons that each layer may have in networks that are tuned as a whole, the fewest first.

    Their layers are one block each, and all of them stay until the final tuning, which tells what they are
    worth together. There are none where users name sizes, whose networks have these, or of too many rows.
    """
    if not all(map(is_auto, (p.n_min, p.n_step, p.max_neurons))) or n_rows > _ROWS_OF_WHOLE:
        return []
    fewest, most = _WIDTHS
    found = [min(max(fewest, n_rows // preset_of(p).rows_of_a_neuron), most)]
    most = min(most, n_rows // _LEAST_ROWS_OF_A_NEURON)
    while most >= _LEAST_STEP * found[-1]:
        found.append(min(2 * found[-1], most))
    return found


def widest(p: PresetParameters) -> int:
    """Neurons that a layer may have."""
    return max(_WIDEST, preset_of(p).n_min) if is_auto(p.max_neurons) else int(p.max_neurons)


def student_follows(p: PresetParameters, max_parameters: int | None) -> bool:
    """Whether a student may take the place of what is grown."""
    if not is_auto(p.distill):
        return p.distill is not None
    preset = preset_of(p)
    return preset.student is not None or (max_parameters is not None and preset.n_estimators > 1)


def student_size(p: PresetParameters, teacher: NetworkSize, max_parameters: int | None = None) -> int | None:
    """Neurons of the student that takes a network's place; None where it stays."""
    if p.distill is None or not isinstance(p.distill, str):
        return p.distill
    student = preset_of(p).student
    bounds = [] if max_parameters is None else [max_parameters]
    if student is not None:
        bounds.append(student(teacher.n_inputs, teacher.n_outputs))
    if not bounds:
        return None
    most = min(bounds)
    if teacher.n_parameters <= most:
        return None
    neurons = (most - teacher.n_outputs) // _each(teacher.n_inputs, teacher.n_outputs)
    return max(1, min(neurons, _MOST))


def finds_its_size(p: PresetParameters) -> bool:
    """Whether a student may have fewer neurons than there is room for."""
    return is_auto(p.distill) and preset_of(p).student is not None


def sizes_up_to(most: int) -> list[int]:
    """Neurons of the students that are tried: powers of two, and as many as there may be."""
    return [1 << power for power in range((most - 1).bit_length())] + [most]
