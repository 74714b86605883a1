"""Model files that were damaged or forged give a clean error or a model that works, and cost little.

`make test` reads a few hundred of them, `make fuzz` ten thousand. A seed and a number make a mutation, so a
file that makes trouble can be made again. They are read in processes of their own: a crash does not end the
tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bases import make_bases
from mutations import MUTATIONS

WORKER = Path(__file__).with_name("worker.py")
COUNT = int(os.environ.get("OPGROW_FUZZ") or 12 * len(MUTATIONS))
SEED = int(os.environ.get("OPGROW_FUZZ_SEED") or 0)
#: Files that one process reads.
PART = 2500
GIBIBYTE = 1 << 30


@pytest.fixture(scope="module")
def bases(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bases")
    make_bases(folder)
    return folder


@pytest.mark.parametrize("start", range(0, COUNT, PART))
def test_mutated_files_give_an_error_or_a_model(bases, start):
    count = min(PART, COUNT - start)
    order = [
        sys.executable,
        str(WORKER),
        str(bases),
        f"--start={start}",
        f"--count={count}",
        f"--seed={SEED}",
    ]
    done = subprocess.run(order, capture_output=True, text=True, timeout=3600)
    last = done.stdout.splitlines()[-1] if done.stdout else "nothing"
    assert done.returncode == 0, (
        f"the process ended with {done.returncode} after {last}: {done.stderr[-2000:]}"
    )
    found = json.loads(last)
    print(f"{start} to {start + count}: {found['counts']}, at most {found['peak'] / 2**20:.0f} MiB")
    assert found["problems"] == []
    counts = found["counts"]
    assert counts["refused"] + counts["model"] + counts.get("silent", 0) == count
    assert min(counts["refused"], counts["model"], counts["0"], counts["2"]) > 0  # both sides were reached
    assert found["peak"] < GIBIBYTE
