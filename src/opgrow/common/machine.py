"""Memory, as the system reports it: what this process uses, has used at most, and could still use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["available_bytes", "peak_bytes", "resident_bytes"]

_GROUPS = Path("/sys/fs/cgroup")


def resident_bytes() -> int | None:
    """What this process has in memory now, or None where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def peak_bytes() -> int | None:
    """The most that this process has had in memory."""
    try:  # what `resource` says on Linux includes what the parent had before this program was started
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, ValueError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def available_bytes() -> int | None:
    """What this process could still take: of the machine's memory, and of a container's that it is in."""
    limits = [size for size in (_of_machine(), _of_container()) if size is not None]
    return min(limits, default=None)


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _of_container() -> int | None:
    """The limit of the control group, where there is one, without what its processes have."""
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            most, now = (int((_GROUPS / name).read_text()) for name in (limit, used))
            statistics = (_GROUPS / Path(limit).parent / "memory.stat").read_text().splitlines()
            # Pages of files are given back when they are needed.
            files = next(int(line.split()[1]) for line in statistics if line.startswith("inactive_file "))
        except (OSError, ValueError, StopIteration):  # no limit reads "max"
            continue
        return max(0, most - now + files)
    return None
