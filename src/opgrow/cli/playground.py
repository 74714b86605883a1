"""``opgrow playground``: watch a network grow from a table, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import options
from opgrow.cli.method_names import method_name
from opgrow.common.assignments import parse_parameters

if TYPE_CHECKING:
    from opgrow.cli.fit_request import FitRequest
    from opgrow.cli.playing.session import Session
    from opgrow.cli.table_fit import TrainingRows

__all__ = ["playground"]

#: Of all rows, those that the network does not learn from, and how many there are at most.
_SHARE, _MOST = 0.2, 2000


def playground(
    data: Annotated[Path, typer.Argument(help="Table to learn from: .csv, .csv.gz, .parquet or .npz.")],
    target: options.TargetColumn = None,
    method: Annotated[
        str, typer.Option(parser=method_name, metavar="METHOD", help="As in 'opgrow fit'.")
    ] = "HeMLGOP",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where 'Save' writes the model; its page goes beside it.")
    ] = Path("model.safetensors"),
    drop: options.Drop = None,
    text: options.Text = None,
    numeric: options.Numeric = None,
    param: Annotated[list[str] | None, options.parameter_option("n_min=20")] = None,
    seed: options.Seed = 0,
    jobs: options.Threads = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 0,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Whether to open the page in a browser.")
    ] = True,
) -> None:
    """Watch a network grow, in a browser: stop it, go on, save it, and then try what it has learned.

    The page is on this machine alone, and its address has a token that no other page knows. A fifth of the
    rows is kept aside, to show how good the network is. Ctrl+C ends the playground.
    """
    from opgrow.cli.fit_request import FitRequest
    from opgrow.cli.table_fit import read_training_rows

    request = FitRequest(
        data=data,
        target=target,
        method=method,
        task="auto",
        output=output,
        drop=drop or (),
        text=text or (),
        numeric=numeric or (),
        parameters=parse_parameters(param or []),
        report=output.with_suffix(".html"),
        seed=seed,
        jobs=jobs,
        device="cpu",
    )
    request.check()
    if data.is_dir():
        raise ValueError("A playground is for a table file, and a folder was given.")
    rows = read_training_rows(request)
    _play(session_of(request, rows), request, rows, port, browser)


def _play(session: Session, request: FitRequest, rows: TrainingRows, port: int, browser: bool) -> None:
    import webbrowser

    from opgrow.cli.playing.server import PlaygroundServer
    from opgrow.common.texts import printable

    about = (
        f"A network that predicts {rows.name!r} grows from {len(session.table.training[1]):,} rows; "
        f"{len(session.table.test[1]):,} others are kept aside."
    )
    try:
        server = PlaygroundServer(session, f"Playground: {request.data.name}", about, port)
    except OSError as error:
        raise ValueError(f"Cannot listen on 127.0.0.1 port {port}: {error.strerror}.") from error
    with server:
        typer.echo(printable(f"Playground of {request.data} on {server.address} (Ctrl+C ends it)"))
        session.start()
        if browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            session.end()


def session_of(request: FitRequest, rows: TrainingRows) -> Session:
    """A session on the rows of a table, of which some are kept aside."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split

    from opgrow.cli.playing.session import Session, Table

    classes = rows.task == "classification"
    n_test = min(_MOST, max(1, round(_SHARE * len(rows.y))))
    counts = np.unique(rows.y, return_counts=True)[1] if classes else np.array([2])
    even = classes and counts.min() > 1 and n_test >= len(counts)
    training, test = train_test_split(
        np.arange(len(rows.y)),
        test_size=n_test,
        random_state=request.seed,
        stratify=rows.y if even else None,
    )
    estimator = request.estimator(rows.task, rows.y if classes else None)
    estimator.set_params(table=clone(rows.encoder))
    return Session(estimator, Table(rows.name, _part(rows, training), _part(rows, test)), request.output)


def _part(rows: TrainingRows, places: Any) -> tuple[Any, Any]:
    from opgrow.rows.tables import Table

    return Table({name: values[places] for name, values in rows.x.columns.items()}), rows.y[places]
