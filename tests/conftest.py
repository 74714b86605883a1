"""What several test files share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# Triton reads these when it is first imported, and nothing imports it before this file. Without a GPU its
# interpreter runs the kernels, slowly but as they are written, so that they are tested everywhere.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
# Triton 3.9 warns unless it is told whether to fuse products with sums: yes, which is its default.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

# The same examples in every run; `make properties` draws new ones.
settings.register_profile("opgrow", derandomize=True, database=None, deadline=None)
settings.load_profile("opgrow")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Steps of a few rows: threads of torch would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder with the real data sets, which are not part of the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    home = Path(os.environ.get("OPGROW_DATA") or beside)
    if not home.is_dir():
        pytest.skip("needs a folder with data sets: name it in the environment variable OPGROW_DATA")
    return home
