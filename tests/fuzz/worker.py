"""Reads mutated model files in a process of its own, and says what came of each.

    python tests/fuzz/worker.py FOLDER --start 0 --count 500

FOLDER holds the base files. A line that names it is printed before each file, so that whoever started this
process knows which one ended it, and at the end a JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import json
import resource
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer
from mutations import mutate
from pandas import DataFrame

import opgrow
from opgrow.cli import app
from opgrow.estimators.files import read
from opgrow.estimators.listeners.progress import growth_table

#: A file that takes longer hangs.
SECONDS = 30
#: What reading one may cost, beside what the process had when it started.
EXTRA_ADDRESSES = 3 << 30
ROWS = 3
#: A row of the table to which the pipelines were fitted.
ROW = {
    "size": 1.0,
    "wide": 0.5,
    "colour": "red",
    "when": "2024-05-31 08:30",
    "many": "level 3",
    "gaps": None,
    "same": "one",
}
COMMAND = typer.main.get_command(app)


def peak() -> int:
    """Bytes that the process has had at most."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says there may be the memory of the process that started this one
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def limit_addresses() -> None:
    """Let an allocation that is absurd fail instead of filling the machine."""
    status = Path("/proc/self/statm")
    if status.exists():
        used = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + EXTRA_ADDRESSES, resource.RLIM_INFINITY))


def is_one_sentence(error: BaseException) -> bool:
    text = str(error)
    return 0 < len(text) < 1000 and "\n" not in text and "Traceback" not in text


def use(path: Path) -> str:
    """Load a file and use the model: "refused", "model", "silent" (predict refuses), or what went wrong."""
    try:
        loaded = read(path, pipelines=True)
    except ValueError as error:
        return "refused" if is_one_sentence(error) else f"not one sentence: {error!r:.300}"
    except Exception as error:
        return f"load raised {error!r:.300}"
    estimator = loaded.estimator
    x: Any = np.random.default_rng(0).normal(size=(ROWS, estimator.n_features_in_)).astype(np.float32)
    if loaded.encoder is not None:
        names = loaded.encoder.feature_names_in_
        x = {name: column.tolist() for name, column in zip(names, x.T, strict=True)}
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert len(estimator.predict(x)) == ROWS
            if hasattr(estimator, "classes_"):
                assert estimator.predict_proba(x).shape == (ROWS, len(estimator.classes_))
            repr(estimator.network_)
            growth_table(estimator.history_)
            if loaded.pipeline is not None:
                assert len(opgrow.load(path).predict(DataFrame([ROW] * ROWS))) == ROWS
    except (ValueError, TypeError) as error:
        if loaded.pipeline is not None:  # steps are scikit-learn's, and so are their errors
            return "silent"
        if isinstance(error, TypeError):
            return f"use raised {error!r:.300}"
        return "silent" if is_one_sentence(error) else f"not one sentence: {error!r:.300}"
    except Exception as error:
        return f"use raised {error!r:.300}"
    return "model"


def command(*arguments: str) -> str:
    """Run a command of opgrow in this process: its exit code, or what was wrong about it."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            COMMAND(list(arguments))
        code: Any = 0
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        return f"{arguments[0]} raised {error!r:.300}"
    lines = err.getvalue().splitlines()
    if code == 0:
        return "0"
    one = code == 2 and len(lines) == 1 and lines[0].startswith("error: ")
    return (
        "2" if one and "(unexpected;" not in lines[0] else f"{arguments[0]} ended with {code}: {lines!r:.300}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--commands-every", type=int, default=10)
    given = parser.parse_args()
    torch.set_num_threads(1)
    bases = sorted(given.folder.glob("*.safetensors"))
    table = given.folder / "table.csv"
    stems = [path.stem for path in bases]
    often = [stems.index(name) for name in ("Table", "Pipeline", "TablePipeline")]
    contents = [path.read_bytes() for path in bases]
    for path in bases:  # imports and compiled code come before the limits
        assert use(path) == "model", f"{path.name}: {use(path)}"
        assert command("inspect", str(path)) == "0"
    limit_addresses()
    counts: Counter[str] = Counter()
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.safetensors"
        for number in range(given.start, given.start + given.count):
            commanded = number % given.commands_every == 0
            base = number * 7919 % len(bases)
            if number % 5 == 0:  # what has more parts than others
                base = often[number // 5 % 3]
            name, content = mutate(contents[base], given.seed, number)
            path.write_bytes(content)
            print(f"{number} {name} {bases[base].name}", flush=True)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            found = [use(path)]
            if commanded:
                for arguments in (["inspect"], ["inspect", "--json"], ["predict"], ["evaluate"]):
                    rest = [str(table)] if arguments[0] != "inspect" else []
                    found.append(command(*arguments, str(path), *rest))
            faulthandler.cancel_dump_traceback_later()
            for outcome in found:
                if outcome in ("refused", "model", "silent", "0", "2"):
                    counts[outcome] += 1
                else:
                    problems.append(f"{number} {name} {bases[base].name}: {outcome}")
    print(json.dumps({"counts": counts, "problems": problems, "peak": peak()}))


if __name__ == "__main__":
    main()
