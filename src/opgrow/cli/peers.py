"""``opgrow bench peers``: presets of HeMLGOP beside other models, on all tables of a folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import options, studies, table_studies
from opgrow.cli.training_table import split_names
from opgrow.common.texts import printable

if TYPE_CHECKING:
    from opgrow.bench.peers.results import Line
    from opgrow.bench.peers.study import PeerStudy, TimeLeft

__all__ = ["duration", "peers"]

_Models = Annotated[
    str,
    typer.Option(
        help="Names, separated by commas: 'ours', 'peers', 'all', one of the peers, or a method with "
        "parameters, like 'HeMLGOP n_min=20'."
    ),
]
_Out = Annotated[Path, typer.Option(help="Folder for runs.jsonl, the summary and its pictures.")]
_Again = Annotated[
    str,
    typer.Option(help="Models to run again, separated by commas; 'failed' for runs that failed."),
]
_Aside = Annotated[
    str,
    typer.Option(
        help="Tables to summarise by themselves, too, separated by commas. Default: those on which no "
        "default of opgrow was chosen."
    ),
]


def peers(
    data: studies.Data = None,
    tables: table_studies.Tables = "",
    models: _Models = "all",
    splits: table_studies.Splits = 3,
    max_rows: table_studies.MaxRows = None,
    budget: studies.Budget = "10m",
    jobs: Annotated[int, typer.Option(help="Runs at a time, each on one core; -1 for all cores.")] = 1,
    out: _Out = Path("results-peers"),
    again: _Again = "",
    aside: _Aside = "",
    summary: table_studies.Summary = False,
    as_json: options.TablesJson = False,
) -> None:
    """Compare with what people use today: linear models, SVM, forest, boosting and tuned networks.

    The same command continues where it was interrupted.
    """
    from opgrow.bench.budget import parse_duration
    from opgrow.bench.peers import models as known
    from opgrow.bench.peers.splits import KEPT_ASIDE, table_names
    from opgrow.bench.peers.study import PeerStudy
    from opgrow.estimators.parameters import n_threads

    names, repeated = known.chosen(models), known.chosen(again) if again else []
    for name in (*names, *(name for name in repeated if name != "failed")):
        known.check(name)
    if not summary:
        there, sentences = known.installed(names)
        for sentence in sentences:
            typer.echo(sentence, err=True)
        if not there:
            raise ValueError("none of the models is installed")
        study = PeerStudy(
            tables=table_names(split_names(tables), data),
            models=there,
            file=out / "runs.jsonl",
            n_splits=splits,
            data_home=data,
            max_rows=max_rows,
            budget=parse_duration(budget),
            n_jobs=n_threads(jobs),
            again=repeated,
        )
        _run(study)
    _summarize(out, split_names(aside) if aside else list(KEPT_ASIDE), as_json)


def _run(study: PeerStudy) -> None:
    from opgrow.bench.peers.results import Results
    from opgrow.bench.peers.study import TimeLeft, run_study

    known = Results(study.file).lines()
    waiting = study.to_run(known)
    n_known = len(study.requests()) - len(waiting)
    if n_known:
        typer.echo(f"{n_known} of {len(study.requests())} runs are known.", err=True)
    left = TimeLeft(known.values(), [request.model for request in waiting], study.n_jobs)
    run_study(study, lambda line, number, total: _tell(line, number, total, left))


def _tell(line: Line, number: int, total: int, left: TimeLeft) -> None:
    """One line of progress."""
    from opgrow.bench.runs import DONE

    if line["status"] == DONE:
        what = f"{table_studies.score_text(line)} in {line['fit_seconds']:.1f} s"
    else:
        what = f"{line['status']}: {line['message']}"
    rest = f"; about {duration(left.after(line))} left" if number < total else ""
    table_studies.tell(line, number, total, f"{what}{rest}")


def duration(seconds: float) -> str:
    """A duration for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _summarize(out: Path, aside: list[str], as_json: bool) -> None:
    """Write the page and its pictures beside the results, and print it."""
    from opgrow.bench.peers.page import page
    from opgrow.common.atomic import write_together

    lines = table_studies.lines_of(out / "runs.jsonl")
    files = page(lines, aside)
    write_together({out / name: text.encode() for name, text in files.items()})
    typer.echo(json.dumps(_plain(lines, aside)) if as_json else printable(files["summary.md"]))


def _plain(lines: list[Line], aside: list[str]) -> dict[str, Any]:
    """The numbers of the summary, for --json."""
    from opgrow.bench.peers.summary import summarize

    found = {}
    for name, tables in (("all", None), ("aside", aside)):
        part = summarize(lines, tables)
        if part.tables:
            ranking = part.ranks()
            found[name] = {
                "tables": len(part.tables),
                "scores": {
                    model: dict(zip(part.tables, _none_for_nan(part.scores(model)), strict=True))
                    for model in part.models
                },
                "ranks": dict(ranking.ranks) if ranking else None,
                "critical_difference": ranking.cd if ranking else None,
                "duels": [asdict(one) for one in part.duels()],
                "worst": [asdict(one) for one in part.worst()],
            }
    return found


def _none_for_nan(values: Any) -> list[float | None]:
    return [None if value != value else float(value) for value in values]
