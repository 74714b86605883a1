"""Checkpoint folders: damaged ones are refused as such, or the fit grows the network that it should."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from damages import DAMAGES
from outcomes import Wrong, check_sentence
from small_models import IRIS, fitted, made, state

NAMES = ("blocks", "regression", "average", "population", "progressive", "broad")


def prepare(folder: Path) -> Callable[[Random], str]:
    wholes: dict[str, tuple[Path, Path, Path]] = {}
    states = {}
    for name in NAMES:
        places = [folder / f"{name}-{i}" for i in range(3)]
        states[name] = state(fitted(name, checkpoint_dir=places[0]))
        fitted(name, checkpoint_dir=places[1])  # the same fit, in another run
        fitted(name, checkpoint_dir=places[2], random_state=1)
        wholes[name] = (places[0], places[1], places[2])
    place = folder / "damaged"

    def attack(rng: Random) -> str:
        name = rng.choice(NAMES)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(wholes[name][0], place)
        files = sorted(place.glob("*.safetensors"))
        for file in files[rng.randint(1, len(files)) :]:  # a fit that was cut off there
            file.unlink()
        how = _damage(rng, place, wholes[name][1:])
        model = made(name, checkpoint_dir=place)
        try:
            model.fit(*IRIS)
        except ValueError as error:
            check_sentence(error)
            if " is damaged: " not in str(error) or str(place) not in str(error):
                raise Wrong(f"{name}, {how}: something else is blamed: {error}") from error
            return "refused"
        if state(model) != states[name]:
            raise Wrong(f"{name}, {how}: silently another network")
        return "resumed to the same network"

    return attack


def _damage(rng: Random, place: Path, others: tuple[Path, ...]) -> str:
    """Damage a folder; what was done, in words."""
    work = sorted(place.glob("*.safetensors"))
    files = [*work, work[-1], place / "run.json"]
    file, second = rng.choice(files), rng.choice(files)
    content = file.read_bytes()
    how = rng.choice(["bytes", "bytes", "bytes", "swap", "copy", "other run", "delete", "more"])
    if how == "bytes":
        damage = rng.choice(DAMAGES)
        file.write_bytes(damage(rng, content, second.read_bytes()))
        how = damage.__name__
    elif how == "swap":
        file.write_bytes(second.read_bytes())
        second.write_bytes(content)
    elif how == "copy":
        second.write_bytes(content)
    elif how == "other run":
        other = rng.choice(others)
        file.write_bytes((other / file.name).read_bytes())
    elif how == "delete":
        file.unlink()
        if file.name == "run.json" and rng.random() < 0.5:  # another fit begins here
            shutil.copy(rng.choice(others) / file.name, file)
    else:
        last = int(work[-1].stem.split("-")[1])
        new = rng.choice([f"network01-{last + 1:04d}", f"network01-{last + 5:04d}", "network09-0001", "x"])
        (place / f"{new}.safetensors").write_bytes(content)
    return f"{how} of {file.name}"
