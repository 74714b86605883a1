"""Which instruction set runs, and what is said when it cannot."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from opgrow.engine.library import EngineError, Library


def test_an_environment_variable_chooses_the_instruction_set(engines, monkeypatch):
    for isa in engines:
        monkeypatch.setenv("OPGROW_ISA", isa)
        assert Library().isa == isa


def test_without_it_the_best_is_taken(engines, monkeypatch):
    monkeypatch.delenv("OPGROW_ISA", raising=False)
    assert Library().isa == next(iter(engines))


def test_an_unknown_instruction_set_is_one_sentence(engines, monkeypatch):
    monkeypatch.setenv("OPGROW_ISA", "v9")
    with pytest.raises(
        EngineError, match="OPGROW_ISA is 'v9', but there is no such instruction set; use one of"
    ):
        Library()


def test_a_file_that_is_no_library_is_one_sentence(engines, tmp_path):
    path = tmp_path / "libopgrow_engine.so"
    path.write_bytes(b"nothing")
    with pytest.raises(EngineError, match="cannot be loaded"):
        Library(path)


def test_functions_that_are_not_there_are_refused(engines):
    with pytest.raises(EngineError, match="has no function 'nothing'"):
        Library().function("nothing", ())


def test_the_library_needs_nothing_but_the_c_library(engines):
    if sys.platform != "linux" or os.environ.get("LD_PRELOAD"):
        pytest.skip("only Linux has ldd, and a preloaded library, such as a sanitizer, would be listed")
    needed = subprocess.run(["ldd", Library().path], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in needed.splitlines()]
    assert all(name.startswith(("linux-vdso", "libc.so", "/lib", "statically")) for name in names), names
