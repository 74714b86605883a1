"""A C program with a head that learns on, before it is written: its features and its start, measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..training.scores import probabilities
from .c_draft import FloatDraft
from .folding import without_norms
from .learning import StartingHead, folds, starting_head
from .measuring import Expected, ExportCheck, compare, expected_with, not_measured, refuse
from .program import Program, program_of

__all__ = ["learning_program", "measured_start"]


def learning_program(
    model: Any, weights: str, features: Sequence[str] | None
) -> tuple[Program, StartingHead]:
    """What C computes of an estimator whose head learns on, and what its state begins with.

    The head sees the features whose sums there are, so linear layers do not become part of it.
    """
    network = program_of(model, features)
    program = without_norms(network) if weights == "float32" else network
    program = program if folds(network, program) else network
    return program, starting_head(model.with_sums(), network, program)


def measured_start(
    model: Any, draft: FloatDraft, start: StartingHead, expected: Expected | None, least: float
) -> tuple[FloatDraft, ExportCheck]:
    """How well the program agrees with the estimator; refused where the state's first head does not."""
    if expected is None:
        return draft, not_measured(draft.program.classes is not None, "there were no calibration rows")
    seen = draft.features(expected.rows)
    outputs = start.outputs(seen)
    scores = outputs if draft.program.classes is None else probabilities("cross_entropy", outputs)
    taught = compare(expected_with(model.with_sums(), expected.rows), scores, draft.how)
    what = f"The head that the C program with {draft.weights} weights starts to learn with"
    remedy = "fit a network with fewer neurons" if draft.weights == "float32" else "use weights='float32'"
    refuse(taught, least, what, lambda: remedy)
    return draft, compare(expected, draft.scores(seen), draft.how)
