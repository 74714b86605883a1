"""``opgrow bench signals``: features of windows beside single samples, on a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opgrow.cli import studies

__all__ = ["signals"]


def signals(
    data: studies.Data = None,
    out: Annotated[Path | None, typer.Option(help="File to which each result is added as a line.")] = None,
) -> None:
    """Predict blocks of time of a recording, eeg_eye_state, from the others, by samples and by windows.

    Beside accuracies of splits by time stand those of random splits, which leak. Then the size of the
    exported C, and its difference from the library.
    """
    from opgrow.bench.signals import study

    studies.tell(study(data), out)
