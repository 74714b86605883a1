"""Everything that moves in the report on an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...growth.model import GrownModel
from .data import Rows, as_json, growth_data, live_data, reason_against
from .explained import explained
from .sections import page_script

__all__ = ["Moving"]


@dataclass(frozen=True)
class Moving:
    """What the scripts of a page read and do.

    Attributes
    ----------
    reason : why the network does not compute in the page, or None
    data : what the scripts read
    script : all of them
    """

    reason: str | None
    data: dict[str, Any]
    script: str

    @classmethod
    def of(
        cls,
        estimator: GrownModel,
        rows: Rows,
        inputs: Sequence[str],
        outputs: Sequence[str],
        target: str | None,
    ) -> Moving:
        """Of a fitted estimator, with the names of its network's inputs, of its outputs and of the target."""
        reason = reason_against(estimator)
        data = growth_data(estimator) | {"explanation": explained(estimator, rows.X, inputs, target)}
        if reason is None:
            data |= live_data(estimator, rows, inputs, outputs) | {"target": target}
        return cls(reason, data, page_script(estimator.network_, moves=reason is None))

    def json(self) -> str:
        """The data as text for the page."""
        return as_json(self.data)
