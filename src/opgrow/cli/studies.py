"""``opgrow bench paper`` and ``ablations``: studies of methods on splits of datasets."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import options
from opgrow.cli.training_table import split_names
from opgrow.common.texts import printable

if TYPE_CHECKING:
    from opgrow.bench.runs import Run
    from opgrow.bench.study import Study

__all__ = ["Budget", "Data", "Device", "add_commands", "tell"]

Data = Annotated[
    str | None, typer.Option("--data", help="Folder with dataset files (default: $OPGROW_DATA).")
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
_Datasets = Annotated[str, typer.Option(help="Names, separated by commas.")]
_Models = Annotated[
    str,
    typer.Option(
        help="Names, separated by commas; 'paper' (the paper's methods and settings), 'ours' (the same "
        "methods, our defaults), 'methods' or 'ablations' for a group. A method may have parameters: "
        "'HeMLGOP n_min=20 epochs=[5,5]', or the paper's settings: 'HeMLGOP.paper'."
    ),
]
_Out = Annotated[Path, typer.Option(help="Folder for the results; a study that was interrupted goes on.")]
_Splits = Annotated[int | None, typer.Option(min=1, help="Splits of each dataset, not the protocol's.")]
_Select = Annotated[
    str,
    typer.Option(
        help="Where parameters are chosen: inner (training rows), none (defaults), test (optimistic: the "
        "figures then say more than they should)."
    ),
]
_Protocol = Annotated[
    str,
    typer.Option(
        help="paper: 3 splits, medians; seeds: 3 seeds on one split; given: 3 seeds on the data's own "
        "partition; splits: 20 on small datasets, means."
    ),
]
_Inner = Annotated[
    bool, typer.Option("--inner", help="Split the training rows again and leave the test rows alone.")
]
Budget = Annotated[str, typer.Option(help="Time for a run, like 90s or 10m; what takes longer is shown so.")]
_Jobs = Annotated[int, typer.Option(help="Processes; -1 for all cores.")]


def tell(lines: Iterable[Mapping[str, Any]], out: Path | None) -> None:
    """Print lines of a measurement as they come, and add them to a file."""
    from opgrow.common.atomic import append_line

    for line in lines:
        typer.echo(", ".join(f"{name} {value}" for name, value in line.items()))
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            append_line(out, json.dumps(line).encode())


def add_commands(app: typer.Typer) -> None:
    """Add the studies to ``opgrow bench``."""
    app.command(
        "paper", help="Run the study of the HeMLGOP paper and put its published figures beside ours."
    )(_study_command("paper,ours", "results-paper", "paper", "inner"))
    app.command(
        "ablations",
        help="Change one thing of HeMLGOP at a time: draws, weights, tuning, blocks, heterogeneity.",
    )(_study_command("ablations", "results-ablations", "splits", "none"))


def _study_command(
    default_models: str, default_out: str, default_protocol: str, default_select: str
) -> Callable[..., None]:
    """A command that runs a study: they differ in what they do when nothing else is asked for."""

    def command(
        datasets: _Datasets = "pima,cmc,yeast",
        data: Data = None,
        models: _Models = default_models,
        out: _Out = Path(default_out),
        protocol: _Protocol = default_protocol,
        splits: _Splits = None,
        select: _Select = default_select,
        inner: _Inner = False,
        budget: Budget = "10m",
        device: Device = "auto",
        jobs: _Jobs = -1,
        as_json: options.TablesJson = False,
    ) -> None:
        from opgrow.bench.budget import parse_duration
        from opgrow.bench.models import model_names
        from opgrow.bench.study import Study
        from opgrow.estimators.parameters import n_threads

        study = Study(
            split_names(datasets),
            model_names(models),
            out,
            data_home=data,
            protocol=protocol,
            n_splits=splits,
            select=select,
            inner=inner,
            budget=parse_duration(budget),
            device=device,
            n_jobs=n_threads(jobs),
        )
        _run(study, as_json)

    return command


def _run(study: Study, as_json: bool) -> None:
    """Run a study, write its tables and its page, and print the tables."""
    from opgrow.bench.figures import curves_csv
    from opgrow.bench.models import OF_PAPER, split_name
    from opgrow.bench.page import page
    from opgrow.bench.replication.paper_tables import paper_tables, rows_of
    from opgrow.bench.study import run_study
    from opgrow.bench.tables import REFERENCE, as_csv, as_markdown, summarize, tables_of
    from opgrow.common.atomic import write_together

    study.check()
    results = run_study(study, _RunLines(len(study.runs())))
    command = _command(study)
    source = {"command": command, "protocol": study.protocol, "select": study.select}
    lines = as_csv(results, source)
    shown_tables = tables_of(results, study.rules, study.inner)
    if any(split_name(model)[1] for model in study.models):
        first = paper_tables(rows_of(lines))
        names = {table.name for table in first}
        shown_tables = [*first, *(table for table in shown_tables if table.name not in names)]
    tables = as_markdown(shown_tables)
    if study.select == "test":
        tables = f"**Optimistic: parameters were chosen on the test rows.**\n\n{tables}"
    shown = page(study, results, command)
    of_paper = f"{REFERENCE}{OF_PAPER}"
    curves = curves_csv(results, [of_paper if of_paper in study.models else REFERENCE])
    texts = {"results.csv": lines, "curves.csv": curves, "tables.md": tables, "index.html": shown}
    write_together({study.out / name: text.encode() for name, text in texts.items()})
    if as_json:
        summary = summarize(results, study.rules.summary)
        typer.echo(json.dumps({"results": summary, "select": study.select, "inner": study.inner}))
    else:
        typer.echo(printable(tables))


def _command(study: Study) -> str:
    """The command as anybody can give it, with DIR for the folder of the data."""
    words = ["DIR" if word == study.data_home else word for word in sys.argv[1:]]
    return f"opgrow {shlex.join(words)}".replace(f"--data={study.data_home}", "--data=DIR")


class _RunLines:
    """Prints a line for each run as soon as its result is there."""

    def __init__(self, n_runs: int) -> None:
        self.n_runs, self.n_finished = n_runs, 0

    def __call__(self, run: Run, result: dict[str, Any], from_before: bool) -> None:
        from opgrow.bench.runs import DONE

        self.n_finished += 1
        if result["status"] == DONE:
            what = f"{100 * result['accuracy']:.1f} % in {result['seconds']:.2f} s"
        else:
            what = f"{result['status']}: {result['message']}"
        line = f"[{self.n_finished}/{self.n_runs}] {run.name}: {what}{' (known)' if from_before else ''}"
        typer.echo(printable(line), err=True)
