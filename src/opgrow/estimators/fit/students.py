"""The student that takes a network's place: the smallest that rows could not tell from its teacher.

Students are grown from small to large, those first whose operators take the least time. A student's score is
its mean squared distance D from what the teacher says between the rows. If D is nothing beside the teacher's
own squared error V on held-out rows, a larger student is of no use: on n rows, the errors of both differ by
D on average, with a standard error of 2 sqrt(V D / n), so that D is below z standard errors where D is below
4 z^2 V / n. Otherwise students grow for as long as that brings them nearer to their teacher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...growth.settings import GrowthSettings
from ...training.scores import Score
from .trials import Trial

__all__ = ["Student", "indistinguishable", "smallest"]

#: Standard errors by which a student may be worse than its teacher.
_ERRORS = 1.5
#: By which part a larger student has to be nearer to its teacher, and one of other operators.
_LARGER, _OTHERS = 0.1, 0.2
#: Sizes in a row that bring nothing, after which no larger one is tried.
_IN_VAIN = 2


class Student(Trial):
    """A network that has learned from another one."""

    @property
    def distance(self) -> float:
        """How far it is from its teacher."""
        return self.score.value


def indistinguishable(held_out: Score | None, n_rows: int) -> float:
    """The distance from a teacher below which students are as good, by its score on held-out rows."""
    return 0.0 if held_out is None else 4 * _ERRORS**2 * held_out.value / n_rows


def smallest(
    kinds: Sequence[Sequence[GrowthSettings]],
    tolerance: float,
    grow: Callable[[GrowthSettings], Student],
) -> Student:
    """Grow students of each kind, the smallest first, until one is near enough; which of them is taken."""
    chosen, nearest = None, float("inf")
    for settings in kinds:
        tried = _grown(settings, tolerance, grow)
        distance = min(student.distance for student in tried)
        if chosen is None or distance < (1 - _OTHERS) * nearest:
            near = max(tolerance, (1 + _LARGER) * distance)
            chosen = next(student for student in tried if student.distance <= near)
            nearest = distance
        if nearest <= tolerance or tried[-1].growth.stopped is not None:
            break
    assert chosen is not None
    return chosen


def _grown(
    settings: Sequence[GrowthSettings], tolerance: float, grow: Callable[[GrowthSettings], Student]
) -> list[Student]:
    """Students from small to large, up to one that is near enough, or some that are no nearer than others."""
    tried: list[Student] = []
    nearest, in_vain = float("inf"), 0
    for one in settings:
        tried.append(grow(one))
        distance = tried[-1].distance
        if distance <= tolerance or tried[-1].growth.stopped is not None:
            break
        in_vain = 0 if distance < (1 - _LARGER) * nearest else in_vain + 1
        nearest = min(nearest, distance)
        if in_vain == _IN_VAIN:
            break
    return tried
