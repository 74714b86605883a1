"""Model files: damaged ones are refused or change nothing, forged ones are refused or work, cheaply."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import safetensors.torch
import torch
from damages import DAMAGES
from outcomes import Wrong, check_sentence
from small_models import MODELS, fitted, state

import opgrow
from opgrow.common.checksums import seal, tensors_in

#: Addresses that reading a file may take beside what the process had.
MEMORY = 2 << 30


def prepare(folder: Path) -> Callable[[Random], str]:
    contents, states = [], []
    for name in MODELS:
        path = folder / f"{name}.safetensors"
        fitted(name).save(path)
        contents.append(path.read_bytes())
        states.append(state(opgrow.load(path)))
    place = folder / "damaged.safetensors"
    _limit_memory()

    def attack(rng: Random) -> str:
        number = rng.randrange(len(contents))
        if rng.random() < 0.25:
            place.write_bytes(_forged(rng, contents[number]))
            return _forgery(place)
        damage = rng.choice(DAMAGES)
        found = damage(rng, contents[number], rng.choice(contents))
        place.write_bytes(found)
        same = found == contents[number]
        return _accident(place, states[number], damage.__name__, same)

    return attack


def _accident(place: Path, before: Any, damage: str, same: bool) -> str:
    try:
        model = opgrow.load(place)
    except ValueError as error:
        check_sentence(error)
        if same:
            raise Wrong(f"a file that was not damaged was refused: {error}") from error
        return "refused"
    if state(model) != before:
        raise Wrong(f"{damage}: silently another model")
    return "not changed" if same else "changed without effect"


def _forgery(place: Path) -> str:
    """A file whose checksum is right, and what it says may be anything."""
    try:
        model = opgrow.load(place)
    except ValueError as error:
        check_sentence(error)
        return "forged and refused"
    try:
        with np.errstate(all="ignore"):
            model.predict(np.zeros((2, model.n_features_in_)))
    except ValueError as error:
        check_sentence(error)
        return "forged and refused to predict"
    return "forged and works"


# --- forgeries ---

_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2,
    2**31,
    2**63,
    10**30,
    1e308,
    -0.5,
    "",
    "x",
    "é\0",
    "sum",
    [],
    {},
]
_VALUES += [
    [[]],
    [1, 2],
    {"float": "nan"},
    {"tuple": [1]},
    {"dict": [["a", 1]]},
    "y" * 50_000,
    list(range(3000)),
]


def _forged(rng: Random, content: bytes) -> bytes:
    text = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["opgrow"]
    record, tensors = json.loads(text), safetensors.torch.load(content)
    del record["checksum"]
    rng.choice([_other_value, _other_value, _absurd, _other_tensor])(rng, record, tensors)
    # As the package writes it, but for its limits.
    sealed = seal(json.dumps(record), tensors_in(safetensors.torch.save(tensors)))
    return safetensors.torch.save(tensors, metadata={"opgrow": sealed})


def _other_value(rng: Random, record: Any, tensors: dict[str, torch.Tensor]) -> None:
    """Something else anywhere in the description."""
    inner = record
    while True:
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        key = rng.choice(list(keys))
        if not isinstance(inner[key], dict | list) or not inner[key] or rng.random() < 0.2:
            break
        inner = inner[key]
    if rng.random() < 0.2:
        del inner[key]
    else:
        inner[key] = rng.choice(_VALUES)


def _absurd(rng: Random, record: Any, tensors: dict[str, torch.Tensor]) -> None:
    """Many times as much of something."""
    what = rng.choice(["layers", "blocks", "history", "width", "inputs", "tensors"])
    size = rng.choice([1_000, 20_000])
    if what in ("layers", "history"):
        record[what] = (record[what] * size)[: size if what == "layers" else 3000]
    elif what == "blocks":
        record["layers"][0] = (record["layers"][0] * size)[:size]
    elif what == "width":
        record["layers"][0][0]["n_neurons"] = rng.choice([2**31, 2**40, 2**62])
    elif what == "inputs":
        record["n_inputs"] = rng.choice([2**31, 2**40, 2**62])
    else:
        tensors |= {f"layers.0.blocks.{i}.weight": torch.zeros(1) for i in range(size)}


def _other_tensor(rng: Random, record: Any, tensors: dict[str, torch.Tensor]) -> None:
    name = rng.choice(sorted(tensors))
    tensor = tensors[name]
    how = rng.randrange(5)
    if how == 0:
        del tensors[name]
    elif how == 1:
        tensors[name] = tensor.to(rng.choice([torch.float16, torch.float64, torch.int8, torch.bool]))
    elif how == 2:
        tensors[name] = torch.zeros(rng.choice([(0,), (1,), (3, 3), (100_000,), ()]), dtype=tensor.dtype)
    elif tensor.is_floating_point():
        tensors[name] = torch.full_like(tensor, rng.choice([np.nan, np.inf, -np.inf, 3e38, 1e-45, 0.0, -1.0]))


def _limit_memory() -> None:
    status = Path("/proc/self/statm")
    if status.exists():
        used = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
