"""The experiments: `opgrow bench speed`, `rows`, `stream`, `memory`, `deploy`, `paper`, `peers` ..."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.common.texts import printable

if TYPE_CHECKING:
    from .memory import Measured
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
    against: Annotated[
        str | None,
        typer.Option(metavar="COMMIT", help="Compare with another commit of this repository, on the CPU."),
    ] = None,
    isa: Annotated[
        str | None, typer.Option(help="With --against: instruction set of this commit. Default: the best.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="With --against: where the other commit is kept. Default: a temporary folder."),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Time the kernels, the search, a tuning step and whole fits beside their peers, interleaved."""
    from ..common.extras import require_torch
    from ..growth.devices import choose_device

    require_torch("opgrow bench speed, which compares with it,")
    from .speed import measure

    if quick and pop:
        raise ValueError("--pop asks for a fit, and --quick leaves the fits out: give one of the two")
    if against is None and (isa, folder) != (None, None):
        raise ValueError("--isa and --folder are for --against COMMIT: give it, too")
    if against is not None:
        from ..estimators.parameters import n_threads
        from .against import measure_against

        if pop or device != "cpu":
            raise ValueError("--against compares fits of HeMLGOP on the CPU: leave out --pop and --device")
        _show(measure_against(against, data, repeats, quick, n_threads(None), isa, folder), as_json)
        return
    chosen = choose_device(device)
    if chosen == "cpu":
        _show(measure(data, repeats, quick, pop), as_json)
        return
    import torch

    from .gpu_speed import measure_gpu

    if pop:
        raise ValueError("--pop is for the CPU: on a GPU, POP is always fitted, on scene15_gist512")
    _show(measure_gpu(torch.device(chosen), data, repeats, quick), as_json)


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
    from ..common.extras import require_torch
    from ..growth.devices import choose_device

    torch = require_torch("opgrow bench rows")
    from .rows import measure_rows

    _show(measure_rows(torch.device(choose_device(device)), _sizes(counts), inputs, memory), as_json)


def _sizes(counts: str) -> list[int]:
    sizes = []
    for count in counts.split(","):
        if not count.strip().isdecimal() or int(count) < 100:
            raise ValueError(f"COUNTS are numbers of at least 100, separated by commas, got {counts!r}")
        sizes.append(int(count))
    return sizes


