"""`make cpus` computes as the CPU that it names, and knows which it can."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "cpus.py"
TARGET = "from numba.core.registry import cpu_target as t; print(t.target_context.codegen().magic_tuple())"


@pytest.fixture(scope="module")
def cpus() -> ModuleType:
    if not SCRIPT.exists():
        pytest.skip("the script is no part of a source distribution")
    spec = importlib.util.spec_from_file_location("cpus", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_numba_compiles_for_the_named_cpu_and_without_instructions_of_this_one(cpus: ModuleType) -> None:
    run = [sys.executable, "-c", TARGET]
    said = subprocess.run(run, env=cpus.environment("haswell"), capture_output=True, text=True, check=True)
    _, name, features = ast.literal_eval(said.stdout)
    assert (name, features) == ("haswell", "")


def test_each_cpu_has_a_cache_of_its_own(cpus: ModuleType) -> None:
    assert len({cpus.environment(cpu)["NUMBA_CACHE_DIR"] for cpu in cpus.CPUS}) == len(cpus.CPUS) == 3


def test_what_cannot_be_run_is_said(
    cpus: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cpus.main(["z80"], []) == 2
    assert "Unknown CPU 'z80'; known are: generic, haswell, skylake-avx512." in capsys.readouterr().err
    monkeypatch.setattr(cpus, "can_run", lambda cpu: False)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("nothing is to be run"))
    assert cpus.main(["haswell"], []) == 0
    assert "haswell: this machine lacks its instructions (avx2)" in capsys.readouterr().out
