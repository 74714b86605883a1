"""``opgrow bench``: measurements of speed and memory on this machine, and studies of models on datasets."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from opgrow.cli import flash, operators, options, peers, prequential, replication, signals, studies

if TYPE_CHECKING:
    from opgrow.bench.fit_memory import Measured
    from opgrow.bench.speed import Row

__all__ = ["app"]

app = typer.Typer(
    help="Measure speed and accuracy on this machine.", no_args_is_help=True, pretty_exceptions_enable=False
)


_Counts = Annotated[str, typer.Argument(help="Numbers of rows, separated by commas.", metavar="COUNTS")]
_Against = Annotated[
    str | None,
    typer.Option(metavar="COMMIT", help="Compare with another commit of this repository, on the CPU."),
]
_Isa = Annotated[
    str | None, typer.Option(help="With --against: instruction set of this commit. Default: the best.")
]
_Checkout = Annotated[
    Path | None,
    typer.Option(help="With --against: where the other commit is kept. Default: a temporary folder."),
]


@app.command()
def speed(
    data: studies.Data = None,
    repeats: Annotated[int, typer.Option(min=1, help="Repetitions; medians are reported.")] = 7,
    quick: Annotated[bool, typer.Option(help="Leave out the large search and the fits.")] = False,
    pop: Annotated[bool, typer.Option("--pop", help="Fit POP on pima, too, once: it takes minutes.")] = False,
    device: studies.Device = "cpu",
    against: _Against = None,
    isa: _Isa = None,
    folder: _Checkout = None,
    as_json: options.TablesJson = False,
) -> None:
    """Time the kernels, the search, a tuning step and whole fits beside their peers, interleaved."""
    from opgrow.common.extras import require_torch
    from opgrow.growth.devices import choose_device

    require_torch("opgrow bench speed, which compares with it,")
    from opgrow.bench.speed import measure

    if quick and pop:
        raise ValueError("--pop asks for a fit, and --quick leaves the fits out: give one of the two")
    if against is None and (isa, folder) != (None, None):
        raise ValueError("--isa and --folder are for --against COMMIT: give it, too")
    if against is not None:
        from opgrow.bench.against import measure_against
        from opgrow.estimators.parameters import n_threads

        if pop or device != "cpu":
            raise ValueError("--against compares fits of HeMLGOP on the CPU: leave out --pop and --device")
        _show(measure_against(against, data, repeats, quick, n_threads(None), isa, folder), as_json)
        return
    chosen = choose_device(device)
    if chosen == "cpu":
        _show(measure(data, repeats, quick, pop), as_json)
        return
    import torch

    from opgrow.bench.gpu_speed import measure_gpu

    if pop:
        raise ValueError("--pop is for the CPU: on a GPU, POP is always fitted, on scene15_gist512")
    name = torch.cuda.get_device_name(chosen)
    _show(measure_gpu(torch.device(chosen), data, repeats, quick), as_json, name)


@app.command()
def rows(
    counts: _Counts = "100000,1000000",
    inputs: Annotated[int, typer.Option(min=4, help="Inputs of each row.")] = 128,
    device: studies.Device = "auto",
    memory: Annotated[
        float | None,
        typer.Option(min=0.1, help="GiB of the GPU's memory to make do with, so that rows must stream."),
    ] = None,
    as_json: options.TablesJson = False,
) -> None:
    """Grow a small network from generated data of several sizes: time a row, and memory."""
    from opgrow.common.extras import require_torch
    from opgrow.growth.devices import choose_device

    torch = require_torch("opgrow bench rows")
    from opgrow.bench.row_counts import measure_rows

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
    counts: _Counts = "100000,1000000",
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
    jobs: options.Threads = None,
    as_json: options.TablesJson = False,
) -> None:
    """Grow networks from generated Parquet folders, beside growth in memory: rate and resident memory."""
    import tempfile

    from opgrow.bench.chunked_growth import StreamRow, StreamRun, measure_stream
    from opgrow.bench.chunked_growth import figure as drawn
    from opgrow.common.atomic import check_writable, write_atomically

    sizes = _sizes(counts)
    if figure is not None:
        check_writable(figure)
    run = StreamRun(neurons, operators, memory, jobs)
    run.model(False, memory).plan(sizes[0], inputs, 3)  # refuses what cannot be, before anything is written
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
        str, typer.Option(help="Names of methods, separated by commas; all of them by default.")
    ] = "",
    seconds: Annotated[float, typer.Option(min=1, help="Time after which the growth of a fit ends.")] = 60,
    as_json: options.TablesJson = False,
) -> None:
    """Measure the memory of whole fits on the CPU beside what 'opgrow fit --dry-run' says before."""
    import tempfile

    from opgrow.bench.fit_memory import Measured, measure_memory, parse_sizes
    from opgrow.cli.method_names import check_methods

    names, parsed = check_methods(methods), parse_sizes(sizes)
    with tempfile.TemporaryDirectory() as folder:
        if not as_json:
            typer.echo(Measured.HEAD)
        _show(measure_memory(parsed, names, seconds, Path(folder)), as_json)


@app.command()
def deploy(
    data: studies.Data = None,
    dataset: Annotated[
        str | None, typer.Option(help="A data set of classes. Default: pima with --data, else breast_cancer.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Repetitions; medians are reported.")] = 7,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and of the models.")] = 0,
    optimize: Annotated[
        Literal["O1", "O2", "O3"], typer.Option(help="How far C that is timed is optimised.")
    ] = "O2",
    as_json: options.TablesJson = False,
) -> None:
    """Time one prediction as C, in ONNX Runtime and in Python, beside other models as C, interleaved."""
    import tempfile

    from opgrow.bench.deployment import measure_deployment

    def tell(line: str) -> None:
        typer.echo(line, err=True)

    name = dataset or ("breast_cancer" if data is None else "pima")
    with tempfile.TemporaryDirectory() as folder:
        deployment = measure_deployment(name, data, repeats, seed, Path(folder), tell, optimize)
    for line in deployment.skipped:
        typer.echo(f"left out: {line}", err=True)
    typer.echo(json.dumps(deployment.plain()) if as_json else deployment.markdown())


def _show(measured: Iterable[Row | Measured], as_json: bool, machine: str | None = None) -> None:
    """Print each measurement as it comes, or all of them as JSON, with where they are from."""
    from opgrow.bench import provenance

    measurements = []
    for row in measured:
        measurements.append(row.plain())
        if not as_json:
            typer.echo(row.text())
    if as_json:
        origin = {
            "commit": provenance.commit(),
            "machine": machine or provenance.machine(),
            "command": f"opgrow {shlex.join(sys.argv[1:])}",
        }
        typer.echo(json.dumps(origin | {"measurements": measurements}))


studies.add_commands(app)
app.command()(peers.peers)
app.command()(replication.readings)
app.command()(operators.operators)
app.command()(prequential.prequential)
app.command()(signals.signals)
app.command()(flash.flash)