@app.command()
def stream(
    counts: Annotated[
        str, typer.Argument(help="Numbers of rows, separated by commas.", metavar="COUNTS")
    ] = "100000,1000000",
    inputs: Annotated[int, typer.Option(min=4, help="Inputs of each row.")] = 64,
    neurons: Annotated[int, typer.Option(min=1, help="Neurons of each of the three blocks.")] = 10,
    operators: Annotated[
        str, typer.Option(help="few (eight operator sets), default, paper or pygop.")
    ] = "default",
    memory: Annotated[str, typer.Option(help="The memory_limit of the fits, such as 500MB.")] = "1GB",
    folder: Annotated[
        Path | None, typer.Option(help="Where to write the Parquet folders. Default: a temporary folder.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the generated data there.")] = False,
    figure: Annotated[
        Path | None, typer.Option(help="SVG file to write: time a row against the number of rows.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Threads. Default: all cores, or as many as torch uses.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Grow networks from generated Parquet folders, beside growth in memory: rate and resident memory."""
    import tempfile

    from ..common.atomic import check_writable, write_atomically
    from .streaming import StreamRow, StreamRun, measure_stream
    from .streaming import figure as drawn

    sizes = _sizes(counts)
    if figure is not None:
        check_writable(figure)
    run = StreamRun(neurons, operators, memory, jobs)
    run.model(False, memory)._settings(True)  # refuses what cannot be, before anything is written
    rows: list[StreamRow] = []

    def remembered(measured: Iterable[StreamRow]) -> Iterable[Row]:
        for row in measured:
            rows.append(row)
            yield row

    with tempfile.TemporaryDirectory(prefix="opgrow-") as temporary:
        place = Path(temporary) if folder is None else folder
        tell = lambda line: typer.echo(line, err=True)  # noqa: E731
        _show(remembered(measure_stream(place, sizes, inputs, run, keep, tell)), as_json)
    if figure is not None:
        write_atomically(figure, drawn(rows).encode())


@app.command()
def memory(
    sizes: Annotated[
        str, typer.Argument(help="ROWSxINPUTSxCLASSES, separated by commas.", metavar="SIZES")
    ] = "1000x10x2,20000x50x100,20000x512x10,200000x100x10",
    methods: Annotated[
        str, typer.Option(help="Names of methods, separated by commas.")
    ] = "HeMLGOP,HoMLGOP,HeMLRN,HoMLRN,POP,POPFast,POPMemO,POPMemH,PMLP,PLN,BLS",
    seconds: Annotated[float, typer.Option(min=1, help="Time after which the growth of a fit ends.")] = 60,
    as_json: _Json = False,
) -> None:
    """Measure the memory of whole fits on the CPU beside what 'opgrow fit --dry-run' says before."""
    import tempfile

    from ..cli.fit import Method
    from .memory import Measured, measure_memory, parse_sizes

    names = [name.strip() for name in methods.split(",")]
    unknown = next((name for name in names if name not in set(Method)), None)
    if unknown is not None:
        raise ValueError(f"unknown method {unknown!r}; known are: {', '.join(Method)}")
    given = parse_sizes(sizes)
    with tempfile.TemporaryDirectory() as folder:
        if not as_json:
            typer.echo(Measured.HEAD)
        _show(measure_memory(given, names, seconds, Path(folder)), as_json)


@app.command()
def deploy(
    data: _Data = None,
    dataset: Annotated[
        str | None, typer.Option(help="A data set of classes. Default: pima with --data, else breast_cancer.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Repetitions; medians are reported.")] = 7,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and of the models.")] = 0,
    as_json: _Json = False,
) -> None:
    """Time one prediction as C, in ONNX Runtime and in Python, beside other models as C, interleaved."""
    import tempfile

    from .deployment import measure_deployment

    def tell(line: str) -> None:
        typer.echo(line, err=True)

    name = dataset or ("breast_cancer" if data is None else "pima")
    with tempfile.TemporaryDirectory() as folder:
        found = measure_deployment(name, data, repeats, seed, Path(folder), tell)
    for line in found.skipped:
        typer.echo(f"left out: {line}", err=True)
    typer.echo(json.dumps(found.plain()) if as_json else found.markdown())


def _show(measured: Iterable[Row | Measured], as_json: bool) -> None:
    """Print each measurement as it comes, or all of them as JSON."""
    found = []
    for row in measured:
        found.append(row.plain())
        if not as_json:
            typer.echo(row.text())
    if as_json:
        typer.echo(json.dumps({"measurements": found}))


_Datasets = Annotated[str, typer.Option(help="Names, separated by commas.")]
_Models = Annotated[
    str,
    typer.Option(
        help="Names, separated by commas; 'all', 'methods', 'peers' or 'ablations' for a group. A method may "
        "have parameters: 'HeMLGOP n_min=20 epochs=[5,5]'."
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
    str, typer.Option(help="paper: 3 splits, medians; splits: 20 on small datasets, means.")
]
_Inner = Annotated[
    bool, typer.Option("--inner", help="Split the training rows again and leave the test rows alone.")
]
_Budget = Annotated[str, typer.Option(help="Time for a run, like 90s or 10m; what takes longer is shown so.")]
_Jobs = Annotated[int, typer.Option(help="Processes; -1 for all cores.")]


def _study_command(
    default_models: str, default_out: str, default_protocol: str, default_select: str
) -> Callable[..., None]:
    """A command that runs a study: they differ in what they do when nothing else is asked for."""

    def command(
        datasets: _Datasets = "pima,cmc,yeast",
        data: _Data = None,
        models: _Models = default_models,
        out: _Out = Path(default_out),
        protocol: _Protocol = default_protocol,
        splits: _Splits = None,
        select: _Select = default_select,
        inner: _Inner = False,
        budget: _Budget = "10m",
        device: _Device = "auto",
        jobs: _Jobs = -1,
        as_json: _Json = False,
    ) -> None:
        _run_study(locals())

    return command


app.command("paper", help="Run the study of the HeMLGOP paper and put its published figures beside ours.")(
    _study_command("methods", "results", "paper", "inner")
)
app.command(
    "peers",
    help="Compare with what people use today: linear models, SVM, forest, boosting, multilayer perceptrons.",
)(_study_command("HeMLGOP,HeMLRN,PMLP,peers", "results-peers", "splits", "none"))
app.command(
    "ablations", help="Change one thing of HeMLGOP at a time: draws, weights, tuning, blocks, heterogeneity."
)(_study_command("ablations", "results-ablations", "splits", "none"))


def _run_study(given: dict[str, Any]) -> None:
    """Run what a command asks for; ``given`` are its options by name."""
    from ..common.atomic import write_together
    from ..estimators.parameters import n_threads
    from .budget import parse_duration
    from .models import model_names
    from .page import page
    from .runs import DONE
    from .study import Study, run_study
    from .tables import as_csv, as_markdown, summarize, tables_of

    out, select = given["out"], given["select"]
    study = Study(
        datasets=[name.strip() for name in given["datasets"].split(",")],
        models=model_names(given["models"]),
        out=out,
        data_home=given["data"],
        protocol=given["protocol"],
        n_splits=given["splits"],
        select=select,
        inner=given["inner"],
        budget=parse_duration(given["budget"]),
        device=given["device"],
        n_jobs=n_threads(given["jobs"]),
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
        line = f"[{done}/{total}] {run.name}: {what}{' (known)' if known else ''}"
        typer.echo(printable(line), err=True)

    results = run_study(study, tell)
    tables = as_markdown(tables_of(results, study.rules, study.inner))
    if select == "test":
        tables = f"**Optimistic: parameters were chosen on the test rows.**\n\n{tables}"
    shown = page(study, results, f"opgrow {shlex.join(sys.argv[1:])}")
    texts = {"results.csv": as_csv(results), "tables.md": tables, "index.html": shown}
    write_together({out / name: text.encode() for name, text in texts.items()})
    if given["as_json"]:
        found = summarize(results, study.rules.summary)
        typer.echo(json.dumps({"results": found, "select": select, "inner": given["inner"]}))
    else:
        typer.echo(printable(tables))
