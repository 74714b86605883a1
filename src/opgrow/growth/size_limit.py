"""How large a network may become: the bound on its parameters, and what it leaves room for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..rows.problem import Problem

__all__ = ["SizeLimit"]


@dataclass
class SizeLimit:
    """At most so many parameters, or any number (None).

    Attributes
    ----------
    reached : why nothing more can be added; None while there is room
    """

    max_parameters: int | None
    reached: str | None = None

    def allows(self, n_parameters: int) -> bool:
        """Whether the network may have so many parameters; if not, that is why it grows no more."""
        most = self.max_parameters
        if most is None or n_parameters <= most:
            return True
        self.reached = self.reached or (
            f"the next step would make {n_parameters} parameters, and at most {most} are allowed"
        )
        return False

    def first_size(
        self, wanted: int, n_parameters: Callable[[int], int], method: str, problem: Problem
    ) -> int:
        """Neurons of a network's first part: as many as wanted, or as there is room for.

        ``n_parameters`` says how many parameters the network has with so many of them.
        """
        most, size = self.max_parameters, wanted
        if most is None:
            return wanted
        while size > 1 and n_parameters(size) > most:
            size -= 1
        if n_parameters(size) > most:
            raise ValueError(
                f"max_parameters leaves {most} parameters for a network, and the smallest that "
                f"{method} can grow for {problem.n_inputs} inputs and {problem.n_outputs} outputs has "
                f"{n_parameters(1)}"
            )
        if size < wanted:
            self.reached = (
                f"at most {most} parameters are allowed, which is {size} neurons instead of {wanted}"
            )
        return size
