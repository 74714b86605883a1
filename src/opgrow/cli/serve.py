"""``opgrow serve``: answer predictions of a model file over HTTP."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from opgrow.cli import options

__all__ = ["serve"]

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def serve(
    model: options.Model,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. The default is this machine alone; 0.0.0.0 is all networks, without "
            "any password or encryption: put a proxy in front."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 8000,
    max_body: Annotated[
        str, typer.Option(help="Bytes of a request at most, such as 500k or 8M.", metavar="SIZE")
    ] = "8M",
    max_rows: Annotated[int, typer.Option(min=1, help="Rows of a request at most.")] = 100_000,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Predictions at the same time. Default: one for each core, at most 4."),
    ] = None,
    queue: Annotated[
        int, typer.Option(min=0, help="Requests that may wait for a worker; others are told to come back.")
    ] = 256,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds that a client may take for the body of a request.")
    ] = 30.0,
) -> None:
    """Answer predictions over HTTP until Ctrl+C.

    POST /predict takes rows as JSON or CSV and answers their predictions. The page at / shows the columns of
    the model and how to call it; /openapi.json is the same for programs.
    """
    from opgrow.common.extras import require
    from opgrow.common.texts import printable
    from opgrow.common.threads import default_threads

    require("uvicorn", "opgrow serve", "serve")
    from opgrow.cli.serving.limits import Limits
    from opgrow.cli.serving.model import served
    from opgrow.cli.serving.server import serve_model

    limits = Limits(
        max_body=_size(max_body),
        max_rows=max_rows,
        workers=workers or min(4, default_threads()),
        queue=queue,
        body_seconds=timeout,
        header_seconds=min(10.0, timeout),
        max_connections=_most_connections(),
    )
    loaded = served(model)

    def started(_: object, address: str) -> None:
        typer.echo(printable(f"Serving {model} on {address} (Ctrl+C ends it)"))

    serve_model(loaded, (host, port), limits, started)


def _most_connections() -> int:
    """As many connections as the system allows files, less some that the server needs itself."""
    try:
        import resource
    except ImportError:  # Windows
        return 1000
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1000 if soft == resource.RLIM_INFINITY else max(8, min(1000, soft - 64))


def _size(text: str) -> int:
    """Bytes from "4096", "500k" or "8M"."""
    match = re.fullmatch(r"(\d{1,12})([kmg]?)b?", text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise ValueError(f"--max-body is a size such as 500k or 8M, got {text!r}.")
    return int(match[1]) * _UNITS[match[2]]
