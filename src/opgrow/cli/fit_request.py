"""What ``opgrow fit`` was asked for: its options, their checks, and the estimator that they describe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opgrow.cli import common
from opgrow.cli.checkpoint_folder import chosen_folder
from opgrow.cli.parameters import check_class_weight, check_parameters, labelled_weights

if TYPE_CHECKING:
    from opgrow.cli.outcome import Outcome

__all__ = ["FitRequest"]


@dataclass(frozen=True)
class FitRequest:
    """The options of ``opgrow fit`` by their names; ``parameters`` are those of ``--param``."""

    data: Path
    target: str | None
    method: str
    task: str
    output: Path
    drop: Sequence[str] = ()
    text: Sequence[str] = ()
    numeric: Sequence[str] = ()
    max_categories: int | None = None
    header: bool | None = None
    decimal: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    validation: Path | None = None
    paper: str | None = None
    report: Path | None = None
    checkpoint: Path | None = None
    resume: bool = False
    seed: int = 0
    jobs: int | None = None
    device: str = "auto"
    dry_run: bool = False
    quiet: bool = False
    as_json: bool = False

    @property
    def shows_progress(self) -> bool:
        """Whoever reads JSON in a pipe reads no lines beside it."""
        return not (self.quiet or (self.as_json and not sys.stderr.isatty()))

    @property
    def prints_decisions(self) -> bool:
        return not (self.quiet or self.as_json)

    @cached_property
    def folder(self) -> Path | None:
        """Where the growth is saved, or None."""
        return None if self.dry_run else chosen_folder(self.checkpoint, self.resume, self.output)

    # --- checks ---

    def check(self) -> None:
        """Refuse what cannot be written and options that contradict each other, before anything is read."""
        from opgrow.common.atomic import check_writable
        from opgrow.distributed.launch import launched
        from opgrow.growth.devices import check_device

        check_writable(self.output)
        self._refuse_to_replace_tables(self.output)
        common.require_suffix(self.output, ".safetensors", "A model")
        if self.report is not None:
            check_writable(self.report)
            if self.report.resolve() == self.output.resolve():
                raise ValueError(f"The report and the model cannot both be written to {str(self.report)!r}.")
            self._refuse_to_replace_tables(self.report, "--report")
            common.require_suffix(self.report, ".html", "A report", "--report")
        check_device(self.device)
        if launched() and self.dry_run:
            raise ValueError("--dry-run tells of one process: run it without torchrun.")
        if self.data.is_dir():
            self._check_folder_options()

    def _refuse_to_replace_tables(self, path: Path, option: str = "--output") -> None:
        for table in (self.data, self.validation):
            if table is not None:
                common.refuse_to_replace(table, path, "the table", option)

    def _check_folder_options(self) -> None:
        if self.validation is not None or self.report is not None:
            raise ValueError("A folder is read in chunks: --validation and --report need a table file.")
        if self.dry_run:
            raise ValueError(
                "A folder is read in chunks, by -p memory_limit=...: --dry-run needs a table file."
            )
        of_tables = (self.max_categories, self.header, self.decimal)
        if self.text or self.numeric or any(option is not None for option in of_tables):
            raise ValueError(
                "A folder has columns of numbers: --text, --numeric, --max-categories, --header and "
                "--decimal need a table file."
            )

    # --- what follows ---

    def check_parameters(self, task: str) -> None:
        """Refuse parameters that the method does not have."""
        classes = self._classes(task)
        check_parameters(self.parameters, classes[self.method], classes)

    def estimator(self, task: str, y: Any = None) -> Any:
        """The estimator to fit; ``y`` are the labels that ``class_weight`` may name."""
        parameters = dict(self.parameters)
        if y is not None and parameters.get("class_weight") is not None:
            if isinstance(parameters["class_weight"], dict):
                parameters["class_weight"] = labelled_weights(parameters["class_weight"], y)
            check_class_weight(parameters["class_weight"], y)
        settings = {
            "random_state": self.seed,
            "n_jobs": self.jobs,
            "device": self.device,
            "checkpoint_dir": self.folder,
        } | parameters
        cls = self._classes(task)[self.method]
        return cls(**settings) if self.paper is None else cls.paper(self.paper, **settings)

    def _classes(self, task: str) -> dict[str, Any]:
        from opgrow.estimators.by_method import estimators_of

        return estimators_of(task)

    def announce(self, outcome: Outcome) -> None:
        """Print what came of the fit."""
        if self.as_json:
            common.print_json(outcome.to_dict(self.output))
        elif not self.quiet:
            outcome.show(self.output, self.report)
