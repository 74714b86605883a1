"""The engine once for each instruction set that this processor knows; the slow v2 for small work only."""

from __future__ import annotations

import pytest
import torch

from opgrow.engine.library import EngineError, Library
from opgrow.engine.native import Native


def _usable() -> dict[str, Native]:
    try:
        isas = [name for name, supported in Library(isa=None).isas().items() if supported]
    except EngineError:
        return {}
    return {name: Native(Library(isa=name)) for name in isas}


ENGINES = _usable()


@pytest.fixture(scope="session")
def engines() -> dict[str, Native]:
    """Every instruction set, best first."""
    if not ENGINES:
        pytest.skip("the engine is not built")
    return ENGINES


@pytest.fixture(scope="session")
def engine(engines) -> Native:
    """The one that `OPGROW_ISA` names, or the best."""
    return Native()


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Torch's threads spin while they wait for each other, which takes minutes on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
