"""``opgrow bench flash``: accuracy against flash of networks and other models as C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opgrow.cli import studies

__all__ = ["flash"]


def flash(
    data: studies.Data = None,
    tables: Annotated[
        str, typer.Option(help="Data sets of classes, separated by commas.")
    ] = "breast_cancer,digits,wine",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and of the models.")] = 0,
    out: Annotated[Path | None, typer.Option(help="File to which each result is added as a line.")] = None,
) -> None:
    """Accuracy on test rows, and flash on a Cortex-M4, of networks and of other models as C.

    Of our networks in all variants, and of multilayer perceptrons, trees, a linear model and a support
    vector machine by emlearn, m2cgen and micromlgen. It needs arm-none-eabi-gcc.
    """
    import json

    from opgrow.bench.flash import study
    from opgrow.common.atomic import append_line

    skipped: list[str] = []
    for line in study(data, tables.split(","), seed, skipped):
        typer.echo(
            f"{line['table']}, {line['series']}, {line['model']}: {100 * line['accuracy']:.1f} %, "
            f"{line['flash']:,} bytes"
        )
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            append_line(out, json.dumps(line).encode())
    for reason in skipped:
        typer.echo(f"left out: {reason}", err=True)
