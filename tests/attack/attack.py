"""Damages files, forges them and asks for the extreme, and reports whatever was silently wrong or crashed.

    python tests/attack/attack.py [TARGET ...] --minutes 30 --seed 0
    python tests/attack/attack.py models --seed 0 --start 123 --count 1

A seed and a number make a case, so that a failure can be had again by the second line. Every target works in
a process of its own, which names a case before it tries it: a crash ends that process, is reported, and the
next one goes on behind it.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from outcomes import Wrong

TARGETS = ("models", "checkpoints", "tables", "exports")
#: A case that takes longer hangs; the first one of a process may have to compile.
SECONDS = 300
#: Crashes of one target after which it is left alone.
MAX_CRASHES = 20


def work(target: str, given: argparse.Namespace) -> None:
    """Try the cases of one target in this process; the last line is a JSON object."""
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        attack = importlib.import_module(target).prepare(Path(folder))
        ends = time.monotonic() + 60 * given.minutes
        number = given.start
        while number < given.start + given.count if given.count else time.monotonic() < ends:
            print(f"case {number}", flush=True)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                counts[attack(Random(f"{given.seed} {target} {number}"))] += 1
            except Wrong as wrong:
                failures.append(f"case {number}: {wrong}"[:500])
            except Exception as error:
                failures.append(f"case {number}: crashed with {error!r}"[:500])
            faulthandler.cancel_dump_traceback_later()
            number += 1
    print(json.dumps({"counts": counts, "failures": failures, "next": number}))


def attacked(target: str, given: argparse.Namespace) -> tuple[Counter[str], list[str]]:
    """Try the cases of one target in other processes, as many as it takes."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    start, ends = given.start, time.monotonic() + 60 * given.minutes
    for _ in range(MAX_CRASHES):
        left = given.start + given.count - start if given.count else 0
        minutes = (ends - time.monotonic()) / 60
        if left < 1 and (given.count or minutes <= 0):
            break
        order = [sys.executable, __file__, target, "--work", f"--seed={given.seed}", f"--start={start}"]
        done = subprocess.run(
            [*order, f"--count={left}", f"--minutes={minutes}"], capture_output=True, text=True, check=False
        )
        last = done.stdout.splitlines()[-1] if done.stdout else "nothing"
        if done.returncode == 0:
            found = json.loads(last)
            counts.update(found["counts"])
            failures += found["failures"]
            break
        failures.append(f"{last}: the process ended with {done.returncode}: {done.stderr[-1500:]}")
        if not last.startswith("case "):
            break  # it has not even begun
        start = int(last.split()[1]) + 1
    return counts, failures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []])
    parser.add_argument("--minutes", type=float, default=30.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=0, help="cases of each target, instead of minutes")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    targets: list[Any] = given.targets or list(TARGETS)
    if given.work:
        work(targets[0], given)
        return
    given.minutes /= len(targets)
    print(f"seed {given.seed}", flush=True)
    failed = False
    for target in targets:
        started = time.monotonic()
        counts, failures = attacked(target, given)
        outcomes = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())) or "nothing"
        print(f"{target}: {outcomes}, {len(failures)} wrong ({time.monotonic() - started:.0f} s)", flush=True)
        for failure in failures:
            print(f"  seed {given.seed}, {failure}", flush=True)
        if failures:
            again = f"python tests/attack/attack.py {target} --seed {given.seed} --start NUMBER --count 1"
            print(f"  again: {again}", flush=True)
        failed = failed or bool(failures) or not counts
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
