"""A C program before it is written: what it would compute, and the head that suits it best.

A draft can be run in Python (`fixed_emulation`, `float_emulation`), so that exports are measured, and
repaired, without a compiler.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from . import fixed_emulation, float_emulation
from .c_fixed import FixedProgram, fixed_program, with_head
from .conditioning import with_features_of_one_size
from .heads import mixtures, solved_heads
from .measuring import Expected, ExportCheck, compare
from .program import LINEAR, Program, Step
from .ranges import NARROW, exact_outputs

__all__ = ["Draft", "FixedDraft", "FloatDraft", "best_draft"]

#: A draft that agrees so well is taken as it is.
_EQUAL_LABELS, _EQUAL_SCORES, _EQUAL_R2 = 1.0, 1e-2, 0.9999
#: Formats without and with the rows that are far from all others; floats have no formats.
_HEADROOMS = {"float": (NARROW,), "integer": (NARROW, np.inf)}


@dataclass(frozen=True)
class FloatDraft:
    """A program in single precision, with weights as they are stored."""

    program: Program
    weights: str
    how = "single precision emulated in numpy, polynomials included"

    def features(self, rows: np.ndarray) -> np.ndarray:
        return float_emulation.features(self.program, rows, self.weights)

    def scores(self, seen: np.ndarray) -> np.ndarray:
        return float_emulation.scores(
            self.program, float_emulation.head_outputs(self.program, seen, self.weights)
        )

    def real(self, seen: np.ndarray) -> np.ndarray:
        """Features as the head reads them, as real numbers."""
        return self.program.read_by_head(seen).astype(np.float64)

    def with_head(self, head: Step) -> FloatDraft:
        return replace(self, program=replace(self.program, head=head))


@dataclass(frozen=True)
class FixedDraft:
    """A program in integers."""

    fixed: FixedProgram
    how = "integers emulated exactly"

    @property
    def program(self) -> Program:
        return self.fixed.program

    def features(self, rows: np.ndarray) -> np.ndarray:
        return fixed_emulation.features(self.fixed, fixed_emulation.as_inputs(self.fixed, rows))

    def scores(self, seen: np.ndarray) -> np.ndarray:
        outputs = fixed_emulation.head_outputs(self.fixed, seen)
        return np.ldexp(fixed_emulation.scores(self.fixed, outputs).astype(float), -self.fixed.output_bits)

    def real(self, seen: np.ndarray) -> np.ndarray:
        read = fixed_emulation.read_by_head(self.fixed, seen)
        return np.ldexp(read.astype(np.float64), -self.fixed.head.x_bits)

    def with_head(self, head: Step) -> FixedDraft:
        return replace(self, fixed=with_head(self.fixed, head))


Draft = FloatDraft | FixedDraft


def best_draft(
    program: Program, weights: str, arithmetic: str, expected: Expected
) -> tuple[Draft, ExportCheck]:
    """The draft that agrees best with the estimator, and how well it does."""
    candidates: list[tuple[Draft, ExportCheck]] = []
    for headroom in _HEADROOMS[arithmetic]:
        draft = _draft(program, weights, arithmetic, expected, headroom)
        check = compare(expected, draft.scores(draft.features(expected.rows)), draft.how)
        if _is_equal(check):
            return draft, check
        candidates.append((draft, check))
    if program.head.operators == LINEAR:
        candidates += _with_other_heads(program, weights, arithmetic, expected)
    return max(candidates, key=lambda candidate: _merit(candidate[1]))


def _with_other_heads(
    program: Program, weights: str, arithmetic: str, expected: Expected
) -> list[tuple[Draft, ExportCheck]]:
    """Drafts with features of one size, and with the head solved again for them."""
    conditioned = with_features_of_one_size(program, expected.rows)
    draft = _draft(conditioned, weights, arithmetic, expected, NARROW)
    seen = draft.features(expected.rows)
    candidates = [(draft, compare(expected, draft.scores(seen), draft.how))]
    stored = "int16" if arithmetic == "integer" and weights == "float32" else weights
    more = mixtures(conditioned, expected.rows)
    outputs = exact_outputs(conditioned, more)[-1]
    for head in solved_heads(conditioned, draft.real(draft.features(more)), outputs, stored):
        solved = draft.with_head(head)
        measured = compare(expected, solved.scores(seen), draft.how)
        candidates.append((solved, replace(measured, head_solved_again=True)))
    return candidates


def _draft(program: Program, weights: str, arithmetic: str, expected: Expected, headroom: float) -> Draft:
    if arithmetic == "float":
        return FloatDraft(program, weights)
    stored = "int16" if weights == "float32" else weights
    return FixedDraft(fixed_program(program, expected.rows, stored, headroom))


def _is_equal(check: ExportCheck) -> bool:
    assert check.agreement is not None
    assert check.largest_difference is not None
    if not check.classification:
        return check.agreement >= _EQUAL_R2
    return check.agreement >= _EQUAL_LABELS and check.largest_difference <= _EQUAL_SCORES


def _merit(check: ExportCheck) -> tuple[float, float]:
    assert check.agreement is not None
    assert check.mean_difference is not None
    return check.agreement, -check.mean_difference
