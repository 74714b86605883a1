"""The same data and seed grow the same network, bit for bit, whatever processor, compiler, threads and ranks.

Each configuration is a process of its own, which fits every estimator and says what came out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import every_estimator
import pytest

from opgrow.engine.library import Library

ROOT = Path(__file__).parents[2]
#: What makes numpy and its BLAS compute as they do on a processor that knows no more than an instruction set.
PROCESSORS = {
    "v3": {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"},
    "v2": {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"},
}


def say(*arguments: str, **variables: str) -> Any:
    """What a process with those environment variables says of its fits."""
    chosen = ("OPGROW_ISA", "OPGROW_ENGINE")
    environment = {name: value for name, value in os.environ.items() if name not in chosen} | variables
    command = [sys.executable, every_estimator.__file__, *arguments]
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """The digests with the best instruction set, by one thread."""
    return say("fits", "1")


def test_every_estimator_is_fitted_and_differs_from_the_others(expected: dict[str, str]) -> None:
    assert len(expected) == 22
    assert len(set(expected.values())) == 22


def test_two_threads_grow_the_same_networks(expected: dict[str, str]) -> None:
    assert say("fits", "2") == expected


@pytest.fixture(params=["v3", "v2"])
def isa(request: pytest.FixtureRequest) -> str:
    """An instruction set that this processor knows, and that is not its best."""
    usable = [name for name, supported in Library().isas().items() if supported]
    if request.param not in usable[1:]:
        pytest.skip(f"{request.param} is the best that this processor knows, or not known to it")
    return request.param


def test_other_processors_grow_the_same_networks(isa: str, expected: dict[str, str]) -> None:
    """Neither the engine, nor numpy and its BLAS, compute with more than that instruction set."""
    assert say("fits", "1", OPGROW_ISA=isa, **PROCESSORS[isa]) == expected


def test_another_compiler_grows_the_same_networks(expected: dict[str, str]) -> None:
    if importlib.util.find_spec("ziglang") is None or shutil.which("cmake") is None:
        pytest.skip("needs CMake and ziglang, which `make cpus` installs")
    folder = ROOT / "build" / "zig"  # stays there: compiling takes longer than all fits
    environment = os.environ | {"CC": f"{sys.executable} -m ziglang cc"}
    configure = ["cmake", "-S", str(ROOT / "src" / "opgrow" / "engine" / "c"), "-B", str(folder)]
    for command in (configure, ["cmake", "--build", str(folder), "--parallel"]):
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    [library] = folder.glob("libopgrow_engine.*")
    assert say("fits", "1", OPGROW_ENGINE=str(library)) == expected


def test_any_number_of_ranks_grows_the_same_networks() -> None:
    pytest.importorskip("torch.distributed")
    digests = say("ranks", "1", "2", "4", OMP_NUM_THREADS="1")
    [one] = digests["1"]
    assert len(one) == 8
    assert digests["2"] == [one] * 2
    assert digests["4"] == [one] * 4
