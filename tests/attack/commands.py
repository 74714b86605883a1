"""Commands of opgrow, run in this process."""

from __future__ import annotations

import contextlib
import io

import typer
from outcomes import Wrong

from opgrow.cli import app

__all__ = ["run"]

_COMMAND = typer.main.get_command(app)


def run(*arguments: str) -> int:
    """The exit code of a command: 0, or 2 with one sentence; anything else is wrong."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            _COMMAND(list(arguments))
        except SystemExit as end:
            code = end.code
    if code == 0:
        return 0
    lines = [line for line in err.getvalue().splitlines() if line.startswith("error: ")]
    tidy = code == 2 and len(lines) == 1 and err.getvalue().splitlines()[-1] == lines[0]
    if not tidy or "(unexpected;" in lines[0] or "Traceback" in err.getvalue():
        raise Wrong(f"{arguments[0]} ended with {code}: {err.getvalue()[-400:]!r}")
    return 2
