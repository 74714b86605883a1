"""What a process has in memory, and what it may have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opgrow.common import machine


def test_what_is_taken_shows_in_what_a_process_has() -> None:
    before, available = machine.resident_bytes(), machine.available_bytes()
    if before is None:
        pytest.skip("this system does not say")
    block = np.ones(1 << 24)  # 128 MiB
    after = machine.resident_bytes()
    assert after is not None
    assert after - before > block.nbytes // 2
    assert machine.peak_bytes() >= after - (1 << 20)  # type: ignore[operator]
    assert available is not None
    assert available > 0


def test_a_container_bounds_what_is_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tmp_path / "group"
    group.mkdir()
    (group / "memory.max").write_text("1000\n")
    (group / "memory.current").write_text("700\n")
    (group / "memory.stat").write_text("anon 600\ninactive_file 100\n")
    monkeypatch.setattr(machine, "_GROUPS", group)
    assert machine.available_bytes() == 400
    (group / "memory.max").write_text("max\n")
    assert (machine.available_bytes() or 1 << 40) > 1000
