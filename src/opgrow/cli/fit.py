"""``opgrow fit``: from a table file to a model file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from opgrow.cli import options
from opgrow.cli.method_names import method_name
from opgrow.common.assignments import parse_parameters

__all__ = ["fit"]


#: What to predict.
Task = StrEnum("Task", ["auto", "classification", "regression"])
#: The two kinds of problems in the paper.
Scale = StrEnum("Scale", ["small", "large"])


def fit(
    data: Annotated[
        Path,
        typer.Argument(
            help="Table to learn from: .csv, .csv.gz, .parquet, .npz; or a folder of .parquet, .npz or .npy "
            "files, which is read in chunks and may be larger than memory."
        ),
    ],
    target: options.TargetColumn = None,
    method: Annotated[
        str,
        typer.Option(
            parser=method_name,
            metavar="METHOD",
            help="HeMLGOP: blocks with operators of their own, tuned; HoMLGOP: one operator set a layer; "
            "HeMLRN, HoMLRN: the same with random weights. POP, POPFast, POPMemO, POPMemH: whole layers, all "
            "operator sets trained, which takes long; PMLP: layers of perceptrons. PLN, BLS: random weights "
            "below a closed-form head. Capitals do not matter.",
        ),
    ] = "HeMLGOP",
    task: Annotated[
        Task,
        typer.Option(
            help="auto: text, at most 20 different whole numbers, and more of them that look like codes "
            "(from 0 or 1 without gaps, about equally frequent) are classes; what was chosen is printed."
        ),
    ] = Task.auto,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")] = Path(
        "model.safetensors"
    ),
    drop: options.Drop = None,
    text: options.Text = None,
    numeric: options.Numeric = None,
    max_categories: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Categories of a text column that have an input each; of columns with more, each category "
            "becomes the mean of the target in its rows. Default: 30.",
        ),
    ] = None,
    header: options.Header = None,
    decimal: options.Decimal = None,
    param: Annotated[list[str] | None, options.parameter_option("n_min=20 or widths=[40,40]")] = None,
    validation: Annotated[
        Path | None,
        typer.Option(help="Table whose rows decide what is kept, instead of a fifth of the training rows."),
    ] = None,
    paper: Annotated[
        Scale | None, typer.Option(help="Start from the paper's settings for small or large problems.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="HTML page to write on what was grown and how; with --validation, also on how good it is."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder to save the growth in, after every step and every minute "
            "(-p checkpoint_seconds=60), until the model is written."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the fit that the folder of --checkpoint holds, or begin it; default: the model "
            "file's name and '.checkpoint'.",
        ),
    ] = False,
    seed: options.Seed = 0,
    jobs: options.Threads = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda or cuda:N. auto: a GPU for a million values or more.")
    ] = "auto",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check data and parameters, print what would be done and its memory, and stop."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    as_json: options.ResultJson = False,
) -> None:
    """Grow a network from a table and save it.

    Text, dates and missing values become numbers; how they do is a part of the model file, so that
    'opgrow predict' takes tables like this one. What was found out about the table is printed, with the
    option that says otherwise. Under torchrun, the ranks share the rows and rank 0 writes.
    """
    from opgrow.cli.fit_request import FitRequest
    from opgrow.cli.folders import fit_folder
    from opgrow.cli.table_fit import fit_table

    request = FitRequest(
        data=data,
        target=target,
        method=method,
        task=task.value,
        output=output,
        drop=drop or (),
        text=text or (),
        numeric=numeric or (),
        max_categories=max_categories,
        header=header,
        decimal=decimal,
        parameters=parse_parameters(param or []),
        validation=validation,
        paper=None if paper is None else paper.value,
        report=report,
        checkpoint=checkpoint,
        resume=resume,
        seed=seed,
        jobs=jobs,
        device=device,
        dry_run=dry_run,
        quiet=quiet,
        as_json=as_json,
    )
    request.check()
    (fit_folder if data.is_dir() else fit_table)(request)
