"""HeMLGOP, HoMLGOP, HeMLRN and HoMLRN as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from ..common.checks import check_choice, check_flag, check_integer, check_number, is_auto
from ..growth import methods
from ..growth.loop import Problem
from ..growth.methods.hemlgop import BlockSettings
from ..growth.model import criterion_of
from ..growth.search import SCORES, SearchSettings
from ..network import Network
from ..operators import library
from ..rows.chunks.limits import check_memory_limit
from .base import ClassifierFace, GrowingEstimator, RegressorFace, with_class_weight
from .listeners import Callback
from .parameters import documentation, n_threads, values
from .presets import deepest, n_networks, preset_of, student_follows, student_size, widest
from .translation import dropouts_of, fine_tuning_of, loss_of, sized_of, tuning_of

__all__ = [
    "HeMLGOPClassifier",
    "HeMLGOPRegressor",
    "HeMLRNClassifier",
    "HeMLRNRegressor",
    "HoMLGOPClassifier",
    "HoMLGOPRegressor",
    "HoMLRNClassifier",
    "HoMLRNRegressor",
]

#: Above this many inputs, a perceptron is always among the tuned candidates.
_MANY_INPUTS = 16
_RIDGES = (0.1, 1.0, 10.0)


class BlockEstimator(GrowingEstimator):
    """The parameters of the family and what they mean."""

    _takes_sources = True

    def __init__(
        self,
        *,
        preset: str | None = "balanced",
        n_min: int | str = "auto",
        n_step: int | str = "auto",
        max_neurons: int | str = "auto",
        max_layers: int | str = "auto",
        n_estimators: int | str = "auto",
        distill: int | str | None = "auto",
        block_threshold: float = 1e-4,
        layer_threshold: float = 1e-4,
        ridge: str | float | Sequence[float] = "auto",
        operators: Any = "default",
        weight_range: str | float | Sequence[float] = "auto",
        n_draws: int = 1,
        share_draws: bool = True,
        search_score: str = "loo",
        tune_perceptron: str | bool = "auto",
        criterion: str = "auto",
        loss: Any = "auto",
        learning_rates: Sequence[float] = (0.01, 0.001, 0.0001),
        epochs: Sequence[int] = (40, 40, 40),
        patience: int | None = 20,
        batch_size: int | str = "auto",
        dropout: float | Sequence[float] = (0.3, 0.0),
        input_dropout: float = 0.0,
        weight_decay: str | float = "auto",
        max_norm: float | None = None,
        optimizer: Any = "adam",
        fine_tune_epochs: int = 200,
        fine_tune_learning_rate: float = 5e-5,
        validation_fraction: float = 0.2,
        standardize: bool = True,
        device: str = "auto",
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
        max_parameters: int | None = None,
        max_seconds: float | None = None,
        checkpoint_dir: Any = None,
        checkpoint_seconds: float = 60.0,
        callbacks: Sequence[Callback] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        for name, value in locals().items():
            if name != "self":
                setattr(self, name, value)

    @classmethod
    def paper(cls, scale: str = "small", **changes: Any) -> Self:
        """The settings of the paper's experiments.

        What the paper does not say (range of the weights, batch size, optimiser, loss) is taken from its
        authors' later library or appendix: weights in [-2 pi, 2 pi], batches of 32, Adam, squared error.

        Parameters
        ----------
        scale : {"small", "large"}
            The paper's small problems (below 2,000 samples: no validation data) or its larger ones (a
            quarter of the training data validates, inputs are deep features with dropout).
        **changes
            Parameters to set differently; the paper selected ``ridge`` from 0.1, 1, 10, ``dropout`` from
            0.1, 0.3, 0.5 and either ``weight_decay=1e-4`` or ``max_norm`` from 1, 2, 3.
        """
        settings: dict[str, Any] = {
            "preset": None,
            "n_min": 40,
            "n_step": 20,
            "max_neurons": 200,
            "n_estimators": 1,
            "distill": None,
            "operators": "paper",
            "ridge": 1.0,
            "weight_range": 2 * np.pi,
            "share_draws": False,
            "search_score": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "criterion": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "loss": "mse",
            "epochs": (20, 40, 40),
            "batch_size": 32,
            "dropout": 0.3,
            "weight_decay": 1e-4,
            "max_layers": 8,
            "patience": None,
            "tune_perceptron": False,
            "validation_fraction": 0.0,
        }
        if scale == "large":
            settings |= {
                "learning_rates": (0.01, 0.005, 0.001, 0.0005, 0.0001),
                "epochs": (100,) * 5,
                "input_dropout": 0.2,
                "validation_fraction": 0.25,
            }
        elif scale != "small":
            raise ValueError(f"scale must be 'small' or 'large', got {scale!r}")
        return cls(**(settings | changes))

    def _n_networks(self, n_rows: int) -> int:
        return n_networks(self, n_rows)

    def _member(self, settings: BlockSettings, number: int, n_networks: int) -> BlockSettings:
        """Networks of an average take the values of dropout in turn, where a single one tries them all."""
        if n_networks == 1:
            return replace(settings, max_layers=deepest(self, 1))
        dropout = settings.dropouts[number % len(settings.dropouts)]
        return replace(settings, dropouts=(dropout,), tuning=replace(settings.tuning, dropout=dropout))

    def _student_follows(self, max_parameters: int | None) -> bool:
        return student_follows(self, max_parameters)

    def _student(self, settings: BlockSettings, network: Network) -> BlockSettings | None:
        size = student_size(self, network, settings.max_parameters)
        if size is None:
            return None
        tuning = replace(settings.tuning, dropout=0.0, input_dropout=0.0)
        return replace(settings, tuning=tuning, dropouts=(0.0,), n_min=size, max_neurons=size, max_layers=1)

    def _settings(self, classification: bool) -> BlockSettings:
        return translate(self, classification)

    def _complete(self, settings: BlockSettings, problem: Problem) -> BlockSettings:
        return fill_in(self, settings, problem)


def translate(p: Any, classification: bool) -> BlockSettings:
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
    ridges = _RIDGES if is_auto(p.ridge) else values("ridge", p.ridge, lambda v: 0 < v < np.inf, "positive")
    ranges: tuple[float, ...] = ()  # which depend on the data
    if not is_auto(p.weight_range):
        ranges = values("weight_range", p.weight_range, lambda v: 0 < v <= 1e12, "positive and at most 1e+12")
    check_flag("share_draws", p.share_draws)
    threads = n_threads(p.n_jobs)
    loss = loss_of(p, classification)
    tuning = tuning_of(p, loss, threads)
    return BlockSettings(
        sets=tuple(library(p.operators)),
        search=SearchSettings(
            weight_ranges=ranges,
            n_draws=int(p.n_draws),
            share_draws=bool(p.share_draws),
            ridges=ridges,
            score=p.search_score,
            n_threads=threads,
        ),
        tuning=tuning,
        fine_tuning=fine_tuning_of(p, tuning),
        criterion=criterion_of(p, classification),
        n_min=preset.n_min,
        n_step=preset.n_step,
        max_neurons=widest(p),
        max_layers=preset.max_layers,
        block_threshold=float(p.block_threshold),
        layer_threshold=float(p.layer_threshold),
        dropouts=dropouts_of(p),
        logits=classification and loss != "mse",
        n_threads=threads,
    )


def fill_in(p: Any, settings: BlockSettings, problem: Problem) -> BlockSettings:
    """Settings whose automatic values depend on the size of the data."""
    sized = sized_of(p, problem.n_rows)
    ranges = settings.search.weight_ranges or (1.5 / float(np.sqrt(problem.n_inputs)),)
    also = problem.n_inputs > _MANY_INPUTS if is_auto(p.tune_perceptron) else p.tune_perceptron
    plain = frozenset(s for s in settings.sets if (s.nodal, s.pool) == ("multiplication", "sum"))
    return replace(
        settings,
        search=replace(settings.search, weight_ranges=ranges, rivals=plain if also else frozenset()),
        tuning=replace(settings.tuning, **sized),
        fine_tuning=replace(settings.fine_tuning, **sized),
    )


class BlockClassifier(ClassifierFace, BlockEstimator):
    __init__ = with_class_weight(BlockEstimator.__init__)


class BlockRegressor(RegressorFace, BlockEstimator):
    pass


_SUMMARIES = {
    "HeMLGOP": "Heterogeneous multilayer GOP network: every block searches its operators and is tuned.",
    "HoMLGOP": "Homogeneous layers of tuned GOP blocks: a layer's first block chooses the operators.",
    "HeMLRN": "Heterogeneous randomised network: operators searched for every block, weights left random.",
    "HoMLRN": "Homogeneous randomised network: operators searched once a layer, weights left random.",
}


_TEXTS = {
    "n_min, n_step": """int or "auto"
        Neurons of a layer's first block and of every further block; "auto" is the preset's.""",
    "max_neurons, max_layers": """int or "auto"
        Bounds on the width of a layer and on the depth. "auto" is a width of 200, and a depth of 2, or 1
        where networks are averaged.""",
    "dropout": """float or sequence of float
        Share of a block's features that are left out at random in tuning. Of several values, networks that
        are averaged take one each, in turn; a single network tries all of them on its first block.""",
}


def _text(name: str, base: type[BlockEstimator]) -> str:
    kind = "Classifier" if issubclass(base, ClassifierFace) else "Regressor"
    return documentation(_SUMMARIES[name], name + kind, base.__init__, "n_min=10, n_step=5", _TEXTS)


class HeMLGOPClassifier(BlockClassifier):
    __doc__ = _text("HeMLGOP", BlockClassifier)
    _method = methods.HEMLGOP


class HoMLGOPClassifier(BlockClassifier):
    __doc__ = _text("HoMLGOP", BlockClassifier)
    _method = methods.HOMLGOP


class HeMLRNClassifier(BlockClassifier):
    __doc__ = _text("HeMLRN", BlockClassifier)
    _method = methods.HEMLRN


class HoMLRNClassifier(BlockClassifier):
    __doc__ = _text("HoMLRN", BlockClassifier)
    _method = methods.HOMLRN


class HeMLGOPRegressor(BlockRegressor):
    __doc__ = _text("HeMLGOP", BlockRegressor)
    _method = methods.HEMLGOP


class HoMLGOPRegressor(BlockRegressor):
    __doc__ = _text("HoMLGOP", BlockRegressor)
    _method = methods.HOMLGOP


class HeMLRNRegressor(BlockRegressor):
    __doc__ = _text("HeMLRN", BlockRegressor)
    _method = methods.HEMLRN


class HoMLRNRegressor(BlockRegressor):
    __doc__ = _text("HoMLRN", BlockRegressor)
    _method = methods.HOMLRN
