"""The parameters of POPMemO and POPMemH, which have a memory beside the operators that they search."""

from __future__ import annotations

from typing import Any

from ...common.checks import check_choice, check_number
from ...growth.methods.pop import POPSettings
from ..classifier import GrowingClassifier
from ..parameter_groups import RunParameters, declares_parameters
from .layers import LayerEstimator, LayerRegressor, WeightParameters
from .searching_layers import SearchParameters

__all__ = ["RememberingClassifier", "RememberingRegressor"]


@declares_parameters
class RememberingParameters(WeightParameters, SearchParameters):
    """What methods with a memory have beside the operators that they search."""

    memory: str = "pca"
    memory_energy: float = 0.98
    memory_ridge: float = 0.1

    def _memory_settings(self, classification: bool) -> dict[str, Any]:
        check_choice("memory", self.memory, ("pca", "lda") if classification else ("pca",))
        check_number("memory_energy", self.memory_energy, 1e-6, 1.0)
        check_number("memory_ridge", self.memory_ridge, 1e-12, 1e12)
        return {
            "memory": self.memory,
            "memory_energy": float(self.memory_energy),
            "memory_ridge": float(self.memory_ridge),
        }


@declares_parameters
class RememberingClassifier(
    RunParameters, GrowingClassifier[POPSettings], LayerEstimator, RememberingParameters
):
    """Classifiers with a memory."""


@declares_parameters
class RememberingRegressor(RunParameters, LayerRegressor, LayerEstimator, RememberingParameters):
    """Regressors with a memory."""
