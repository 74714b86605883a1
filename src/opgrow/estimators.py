"""The scikit-learn faces of the methods: parameters, validation of input, prediction."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import methods
from .callbacks import Callback, broadcast, check_callbacks
from .events import GrowthStep
from .growth import Growth, Method, Problem
from .kernels.warmup import warm_up
from .network import Network
from .parameters import class_weights, documentation, fill_in, translate
from .preparation import as_array, moments, one_hot, split_rows, standardized
from .scores import probabilities

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

#: Below this many rows a validation split decides by luck; scores are then taken on the training data.
MIN_VALIDATION_ROWS = 8
_PREDICT_ROWS = 1 << 15


class _GrowingEstimator(BaseEstimator):
    """What classifiers and regressors share."""

    _method: ClassVar[Method]
    network_: Network
    history_: list[GrowthStep]
    loss_: str

    def __init__(
        self,
        *,
        n_min: int = 40,
        n_step: int = 20,
        max_neurons: int = 200,
        max_layers: int = 2,
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
        epochs: Sequence[int] = (20, 40, 40),
        patience: int | None = 10,
        batch_size: int = 32,
        dropout: float | Sequence[float] = (0.1, 0.3),
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

        Parameters
        ----------
        scale : {"small", "large"}
            The paper's small problems (below 2,000 samples: no validation data) or its larger ones (a
            quarter of the training data validates, inputs are deep features with dropout).
        **changes
            Parameters to set differently; the paper selected ``ridge`` from 0.1, 1, 10, ``dropout`` from
            0.1, 0.3, 0.5 and either ``weight_decay=1e-4`` or ``max_norm`` from 1, 2, 3.

        What the paper does not say (range of the weights, batch size, optimiser, loss) is taken from its
        authors' later library or appendix: weights in [-2 pi, 2 pi], batches of 32, Adam, squared error.
        """
        settings: dict[str, Any] = {
            "operators": "paper",
            "ridge": 1.0,
            "weight_range": 2 * np.pi,
            "share_draws": False,
            "search_score": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "criterion": "accuracy" if issubclass(cls, ClassifierMixin) else "loss",
            "loss": "mse",
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

    # --- fitting ---

    def _fit(
        self,
        x: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        codes: np.ndarray | None,
        validation: tuple[np.ndarray, np.ndarray] | None,
    ) -> Self:
        settings = translate(self, codes is not None)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        keep = weight > 0
        if not keep.all():  # a row without weight is a row that is not there
            x, target, weight = x[keep], target[keep], weight[keep]
            codes = None if codes is None else codes[keep]
        held: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        if validation is not None:
            held = (*validation, np.ones(len(validation[0])))
        elif self.validation_fraction > 0:
            rng = np.random.default_rng([seed, 0])
            train, rest = split_rows(len(x), self.validation_fraction, codes, rng)
            if len(rest) >= MIN_VALIDATION_ROWS:
                held = (x[rest], target[rest], weight[rest])
                x, target, weight = x[train], target[train], weight[train]
        mean, scale = moments(x, weight) if self.standardize else (np.zeros(x.shape[1]), np.ones(x.shape[1]))
        center, spread = self._target_constants(target, weight)

        def problem(x: np.ndarray, target: np.ndarray, weight: np.ndarray, held: Problem | None) -> Problem:
            share = (weight / weight.mean()).astype(np.float32)
            scaled = np.ascontiguousarray((target - center) / spread, np.float32)
            return Problem(standardized(x, mean, scale), scaled, share, held)

        whole = problem(x, target, weight, None if held is None else problem(*held, None))
        settings = fill_in(self, settings, whole)
        callbacks = check_callbacks(self.callbacks)
        if self.verbose:
            from .progress import Progress

            callbacks.append(Progress())
        warm_up()
        with ExitStack() as stack:
            for callback in callbacks:
                stack.callback(callback.close)
            growth = Growth(whole, self._method, settings, seed, lambda event: broadcast(event, callbacks))
            # Modules are made with random weights; the user's own random numbers should not notice.
            with torch.random.fork_rng(devices=[]):
                network = growth.run()
        network.input_mean.copy_(torch.from_numpy(mean))
        network.input_scale.copy_(torch.from_numpy(scale))
        if codes is None:
            network.output_mean, network.output_scale = torch.from_numpy(center), torch.from_numpy(spread)
        self.network_, self.history_ = network, growth.steps
        self.loss_ = "custom" if callable(settings.tuning.loss) else settings.tuning.loss
        return self

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(target.shape[1]), np.ones(target.shape[1])

    def _validated(self, x: Any, y: Any, sample_weight: Any, **options: Any) -> tuple[Any, Any, np.ndarray]:
        x, y = as_array(x), as_array(y)
        x, y = validate_data(self, x, y, dtype=[np.float64, np.float32], ensure_min_samples=2, **options)
        weight = _check_sample_weight(as_array(sample_weight), x, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is zero for every row; at least one row must count")
        return x, y, weight

    def _eval_rows(self, eval_set: Any, **options: Any) -> tuple[np.ndarray, Any] | None:
        """Validation data given by the user: (X, y) or a list with that one pair."""
        if eval_set is None:
            return None
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
            raise ValueError(f"eval_set must be a pair (X, y), got {type(eval_set).__name__}")
        x, y = as_array(eval_set[0]), as_array(eval_set[1])
        return validate_data(self, x, y, reset=False, dtype=[np.float64, np.float32], **options)

    # --- predicting ---

    def _outputs(self, x: Any) -> np.ndarray:
        check_is_fitted(self, "network_")
        x = validate_data(self, as_array(x), reset=False, dtype=[np.float64, np.float32])
        with torch.no_grad():
            parts = [
                self.network_(torch.from_numpy(np.array(x[start : start + _PREDICT_ROWS])))
                for start in range(0, len(x), _PREDICT_ROWS)
            ]
        return torch.cat(parts).numpy()

    def save(self, path: Any) -> None:
        """Write the fitted model to one ``.safetensors`` file; `opgrow.load` reads it."""
        from .persistence import save

        save(self, path)


class _GrowingClassifier(ClassifierMixin, _GrowingEstimator):
    classes_: np.ndarray

    def __init__(self, *, class_weight: Any = None, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.class_weight = class_weight

    # scikit-learn, help() and editors read the parameters from the signature.
    _shared: ClassVar = list(inspect.signature(_GrowingEstimator.__init__).parameters.values())
    _own = inspect.signature(__init__).parameters["class_weight"]
    __init__.__signature__ = inspect.Signature([*_shared, _own])  # type: ignore[attr-defined]
    del _shared, _own

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Grow a network that classifies.

        Parameters
        ----------
        X : array-like, data frame, torch tensor or memory map of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        eval_set : pair (X, y), optional
            Validation data; replaces the split of ``validation_fraction``.
        """
        x, y, weight = self._validated(X, y, sample_weight)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes, got 1 class: {classes[0]!r}")
        if self.class_weight is not None:
            weight = weight * class_weights(self.class_weight, classes, codes)
        held = self._eval_rows(eval_set)
        validation = None
        if held is not None:
            unknown = np.setdiff1d(held[1], classes)
            if unknown.size:
                raise ValueError(f"eval_set has classes that y does not have: {unknown.tolist()}")
            validation = held[0], one_hot(np.searchsorted(classes, held[1]), len(classes))
        self._fit(x, one_hot(codes, len(classes)), weight, codes, validation)
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of shape (n_samples, n_classes)."""
        outputs = self._outputs(X)
        return probabilities(self.loss_, outputs)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each sample."""
        outputs = self._outputs(X)
        return self.classes_[outputs.argmax(axis=1)]


class _GrowingRegressor(RegressorMixin, _GrowingEstimator):
    n_targets_: int
    single_target_: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Grow a network for one or several numeric targets.

        Parameters
        ----------
        X : array-like, data frame, torch tensor or memory map of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        eval_set : pair (X, y), optional
            Validation data; replaces the split of ``validation_fraction``.
        """
        options = {"multi_output": True, "y_numeric": True}
        x, y, weight = self._validated(X, y, sample_weight, **options)
        held = self._eval_rows(eval_set, **options)
        target = np.asarray(y, np.float64).reshape(len(y), -1)
        validation = None
        if held is not None:
            validation = held[0], np.asarray(held[1], np.float64).reshape(len(held[1]), -1)
            if validation[1].shape[1] != target.shape[1]:
                raise ValueError(
                    f"eval_set has {validation[1].shape[1]} targets, but y has {target.shape[1]}"
                )
        self._fit(x, target, weight, None, validation)
        self.n_targets_, self.single_target_ = target.shape[1], np.ndim(y) == 1
        return self

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return moments(target, weight, "y")

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, of the shape that y had in `fit`."""
        outputs = self._outputs(X).astype(np.float64)
        return outputs[:, 0] if self.single_target_ else outputs


class HeMLGOPClassifier(_GrowingClassifier):
    __doc__ = documentation(
        "Heterogeneous multilayer GOP network: every block searches its operators and is tuned.",
        "HeMLGOPClassifier",
    )
    _method = methods.HEMLGOP


class HoMLGOPClassifier(_GrowingClassifier):
    __doc__ = documentation(
        "Homogeneous layers of tuned GOP blocks: a layer's first block chooses the operators.",
        "HoMLGOPClassifier",
    )
    _method = methods.HOMLGOP


class HeMLRNClassifier(_GrowingClassifier):
    __doc__ = documentation(
        "Heterogeneous randomised network: operators searched for every block, weights left random.",
        "HeMLRNClassifier",
    )
    _method = methods.HEMLRN


class HoMLRNClassifier(_GrowingClassifier):
    __doc__ = documentation(
        "Homogeneous randomised network: operators searched once a layer, weights left random.",
        "HoMLRNClassifier",
    )
    _method = methods.HOMLRN


class HeMLGOPRegressor(_GrowingRegressor):
    __doc__ = documentation(
        "Heterogeneous multilayer GOP network: every block searches its operators and is tuned.",
        "HeMLGOPRegressor",
    )
    _method = methods.HEMLGOP


class HoMLGOPRegressor(_GrowingRegressor):
    __doc__ = documentation(
        "Homogeneous layers of tuned GOP blocks: a layer's first block chooses the operators.",
        "HoMLGOPRegressor",
    )
    _method = methods.HOMLGOP


class HeMLRNRegressor(_GrowingRegressor):
    __doc__ = documentation(
        "Heterogeneous randomised network: operators searched for every block, weights left random.",
        "HeMLRNRegressor",
    )
    _method = methods.HEMLRN


class HoMLRNRegressor(_GrowingRegressor):
    __doc__ = documentation(
        "Homogeneous randomised network: operators searched once a layer, weights left random.",
        "HoMLRNRegressor",
    )
    _method = methods.HOMLRN
