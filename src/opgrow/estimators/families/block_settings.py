"""From the parameters of HeMLGOP and its variants to the settings of their growth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ...common.checks import check_choice, check_flag, check_integer, check_number, check_numbers, is_auto
from ...growth.methods.hemlgop import BlockSettings
from ...growth.model import criterion_of
from ...growth.search import SCORES, SearchSettings
from ...operators import OperatorSet, library
from ...rows.chunks.limits import check_memory_limit
from ...rows.problem import Problem
from ..parameters import Operators, n_threads
from .presets import PresetParameters, preset_of, widest
from .translation import TuningParameters, dropouts_of, fine_tuning_of, loss_of, sized_of, tuning_of

__all__ = ["BlockParameters", "fill_in", "patient", "plain_sets", "translate"]

#: In layers of more inputs than this, a perceptron is always among the tuned candidates.
_MANY_INPUTS = 16
_RIDGES: tuple[float, ...] = (0.1, 1.0, 10.0)
#: Epochs of joint tuning for classes and for numbers; fewer, but so many, where these would see more rows.
_EPOCHS, _FEWEST_EPOCHS, _ROWS_SEEN = (60, 120), 20, 960_000
#: Of a student that finds its own size: by how much tuning is longer than that of other blocks; epochs of the
#: joint tuning; random draws of the search. The smaller a network, the more it depends on its start.
_LONGER, _STUDENT_EPOCHS, _DRAWS = 4, 180, 8


class BlockParameters(PresetParameters, TuningParameters, Protocol):
    """The parameters that an estimator of the family has beside those of presets and tuning."""

    block_threshold: float
    layer_threshold: float
    ridge: str | float | Sequence[float]
    operators: Operators
    weight_range: str | float | Sequence[float]
    n_draws: int
    share_draws: bool
    focus: int | None
    search_neurons: int | None
    search_score: str
    tune_perceptron: str | bool
    growth_rows: int | None
    fine_tune_ridge: float | None
    memory_limit: int | str | None
    n_jobs: int | None


def translate(p: BlockParameters, classification: bool) -> BlockSettings:
    """Check an estimator's parameters and translate them; what depends on the data comes in `fill_in`."""
    preset = preset_of(p)
    check_memory_limit(p.memory_limit)
    check_integer("n_draws", p.n_draws, 1)
    for name in ("block_threshold", "layer_threshold"):
        check_number(name, getattr(p, name), -np.inf, np.inf)
    scores = SCORES if classification else tuple(s for s in SCORES if s != "accuracy")
    check_choice("search_score", p.search_score, scores)
    if not isinstance(p.tune_perceptron, bool | np.bool_):
        check_choice("tune_perceptron", p.tune_perceptron, ("auto", True, False))
    ridges = (
        _RIDGES if is_auto(p.ridge) else check_numbers("ridge", p.ridge, lambda v: 0 < v < np.inf, "positive")
    )
    ranges: tuple[float, ...] = ()  # which depend on the data
    if not is_auto(p.weight_range):
        ranges = check_numbers(
            "weight_range", p.weight_range, lambda v: 0 < v <= 1e12, "positive and at most 1e+12"
        )
    check_flag("share_draws", p.share_draws)
    for name in ("focus", "search_neurons", "growth_rows"):
        value = getattr(p, name)
        if value is not None:
            check_integer(name, value, 1, " or None")
    if p.fine_tune_ridge is not None:
        check_number("fine_tune_ridge", p.fine_tune_ridge, 1e-12, 1e12, "None or ")
    threads = n_threads(p.n_jobs)
    loss = loss_of(p, classification)
    tuning = tuning_of(p, loss, threads)
    return BlockSettings(
        sets=tuple(library(p.operators)),
        search=SearchSettings(
            weight_ranges=ranges,
            n_draws=int(p.n_draws),
            share_draws=bool(p.share_draws),
            focus=None if p.focus is None else int(p.focus),
            ridges=ridges,
            score=p.search_score,
            few=None if p.search_neurons is None else int(p.search_neurons),
            n_threads=threads,
        ),
        tuning=tuning,
        fine_tuning=fine_tuning_of(p, tuning, _EPOCHS[not classification]),
        criterion=criterion_of(p, classification),
        n_min=preset.n_min,
        n_step=preset.n_step,
        step_share=preset.step_share,
        max_neurons=widest(p),
        max_layers=preset.max_layers,
        block_threshold=float(p.block_threshold),
        layer_threshold=float(p.layer_threshold),
        dropouts=dropouts_of(p),
        last_dropout=None if p.fine_tune_dropout is None else float(p.fine_tune_dropout),
        head_ridge=None if p.fine_tune_ridge is None else float(p.fine_tune_ridge),
        logits=classification and loss != "mse",
        n_threads=threads,
    )


def fill_in(p: BlockParameters, settings: BlockSettings, problem: Problem) -> BlockSettings:
    """Settings whose automatic values depend on the size of the data."""
    fine_tuning = settings.fine_tuning
    if is_auto(p.fine_tune_epochs):
        fewer = max(_FEWEST_EPOCHS, _ROWS_SEEN // problem.n_rows)
        fine_tuning = fine_tuning_of(p, fine_tuning, min(sum(fine_tuning.epochs), fewer))
    tuning = replace(settings.tuning, **sized_of(p, (problem.sketch or problem).n_rows))
    if settings.longer > 1:
        rows_seen = problem.n_rows * max(1, sum(tuning.epochs))
        longer = min(settings.longer, max(1, _ROWS_SEEN // rows_seen))
        tuning = replace(tuning, epochs=tuple(longer * epochs for epochs in tuning.epochs))
    ranges = settings.search.weight_ranges or (1.5 / float(np.sqrt(problem.n_inputs)),)
    rivals = frozenset(plain_sets(settings.sets) if p.tune_perceptron else ())
    return replace(
        settings,
        search=replace(settings.search, weight_ranges=ranges, rivals=rivals),
        rivals_above=_MANY_INPUTS if is_auto(p.tune_perceptron) else 0,
        tuning=tuning,
        fine_tuning=replace(fine_tuning, **sized_of(p, problem.n_rows)),
    )


def patient(p: BlockParameters, settings: BlockSettings) -> BlockSettings:
    """Settings that search and tune for longer, where there are few rows."""
    return replace(
        settings,
        search=replace(settings.search, n_draws=max(settings.search.n_draws, _DRAWS)),
        fine_tuning=fine_tuning_of(p, settings.fine_tuning, _STUDENT_EPOCHS),
        longer=_LONGER,
    )


def plain_sets(sets: Sequence[OperatorSet]) -> tuple[OperatorSet, ...]:
    """Those of perceptrons: multiplication and sum, which are the fastest, with any activation."""
    return tuple(s for s in sets if (s.nodal, s.pool) == ("multiplication", "sum"))
