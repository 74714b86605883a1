"""The experiments: `opgrow bench speed`, `rows`, `accuracy`, `paper` and `peers`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from .runs import Run
    from .speed import Row

__all__ = ["app"]

app = typer.Typer(
    help="Measure speed and accuracy on this machine.", no_args_is_help=True, pretty_exceptions_enable=False
)

_Data = Annotated[
    str | None, typer.Option("--data", help="Folder with dataset files (default: $OPGROW_DATA).")
]
_Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


@app.command()
def speed(
    data: _Data = None,
    repeats: Annotated[int, typer.Option(min=1, help="Repetitions; medians are reported.")] = 7,
    quick: Annotated[bool, typer.Option(help="Leave out the large search and the fits.")] = False,
    pop: Annotated[bool, typer.Option("--pop", help="Fit POP on pima, too, once: it takes minutes.")] = False,
    device: _Device = "cpu",
    as_json: _Json = False,
) -> None:
    """Time the kernels, the search, a tuning step and whole fits beside their peers, interleaved."""
    from ..devices import choose_device
    from .speed import measure

    if quick and pop:
        raise ValueError("--pop asks for a fit, and --quick leaves the fits out: give one of the two")
    chosen = choose_device(device)
    if chosen.type == "cpu":
        _show(measure(data, repeats, quick, pop), as_json)
        return
    from .gpu_speed import measure_gpu

    if pop:
        raise ValueError("--pop is for the CPU: on a GPU, POP is always fitted, on scene15_gist512")
    _show(measure_gpu(chosen, data, repeats, quick), as_json)


@app.command()
def rows(
    counts: Annotated[
        str, typer.Argument(help="Numbers of rows, separated by commas.", metavar="COUNTS")
    ] = "100000,1000000",
    inputs: Annotated[int, typer.Option(min=4, help="Inputs of each row.")] = 128,
    device: _Device = "auto",
    memory: Annotated[
        float | None,
        typer.Option(min=0.1, help="GiB of the GPU's memory to make do with, so that rows must stream."),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Grow a small network from generated data of several sizes: time a row, and memory."""
    from ..devices import choose_device
    from .rows import measure_rows

    sizes = []
    for count in counts.split(","):
        if not count.strip().isdecimal() or int(count) < 100:
            raise ValueError(f"COUNTS are numbers of at least 100, separated by commas, got {counts!r}")
        sizes.append(int(count))
    _show(measure_rows(choose_device(device), sizes, inputs, memory), as_json)


def _show(measured: Iterable[Row], as_json: bool) -> None:
    """Print each measurement as it comes, or all of them as JSON."""
    found = []
    for row in measured:
        found.append(row.plain())
        if not as_json:
            typer.echo(row.text())
    if as_json:
        typer.echo(json.dumps({"measurements": found}))


_Datasets = Annotated[str, typer.Option(help="Names, separated by commas.")]
_Models = Annotated[str, typer.Option(help="Names, separated by commas; 'all', 'methods' or 'peers'.")]
_Out = Annotated[Path, typer.Option(help="Folder for the results; a study that was interrupted goes on.")]
_Splits = Annotated[int | None, typer.Option(min=1, help="Splits of each dataset, not the protocol's.")]
_Select = Annotated[
    str,
    typer.Option(
        help="Where parameters are chosen: inner (training rows), none (defaults), test (optimistic: the "
        "figures then say more than they should)."
    ),
]
_Budget = Annotated[str, typer.Option(help="Time for a run, like 90s or 10m; what takes longer is shown so.")]
_Jobs = Annotated[int, typer.Option(help="Processes; -1 for all cores.")]


@app.command()
def paper(
    datasets: _Datasets = "pima,cmc,yeast",
    data: _Data = None,
    models: _Models = "methods",
    out: _Out = Path("results"),
    protocol: Annotated[
        str, typer.Option(help="paper: 3 splits, medians; splits: 20 on small datasets, means.")
    ] = "paper",
    splits: _Splits = None,
    select: _Select = "inner",
    budget: _Budget = "10m",
    jobs: _Jobs = -1,
    as_json: _Json = False,
) -> None:
    """Run the study of the HeMLGOP paper and put its published figures beside ours."""
    _run_study(datasets, data, models, out, protocol, splits, select, budget, jobs, as_json)


