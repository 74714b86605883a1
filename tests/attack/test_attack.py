"""The short forms of ``make attack`` and ``make load``: nothing is silently wrong, and nothing crashes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("attack.py")
SERVING = Path(__file__).with_name("serving.py")


@pytest.mark.parametrize(
    ("target", "count", "outcomes"),
    [
        ("models", 120, ("refused", "forged and refused", "forged and works")),
        ("checkpoints", 30, ("refused", "resumed to the same network")),
        ("exports", 40, ("c agrees", "integers answer", "onnx agrees")),
        ("tables", 60, ("fit refused", "fit works", "predict works")),
    ],
)
def test_nothing_is_silently_wrong(target, count, outcomes):
    order = [sys.executable, str(SCRIPT), target, f"--count={count}"]
    done = subprocess.run(order, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 wrong" in done.stdout
    assert all(outcome in done.stdout for outcome in outcomes), done.stdout  # all sides were reached


@pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="memory, threads and files are read from /proc"
)
def test_a_server_under_load_loses_and_leaks_nothing():
    order = [sys.executable, str(SERVING), "--clients=200", "--seconds=2"]
    done = subprocess.run(order, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "0 wrong"
    for kind in (
        "malformed",
        "oversized",
        "slow_head",
        "slow_body",
        "never_reads",
        "vanishes",
        "says_nothing",
    ):
        assert f"'{kind}': " in done.stdout  # all kinds took place
    assert "'503': " in done.stdout
