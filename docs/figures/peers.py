"""Figures of docs/results/peers.md and of the README: every run is a line of results/peers/runs.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opgrow.bench.peers.models import DEFAULT, PERCEPTRONS
from opgrow.bench.peers.page import page
from opgrow.bench.peers.results import Line, Results
from opgrow.bench.peers.splits import KEPT_ASIDE
from opgrow.bench.peers.summary import Duel, Summary, summarize

from .marks import RESULTS, Figures, markdown_table

__all__ = ["figures"]

#: Tables of classes in which text columns are among the inputs.
_WITH_TEXT = (
    *("adult", "car", "churn_mlc", "credit_approval", "cylinder_bands", "heart_cleveland", "horse_colic"),
    *("kr_vs_kp", "splice", "titanic"),
)
#: Models whose means sentences repeat, by a short name.
_NAMED = {
    DEFAULT: "ours",
    "HeMLGOP preset=accurate": "accurate",
    "HeMLGOP preset=compact": "compact",
    "HeMLGOP preset=null": "one",
    "RBF SVM (inner CV)": "svm",
    "random forest": "forest",
    "MLP 200-200": "mlp",
}
_SHOWN = {
    DEFAULT: f"**{DEFAULT}**",
    "HeMLGOP preset=accurate": "HeMLGOP, `preset=accurate`",
    "HeMLGOP preset=compact": "HeMLGOP, `preset=compact`",
    "HeMLGOP preset=null": "HeMLGOP, one network (`preset=None`)",
}


def figures() -> Figures:
    """Tables, numbers and pictures of the comparison with peers."""
    lines = _lines("runs.jsonl")
    every, aside, later = summarize(lines), summarize(lines, KEPT_ASIDE), summarize(_lines("keel.jsonl"))
    tables = {
        "peers-aside": _overview(aside),
        "peers-all": _overview(every),
        "peers-later": _overview(later),
        "peers-presets": _presets(every),
        "peers-easiest": _easiest(every),
        "peers-worst": _worst(every),
    }
    values = {
        **_values("peers", every),
        **_values("peers-aside", aside),
        "peers-later-tables": str(len(later.tables)),
        **_against_folds(later),
        **_values_of_models(every),
        **_values_of_text(every),
        "peers-diamonds-ours": f"{100 - 100 * _of(every, DEFAULT, 'diamonds', 'nrmse'):.1f}",
        "peers-diamonds-perceptrons": f"{100 - 100 * _of(every, PERCEPTRONS, 'diamonds', 'nrmse'):.1f}",
        **_values_of_tabm(lines),
        **{f"peers-best-{table}": _best(every, table) for table in ("pima", "cmc", "yeast")},
        "peers-folds-time": f"{_ratio(aside, 'fit_cpu_seconds', 'RealMLP-TD 5 folds', DEFAULT):.0f}",
    }
    files = {f"docs/results/peers/{name}": text for name, text in page(lines, KEPT_ASIDE).items()}
    return Figures(tables, values, files)


def _lines(name: str) -> list[Line]:
    return list(Results(RESULTS / "peers" / name).lines().values())


def _overview(summary: Summary) -> str:
    """One row a model, the best rank first."""
    ranking = summary.ranks()
    assert ranking is not None
    head = ("", "accuracy (%)", "log loss", "RMSE / deviation", "mean rank", "parameters", "CPU seconds")
    rows = []
    for model, rank in ranking.ranks:
        seconds = summary.median(model, "fit_cpu_seconds")
        cells = (
            _cell(100 * summary.mean(model, "accuracy"), ".2f"),
            _cell(summary.mean(model, "log_loss"), ".3f"),
            _cell(summary.mean(model, "nrmse"), ".3f"),
            f"{rank:.2f}",
            _cell(summary.median(model, "parameters"), ",.0f"),
            _cell(seconds, ".2f" if seconds < 10 else ".1f"),
        )
        rows.append((_SHOWN.get(model, model), *cells))
    return markdown_table(head, rows)


def _cell(value: float, form: str) -> str:
    return "" if np.isnan(value) else format(value, form)


def _presets(summary: Summary) -> str:
    """What averages and students are worth."""
    shown = {
        "HeMLGOP preset=null": "one network (`preset=None`)",
        DEFAULT: 'five, averaged (`preset="balanced"`)',
        "HeMLGOP preset=accurate": 'fifteen, averaged (`preset="accurate"`)',
        "HeMLGOP preset=compact": 'a student of five (`preset="compact"`)',
    }
    rows = [
        (
            words,
            f"{100 * summary.mean(model, 'accuracy'):.1f}",
            f"{summary.mean(model, 'nrmse'):.3f}",
            f"{summary.median(model, 'parameters'):,.0f}",
        )
        for model, words in shown.items()
    ]
    return markdown_table(("", "accuracy (%)", "RMSE / deviation", "parameters"), rows)


def _easiest(summary: Summary, count: int = 5) -> str:
    """The tables of classes on which the default is most accurate, with what it costs."""
    other = "random forest"
    scores = dict(
        zip(summary.tables_of("classification"), summary.scores(DEFAULT, "classification"), strict=True)
    )
    rows = []
    for table in sorted(scores, key=lambda name: -scores[name])[:count]:
        seconds = [f"{_of(summary, model, table, 'fit_cpu_seconds'):.2f}" for model in (DEFAULT, other)]
        rows.append((table, f"{100 * scores[table]:.2f}", *seconds))
    return markdown_table(("", "accuracy (%)", f"{DEFAULT}, CPU seconds", f"{other}, CPU seconds"), rows)


def _worst(summary: Summary) -> str:
    rows = [
        (
            one.table,
            f"{100 * one.ours:.1f}",
            f"{100 * one.best:.1f}",
            one.peer,
            f"{100 * (one.ours - one.best):+.1f}",
        )
        for one in summary.worst()
    ]
    return markdown_table(("", DEFAULT, "best", "which", "difference"), rows)


def _values(prefix: str, summary: Summary) -> dict[str, str]:
    """What sentences say of a summary."""
    operators = _duel(summary, PERCEPTRONS)
    return {
        f"{prefix}-tables": str(len(summary.tables)),
        f"{prefix}-classes": str(len(summary.tables_of("classification"))),
        f"{prefix}-numbers": str(len(summary.tables_of("regression"))),
        f"{prefix}-operators-ahead": str(operators.ahead),
        f"{prefix}-operators-behind": str(operators.behind),
        f"{prefix}-operators-points": f"{100 * operators.difference:+.2f}",
        f"{prefix}-operators-p": f"{operators.p:.2g}",
        f"{prefix}-seconds": f"{summary.median(DEFAULT, 'fit_cpu_seconds'):.1f}",
        f"{prefix}-perceptrons-seconds": f"{summary.median(PERCEPTRONS, 'fit_cpu_seconds'):.1f}",
        f"{prefix}-parameters-ratio": f"{_ratio(summary, 'parameters'):.2f}",
        f"{prefix}-seconds-ratio": f"{_ratio(summary, 'fit_cpu_seconds'):.2f}",
    }


def _values_of_models(summary: Summary) -> dict[str, str]:
    """Accuracy, size and time of some models, over all tables."""
    found = {}
    for model, name in _NAMED.items():
        found |= {
            f"peers-{name}-accuracy": f"{100 * summary.mean(model, 'accuracy'):.1f}",
            f"peers-{name}-parameters": f"{summary.median(model, 'parameters'):,.0f}",
            f"peers-{name}-time": f"{_ratio(summary, 'fit_cpu_seconds', model, DEFAULT):.1f}",
        }
    return found


def _against_folds(summary: Summary) -> dict[str, str]:
    """By how much the accurate preset is ahead of RealMLP with five folds, in points of accuracy."""
    ours, folds = (
        100 * summary.scores(model, "classification")
        for model in ("HeMLGOP preset=accurate", "RealMLP-TD 5 folds")
    )
    error = np.std(ours - folds, ddof=1) / np.sqrt(len(ours))
    return {"peers-later-accurate-ahead": f"{np.mean(ours - folds):+.2f} ± {error:.2f}"}


def _duel(summary: Summary, model: str) -> Duel:
    return next(one for one in summary.duels() if one.model == model)


def _ratio(summary: Summary, what: str, model: str = DEFAULT, other: str = "RealMLP-TD") -> float:
    """The median over tables of a model's cost in units of another one's."""
    ratios = [_of(summary, model, table, what) / _of(summary, other, table, what) for table in summary.tables]
    return float(np.median(ratios))


def _of(summary: Summary, model: str, table: str, what: str) -> float:
    return float(summary.values(model, table, what).mean())


def _best(summary: Summary, table: str) -> str:
    """The accuracy of the best model on a table, whichever it is."""
    return f"{100 * max(_of(summary, model, table, 'accuracy') for model in summary.models):.1f}"


def _values_of_text(summary: Summary) -> dict[str, str]:
    """Means over the tables with text columns."""
    names = {DEFAULT: "ours", "HistGradientBoosting": "histogram", "CatBoost": "catboost"}
    found = {"peers-text-tables": str(len(_WITH_TEXT))}
    for model, name in names.items():
        for metric, factor, form in (("accuracy", 100, ".1f"), ("log_loss", 1, ".3f")):
            mean = np.mean([_of(summary, model, table, metric) for table in _WITH_TEXT])
            found[f"peers-text-{name}-{metric.replace('_', '-')}"] = format(factor * mean, form)
    return found


def _values_of_tabm(lines: Sequence[Line]) -> dict[str, str]:
    """TabM's mean accuracy and ours, on the tables on which it was run."""
    theirs = {line["table"]: line for line in _lines("tabm.jsonl")}
    ours = {line["table"]: line for line in lines if line["model"] == DEFAULT}
    times = [theirs[table]["fit_cpu_seconds"] / ours[table]["fit_cpu_seconds"] for table in theirs]
    return {
        "peers-tabm-tables": str(len(theirs)),
        "peers-tabm-accuracy": f"{100 * np.mean([line['accuracy'] for line in theirs.values()]):.1f}",
        "peers-tabm-ours": f"{100 * np.mean([ours[table]['accuracy'] for table in theirs]):.1f}",
        "peers-tabm-time": f"{np.median(times):.0f}",
    }
