"""The folder of ``opgrow fit --checkpoint``, in which a fit that is interrupted can be resumed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

__all__ = ["chosen_folder", "saved_on_signals"]


def chosen_folder(checkpoint: Path | None, resume: bool, output: Path) -> Path | None:
    """Where the growth is saved; a fit that is there must be meant, or be this one before a restart."""
    from opgrow.distributed.launch import is_first, restarted
    from opgrow.growth.checkpoints import holds_a_fit

    if checkpoint is None and resume:
        checkpoint = output.with_name(f"{output.name}.checkpoint")
    meant = resume or restarted() or not is_first()  # the first rank looks
    if checkpoint is not None and not meant and holds_a_fit(checkpoint):
        raise ValueError(
            f"{str(checkpoint)!r} holds a fit that was begun: add --resume to go on with it, or choose "
            "another folder."
        )
    return checkpoint


@contextmanager
def saved_on_signals(folder: Path | None) -> Iterator[None]:
    """Say where the growth is saved when a signal ends the fit."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        from opgrow.distributed.launch import is_first

        if folder is not None and is_first():
            typer.echo(f"saved in {folder}: the same command with --resume goes on", err=True)
        raise
