"""Run the tests marked `cpu` and the examples of docstrings with code for other CPUs: `make cpus`.

Each kind of CPU rounds in its own order, so that networks differ from machine to machine, and no test may
depend on that. numba compiles for the CPU that it is told; BLAS and torch choose among code they carry. The
names are those of LLVM: code for skylake-avx512, an Intel CPU, is not the code for an AMD CPU with AVX-512.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

#: What OpenBLAS and torch call each CPU, and an instruction set that this machine must have.
CPUS = {
    "generic": ("Prescott", "default", "sse2"),
    "haswell": ("Haswell", "avx2", "avx2"),
    "skylake-avx512": ("SkylakeX", "avx512", "avx512vl"),
}
WARM_UP = "from opgrow.kernels.warmup import KINDS, warm_up; warm_up(*KINDS)"
CACHE = Path("build") / "cpus"


def environment(cpu: str) -> dict[str, str]:
    """Variables that make libraries compute as on this CPU; its compiled code has a folder of its own."""
    blas, torch, _ = CPUS[cpu]
    compiled = {
        # Without features, numba would add those of the machine that it runs on.
        "NUMBA_CPU_NAME": cpu,
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str((CACHE / cpu).absolute()),
    }
    return {**os.environ, **compiled, "OPENBLAS_CORETYPE": blas, "ATEN_CPU_CAPABILITY": torch}


def can_run(cpu: str) -> bool:
    """Whether this machine has the instructions of a CPU."""
    try:
        return CPUS[cpu][2] in Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return False


def main(cpus: list[str], options: list[str]) -> int:
    """Run the tests for each CPU in turn; 1 if any has failed."""
    if unknown := [cpu for cpu in cpus if cpu not in CPUS]:
        print(f"Unknown CPU {unknown[0]!r}; known are: {', '.join(CPUS)}.", file=sys.stderr)
        return 2
    failed = False
    for cpu in cpus:
        if not can_run(cpu):
            print(f"{cpu}: this machine lacks its instructions ({CPUS[cpu][2]}), nothing was run.")
            continue
        print(f"{cpu}:", flush=True)
        started = time.perf_counter()
        variables = environment(cpu)
        subprocess.run([sys.executable, "-c", WARM_UP], env=variables, check=True)
        pytest = [sys.executable, "-m", "pytest", "-q"]
        tests = ([*pytest, "-m", "cpu", *options], [*pytest, "--doctest-modules", "src"])
        codes = [subprocess.run(command, env=variables, check=False).returncode for command in tests]
        passed = not any(codes)
        failed |= not passed
        seconds = time.perf_counter() - started
        print(f"{cpu}: {'passed' if passed else 'FAILED'} in {seconds:.0f} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].split() or list(CPUS), sys.argv[2:]))
