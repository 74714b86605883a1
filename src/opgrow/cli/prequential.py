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
    chunk: Annotated[int, typer.Option(min=1, help="Rows that are predicted and then learned.")] = 500,
    model: Annotated[
        list[str] | None, typer.Option(help="A model to measure; may be repeated. Default: all.")
    ] = None,
    digits: Annotated[bool, typer.Option(help="Whether to learn the digits two classes at a time.")] = True,
    long: Annotated[
        int | None,
        typer.Option(
            min=1000,
            metavar="ROWS",
            help="Instead: learn one generated stream of so many rows, which are never in memory together, "
            "each model in a process of its own: CPU time a row, and resident memory. Models that have a "
            "line of this commit in --out are left out.",
        ),
    ] = None,
    inputs: Annotated[int, typer.Option(min=3, help="With --long: inputs of each row.")] = 20,
) -> None:
    """Predict chunks of streams before they are learned from, and learn digits two classes at a time.

    The first 500 rows of a stream are only learned from. Of our models, of scikit-learn's that have
    partial_fit, and of the adaptive trees and forests of river: accuracy, CPU time and size.
    """
    import json

    from opgrow.bench.long_stream import LONG_MODELS, measure_long
    from opgrow.bench.prequential import MODELS, study

    known = []
    if long is not None and out is not None and out.exists():
        known = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    if long is None:
        lines = study(data, rows, chunk, model or tuple(MODELS), digits)
    else:
        lines = measure_long(long, inputs, chunk, LONG_MODELS, known)
    studies.tell(lines, out)
