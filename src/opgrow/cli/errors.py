"""How the command line fails: one line on standard error and the exit code 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from opgrow.common.texts import printable

__all__ = ["DEBUG_VARIABLE", "OneLineErrors"]

DEBUG_VARIABLE = "OPGROW_DEBUG"
INTERRUPTED = 130
#: What a user can bring about and mend; everything else is a fault of ours.
EXPECTED = (ValueError, TypeError, ImportError, OSError, MemoryError)


class OneLineErrors(TyperGroup):
    """The group of all commands, which also words their errors."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command; an error ends in one line, an unexpected one in its traceback if that is wanted."""
        run: Callable[..., Any] = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **extra)
        try:
            code = run(*args, standalone_mode=False, **extra)
        except typer.Abort:
            code = INTERRUPTED
        except EXPECTED as error:
            _fail(_worded(error))
        except Exception as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command shows its help
                error.show()  # type: ignore[attr-defined]
                sys.exit(0)
            if hasattr(error, "format_message"):  # wrong usage, as the parser of the arguments sees it
                _fail(error.format_message())
            if os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0"):
                raise
            _fail(f"{type(error).__name__}: {error} (unexpected; {DEBUG_VARIABLE}=1 shows where)")
        if code == INTERRUPTED:
            _fail("interrupted", INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)


def _worded(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"not enough memory ({error})" if str(error) else "not enough memory"
    if isinstance(error, OSError) and error.strerror:  # without a file, it is about standard output
        return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    return str(error) or type(error).__name__


def _fail(message: str, code: int = 2) -> NoReturn:
    typer.echo(f"error: {printable(' '.join(message.split()))}", err=True)
    sys.exit(code)
