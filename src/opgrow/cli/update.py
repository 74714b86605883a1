"""``opgrow update``: a model file learns from the rows of another table, or of the files of a folder."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import common, options
from opgrow.cli.appended import appearing, new_files
from opgrow.cli.errors import EXPECTED
from opgrow.common.texts import printable

if TYPE_CHECKING:
    import numpy as np

__all__ = ["update"]


def update(
    model: options.Model,
    data: Annotated[
        Path,
        typer.Argument(
            help="Table with the columns that the model was fitted on, or a folder of such tables."
        ),
    ],
    target: options.Target = None,
    grow: Annotated[
        bool, typer.Option("--grow", help="Also grow a further network beside what there is.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow/--once",
            help="Of a folder: learn new files as they appear, until Ctrl-C, or those that are there now. "
            "Each file is learned once: the model file has their names.",
        ),
    ] = False,
    every: Annotated[float, typer.Option(min=0.0, help="Seconds between two looks of --follow.")] = 1.0,
    drift: Annotated[
        str | None,
        typer.Option(
            help="page_hinkley: watch the rows for drifts, here and in later updates; none: do not. "
            "Default: as the model file says.",
            metavar="DETECTOR",
        ),
    ] = None,
    header: options.Header = None,
    decimal: options.Decimal = None,
) -> None:
    """Learn from the rows of a table or of the new tables in a folder, and replace the model file.

    The file then holds the sums that further updates need. Killed at any moment, it is the old or the new
    model.
    """
    if drift not in (None, "none", "page_hinkley"):
        raise ValueError(f"--drift must be page_hinkley or none, got {drift!r}.")
    learning = _Learning(model, target, grow, drift, header, decimal)
    if not data.is_dir() and not follow:
        learning.learn(data)
        return
    if not follow:
        files = new_files(data, learning.known())
        for path in files:
            learning.learn(path, once=True)
        if not files:
            common.console().print(f"{data}: nothing new", soft_wrap=True)
        return
    _follow(learning, data, every)


def _follow(learning: _Learning, folder: Path, every: float) -> None:
    """Learn new files until an interruption; those that cannot be learned are told of and left out."""
    try:
        for path in appearing(folder, learning.known, partial(time.sleep, every)):
            try:
                learning.learn(path, once=True)
            except EXPECTED as error:
                line = f"{path.name} was not learned: {error}"
                typer.echo(f"note: {printable(' '.join(line.split()))}", err=True)
    except KeyboardInterrupt:
        common.console().print(f"{learning.model}: stopped after {learning.n_learned} files", soft_wrap=True)


@dataclass
class _Learning:
    """How a model file learns from tables; it is read anew for each, and replaced after each.

    ``n_learned`` tables have been; ``files`` are the names that the model file has, once it was read.
    """

    model: Path
    target: str | None
    grow: bool
    drift: str | None
    header: bool | None
    decimal: str | None
    n_learned: int = 0
    files: tuple[str, ...] | None = None

    def known(self) -> tuple[str, ...]:
        """The names of the files that the model has learned."""
        from opgrow.estimators.files import read

        if self.files is None:
            running = read(self.model).estimator.running_
            self.files = () if running is None else running.files
        return self.files

    def learn(self, data: Path, once: bool = False) -> None:
        """Learn from a table; ``once`` notes its name in the model file."""
        from sklearn.base import is_classifier

        from opgrow.estimators.files import read, save

        loaded = read(self.model)
        estimator: Any = loaded.estimator
        exact = estimator.running_ is not None
        n_events = _n_events(estimator)
        if self.drift is not None:
            estimator.set_params(drift=None if self.drift == "none" else self.drift)
        with common.notes() as lines:
            table = common.read_for(loaded, data, self.header, self.decimal)
            name, values = common.target_column(table, self.target or loaded.target, repr(str(data)))
            x = common.inputs(loaded, table, name)
            if is_classifier(estimator):
                values = _labels(values, estimator.classes_, name)
            elif values.dtype == object:
                raise ValueError(f"The target {name!r} holds text: regression needs numbers.")
            with warnings.catch_warnings():
                # The columns were selected by name, and a matrix has none that could be compared.
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
                (estimator.grow if self.grow else estimator.partial_fit)(x, values)
            if not exact:
                lines.append(
                    "the file had no sums: what the model says of its sample of rows takes their place"
                )
            if once:
                estimator.running_ = estimator.running_.with_file(data.name)
            save(estimator, self.model, target=loaded.target or name, sums=True)
            self.files, self.n_learned = estimator.running_.files, self.n_learned + 1
        common.console().print(
            f"{self.model}: learned from {table.n_rows} rows{f' of {data.name}' if once else ''}"
            f"{self._happened(estimator, n_events)}; {self.model.stat().st_size:,} bytes, of which "
            f"{estimator.running_.n_bytes:,} are sums and rows for further updates",
            soft_wrap=True,
        )

    def _happened(self, estimator: Any, n_events: int) -> str:
        """What became of the network besides its head, as a part of a sentence."""
        grown = self.grow and estimator.history_[-1].accepted
        kinds = [event.kind for event in estimator.stream_.events[n_events:]] if estimator.stream_ else []
        words = ["a drift was found"] * ("drift" in kinds) + ["blocks were dropped"] * ("dropped" in kinds)
        if grown or "grown" in kinds:
            words.append(f"grown to {estimator.network_.topology()}")
        return "".join(f", {word}" for word in words)


def _n_events(estimator: Any) -> int:
    return 0 if estimator.stream_ is None else len(estimator.stream_.events)


def _labels(values: np.ndarray, classes: np.ndarray, name: str) -> np.ndarray:
    """A column as labels of the kind that the classes of a model are; there may be new ones."""
    import numpy as np

    if classes.dtype.kind in "iu":
        return common.labels(values, name)
    if classes.dtype.kind in "fb":
        return classes[common.class_codes(values, classes, name)]
    return np.array([common.label_text(value) for value in values.tolist()], dtype=str)
