"""``opgrow bench prequential``: models that learn incrementally, on streams."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opgrow.cli import studies

__all__ = ["prequential"]


def prequential(
    data: studies.Data = None,
    out: Annotated[Path | None, typer.Option(help="File to which each result is added as a line.")] = None,
    rows: Annotated[int, typer.Option(min=1000, help="Rows of each generated stream.")] = 20_000,
    chunk: Annotated[int, typer.Option(min=100, help="Rows that are predicted and then learned.")] = 500,
) -> None:
    """Predict chunks of streams before they are learned from, and learn digits two classes at a time.

    Of our models and of scikit-learn's that have partial_fit: accuracy, CPU time and parameters.
    """
    from opgrow.bench.prequential import study

    studies.tell(study(data, rows, chunk), out)