@app.command()
def peers(
    datasets: _Datasets = "pima,cmc,yeast",
    data: _Data = None,
    models: Annotated[
        str, typer.Option(help="Names, separated by commas; 'all', 'methods' or 'peers'.")
    ] = "HeMLGOP,HeMLRN,PMLP,peers",
    out: _Out = Path("results-peers"),
    splits: _Splits = None,
    select: _Select = "none",
    budget: _Budget = "10m",
    jobs: _Jobs = -1,
    as_json: _Json = False,
) -> None:
    """Compare with what people use today: linear models, SVM, forest, boosting, multilayer perceptrons."""
    _run_study(datasets, data, models, out, "splits", splits, select, budget, jobs, as_json)


def _run_study(
    datasets: str,
    data: str | None,
    models: str,
    out: Path,
    protocol: str,
    splits: int | None,
    select: str,
    budget: str,
    jobs: int,
    as_json: bool,
) -> None:
    from ..parameters import n_threads
    from ..persistence import write_atomically
    from .budget import parse_duration
    from .models import METHODS, PEERS
    from .page import page
    from .runs import DONE
    from .study import Study, run_study
    from .tables import as_csv, as_markdown, summarize

    groups = {"all": [*METHODS, *PEERS], "methods": [*METHODS], "peers": [*PEERS]}
    chosen = [m for name in models.split(",") for m in groups.get(name.strip(), [name.strip()])]
    study = Study(
        [name.strip() for name in datasets.split(",")],
        list(dict.fromkeys(chosen)),
        out,
        data,
        protocol,
        splits,
        select,
        parse_duration(budget),
        n_threads(jobs),
    )
    study.check()
    total, done = len(study.runs()), 0

    def tell(run: Run, result: dict[str, Any], known: bool) -> None:
        nonlocal done
        done += 1
        if result["status"] == DONE:
            what = f"{100 * result['accuracy']:.1f} % in {result['seconds']:.2f} s"
        else:
            what = f"{result['status']}: {result['message']}"
        typer.echo(f"[{done}/{total}] {run.name}: {what}{' (known)' if known else ''}", err=True)

    results = run_study(study, tell)
    rows = summarize(results, study.rules.summary)
    tables = as_markdown(rows)
    if select == "test":
        tables = f"**Optimistic: parameters were chosen on the test rows.**\n\n{tables}"
    write_atomically(out / "results.csv", as_csv(results).encode())
    write_atomically(out / "tables.md", tables.encode())
    command = f"opgrow {shlex.join(sys.argv[1:])}"
    write_atomically(out / "index.html", page(study, results, rows, command).encode())
    typer.echo(json.dumps({"results": rows, "select": select}) if as_json else tables)


@app.command()
def accuracy(
    datasets: Annotated[str, typer.Option(help="Names, separated by commas.")] = "pima,cmc,yeast",
    data: _Data = None,
    splits: Annotated[int, typer.Option(min=1, help="Stratified 60/40 splits.")] = 10,
    models: Annotated[
        str,
        typer.Option(
            help="Names, separated by commas; 'all', 'methods' or 'peers'. POP and its kin take long."
        ),
    ] = "all",
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A parameter of the methods; repeatable. Methods that do not have it run without.",
        ),
    ] = None,
    inner: Annotated[
        bool, typer.Option("--inner", help="Split the training rows again and leave the test rows alone.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Compare the methods with scikit-learn's models, LightGBM and XGBoost on the same splits."""
    from ..assignments import parse_parameters
    from .accuracy import METHODS, PEERS, compare, summary

    groups = {"all": [*METHODS, *PEERS], "methods": [*METHODS], "peers": [*PEERS]}
    chosen = groups.get(models) or [m.strip() for m in models.split(",")]
    unknown = [m for m in chosen if m not in groups["all"]]
    if unknown:
        raise ValueError(f"unknown model {unknown[0]!r}; known are: {', '.join(groups['all'])}")
    results = []
    names = [d.strip() for d in datasets.split(",")]
    for result in compare(names, data, splits, chosen, parse_parameters(param or []), inner=inner):
        results.append(result)
        if not as_json:
            typer.echo(
                f"{result.dataset} split {result.split} {result.model}: {result.accuracy:.3f}", err=True
            )
    rows = summary(results)
    if as_json:
        typer.echo(json.dumps({"results": rows}))
    else:
        typer.echo(markdown(rows))


def markdown(rows: list[dict[str, Any]]) -> str:
    """The summary as a Markdown table, one block of lines for each dataset."""
    names = ("data", "model", "accuracy (mean ± sd)", "parameters", "FLOPs", "seconds")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for row in rows:
        accuracy = f"{100 * row['accuracy']:.1f} ± {100 * row['deviation']:.1f}"
        costs = [f"{row[key]:,}" if row[key] is not None else "" for key in ("parameters", "flops")]
        cells = (row["dataset"], row["model"], accuracy, *costs, f"{row['seconds']:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
