"""The scikit-learn faces of the methods: parameters, validation of input, prediction."""

from __future__ import annotations

import inspect
import numbers
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
from .callbacks import Callback, broadcast
from .engines import TuningSettings
from .events import GrowthStep
from .growth import Growth, GrowthSettings, Method, Problem
from .kernels.warmup import warm_up
from .network import Network
from .operators import library
from .preparation import as_array, moments, one_hot, split_rows, standardized
from .scores import CRITERIA, probabilities
from .search import SCORES, SearchSettings

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

_PARAMETERS = """
    Parameters
    ----------
    n_min, n_step : int, default=40, 20
        Neurons of a layer's first block and of every further block.
    max_neurons, max_layers : int, default=200, 2
        Bounds on the width of a layer and on the depth.
    block_threshold, layer_threshold : float, default=1e-4
        Least relative improvement of the score by which a new block or layer is kept.
    ridge : "auto", float or sequence of float, default="auto"
        Regularisation of the closed-form head in the search; from several values the search's score
        chooses. "auto" is (0.1, 1, 10).
    operators : {"default", "paper", "pygop"} or list, default="default"
        The operator sets to search; see `opgrow.operators.library`.
    weight_range : "auto", float or sequence of float, default="auto"
        Random weights are uniform in [-range, range]; every range given is tried. "auto" is
        1.5 / sqrt(inputs).
    n_draws : int, default=1
        Random draws tried for each operator set and range.
    share_draws : bool, default=True
        Whether operator sets with the same nodal operator are compared on the same random weights.
    search_score : {"loo", "gcv", "loss", "accuracy"}, default="loo"
        What ranks the candidates: leave-one-out or generalised cross-validated squared error, squared
        training error, or accuracy (on validation data if there is some).
    tune_perceptron : "auto" or bool, default="auto"
        Whether the best candidate that multiplies and sums is tuned too, beside the search's winner, and
        the better one kept. "auto" does so for more than 16 inputs.
    criterion : {"auto", "accuracy", "brier", "loss"}, default="auto"
        What decides growth. "auto" is "brier" for classification and "loss" for regression.
    loss : {"auto", "cross_entropy", "mse"} or callable, default="auto"
        What tuning descends. "auto" is "cross_entropy" for classification and "mse" for regression. A
        callable takes outputs and targets, both (n, outputs), and returns one loss per row.
    learning_rates, epochs : sequences of float and int, default=(0.01, 0.001, 0.0001), (20, 40, 40)
        Schedule of the tuning of a block.
    patience : int or None, default=10
        Epochs without a better score after which a learning rate gives way to the next one; None never
        cuts the schedule short.
    batch_size : int, default=32
    dropout : float or sequence of float, default=(0.1, 0.3)
        Dropout on hidden features; from several values the first block chooses.
    input_dropout : float, default=0
    weight_decay : "auto" or float, default="auto"
        "auto" is 0.4 / number of training rows.
    max_norm : float or None, default=None
        Bound on the norm of each neuron's weights.
    optimizer : "adam" or callable, default="adam"
        A callable takes parameter groups and returns a torch optimiser.
    fine_tune_epochs, fine_tune_learning_rate : int and float, default=200, 5e-5
        Final tuning of the whole network, kept only if the score improves; 0 epochs turn it off.
    validation_fraction : float, default=0.2
        Part of the training data that only scores; 0 scores on the training data, and so does a part
        of fewer than 8 rows.
    standardize : bool, default=True
        Whether inputs are standardised inside the network.
    {extra}device : {"auto", "cpu"}, default="auto"
    n_jobs : int or None, default=None
        Threads; None uses as many as torch does, -1 all cores.
    callbacks : list of Callback, optional
    verbose : int, default=0
        1 shows live progress.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    network_ : Network, a torch module
    history_ : list of GrowthStep, everything that was tried
    """
_CLASS_WEIGHT = """class_weight : dict, "balanced" or None, default=None
    """


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
        settings = self._settings(codes is not None)
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
            scaled = ((target - center) / spread).astype(np.float32)
            return Problem(standardized(x, mean, scale), scaled, share, held)

        whole = problem(x, target, weight, None if held is None else problem(*held, None))
        settings = self._fill_in(settings, whole)
        callbacks = list(self.callbacks or ())
        if self.verbose:
            from .progress import Progress

            callbacks.append(Progress())
        warm_up()
        with ExitStack() as stack:
            for callback in callbacks:
                stack.callback(callback.close)
            growth = Growth(whole, self._method, settings, seed, lambda event: broadcast(event, callbacks))
            network = growth.run()
        with torch.no_grad():
            network.input_mean.copy_(torch.from_numpy(mean))  # type: ignore[operator]
            network.input_scale.copy_(torch.from_numpy(scale))  # type: ignore[operator]
            spread_, center_ = (torch.from_numpy(np.asarray(a, np.float32)) for a in (spread, center))
            network.head.weight *= spread_[:, None]
            network.head.bias.copy_(network.head.bias * spread_ + center_)
        self.network_, self.history_ = network, growth.steps
        self.loss_ = "custom" if callable(settings.tuning.loss) else settings.tuning.loss
        return self

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(target.shape[1]), np.ones(target.shape[1])

    def _n_threads(self) -> int:
        if self.n_jobs is None:
            return torch.get_num_threads()
        if self.n_jobs == -1:
            import joblib

            return int(joblib.cpu_count())
        return int(self.n_jobs)

    def _settings(self, classification: bool) -> GrowthSettings:
        """Check every parameter and translate them; what depends on the data comes later."""
        self._check_numbers()
        criterion, loss = self.criterion, self.loss
        if criterion == "auto":
            criterion = "brier" if classification else "loss"
        if loss == "auto":
            loss = "cross_entropy" if classification else "mse"
        allowed = tuple(CRITERIA) if classification else ("loss",)
        if criterion not in allowed:
            raise ValueError(f"criterion must be 'auto' or one of {allowed}, got {self.criterion!r}")
        losses = ("mse", "cross_entropy") if classification else ("mse",)
        if not callable(loss) and loss not in losses:
            raise ValueError(f"loss must be 'auto', one of {losses} or a function, got {self.loss!r}")
        scores = SCORES if classification else tuple(s for s in SCORES if s != "accuracy")
        if self.search_score not in scores:
            raise ValueError(f"search_score must be one of {scores}, got {self.search_score!r}")
        if self.optimizer != "adam" and not callable(self.optimizer):
            raise ValueError(f"optimizer must be 'adam' or a function, got {self.optimizer!r}")
        if self.device not in ("auto", "cpu"):
            raise ValueError(f"device must be 'auto' or 'cpu', got {self.device!r}")
        if self.tune_perceptron != "auto" and not isinstance(self.tune_perceptron, bool | np.bool_):
            raise ValueError(f"tune_perceptron must be 'auto', True or False, got {self.tune_perceptron!r}")
        n_threads = self._n_threads()
        if n_threads < 1:
            raise ValueError(f"n_jobs must be None, -1 or at least 1, got {self.n_jobs!r}")
        rates, epochs = tuple(self.learning_rates), tuple(self.epochs)
        if len(rates) != len(epochs):
            raise ValueError(
                f"learning_rates and epochs must have the same length, got {len(rates)} and {len(epochs)}"
            )
        dropouts = _values("dropout", self.dropout, lambda v: 0 <= v < 1, "in [0, 1)")
        common = {
            "loss": loss,
            "patience": self.patience,
            "batch_size": int(self.batch_size),
            "dropout": dropouts[0],
            "input_dropout": float(self.input_dropout),
            "max_norm": self.max_norm,
            "optimizer": self.optimizer,
            "n_threads": n_threads,
        }
        ridges = (0.1, 1.0, 10.0)
        if self.ridge != "auto":
            ridges = _values("ridge", self.ridge, lambda v: 0 < v < np.inf, "positive")
        return GrowthSettings(
            sets=tuple(library(self.operators)),
            search=SearchSettings(
                n_draws=int(self.n_draws),
                share_draws=bool(self.share_draws),
                ridges=ridges,
                score=self.search_score,
                n_threads=n_threads,
            ),
            tuning=TuningSettings(learning_rates=rates, epochs=epochs, **common),
            fine_tuning=TuningSettings(
                learning_rates=(float(self.fine_tune_learning_rate),),
                epochs=(int(self.fine_tune_epochs),),
                **common,
            ),
            criterion=criterion,
            n_min=int(self.n_min),
            n_step=int(self.n_step),
            max_neurons=int(self.max_neurons),
            max_layers=int(self.max_layers),
            block_threshold=float(self.block_threshold),
            layer_threshold=float(self.layer_threshold),
            dropouts=dropouts,
            logits=classification and loss != "mse",
        )

    def _fill_in(self, settings: GrowthSettings, problem: Problem) -> GrowthSettings:
        """Settings whose automatic values depend on the size of the data."""
        from dataclasses import replace

        decay = 0.4 / len(problem.x) if self.weight_decay == "auto" else float(self.weight_decay)
        if self.weight_range == "auto":
            ranges: tuple[float, ...] = (1.5 / float(np.sqrt(problem.n_inputs)),)
        else:
            ranges = _values("weight_range", self.weight_range, lambda v: 0 < v < np.inf, "positive")
        also = problem.n_inputs > 16 if self.tune_perceptron == "auto" else self.tune_perceptron
        plain = (s for s in settings.sets if (s.nodal, s.pool) == ("multiplication", "sum"))
        rivals = frozenset(plain) if also else frozenset()
        return replace(
            settings,
            search=replace(settings.search, weight_ranges=ranges, rivals=rivals),
            tuning=replace(settings.tuning, weight_decay=decay),
            fine_tuning=replace(settings.fine_tuning, weight_decay=decay),
        )

    def _check_numbers(self) -> None:
        for name, least in (
            ("n_min", 1),
            ("n_step", 1),
            ("max_neurons", 1),
            ("max_layers", 1),
            ("n_draws", 1),
            ("batch_size", 1),
            ("fine_tune_epochs", 0),
        ):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        for name, low, high in (
            ("block_threshold", -np.inf, np.inf),
            ("layer_threshold", -np.inf, np.inf),
            ("input_dropout", 0.0, 0.999),
            ("fine_tune_learning_rate", 0.0, np.inf),
            ("validation_fraction", 0.0, 0.9),
        ):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or isinstance(value, bool) or not low <= value <= high:
                raise ValueError(f"{name} must be a number in [{low:g}, {high:g}], got {value!r}")
        patience = self.patience
        if patience is not None and (not isinstance(patience, numbers.Integral) or patience < 1):
            raise ValueError(f"patience must be None or an integer of at least 1, got {patience!r}")
        decay = self.weight_decay
        if decay != "auto" and not (isinstance(decay, numbers.Real) and 0 <= decay < np.inf):
            raise ValueError(f"weight_decay must be 'auto' or a number of at least 0, got {decay!r}")
        if self.max_norm is not None and not (isinstance(self.max_norm, numbers.Real) and self.max_norm > 0):
            raise ValueError(f"max_norm must be None or a positive number, got {self.max_norm!r}")

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
    _shared = list(inspect.signature(_GrowingEstimator.__init__).parameters.values())
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
            weight = weight * _class_weights(self.class_weight, classes, codes)
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
        return moments(target, weight)

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, of the shape that y had in `fit`."""
        outputs = self._outputs(X).astype(np.float64)
        return outputs[:, 0] if self.single_target_ else outputs


def _class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """A weight for every row, from a dictionary or "balanced" (inversely proportional to class counts)."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(codes, minlength=len(classes))
        return (len(codes) / (len(classes) * counts))[codes]
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must be a dictionary, 'balanced' or None, got {class_weight!r}")
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight names the class {unknown[0]!r}, but y has only {labels}")
    weights = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError(f"class weights must be finite, at least 0 and not all 0, got {class_weight!r}")
    return weights[codes]


def _document(summary: str, extra: str, example: str) -> str:
    return summary + "\n" + _PARAMETERS.replace("{extra}", extra) + "\n" + example


_CLASSIFIER_EXAMPLE = """
    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import {name}
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = {name}(n_min=10, n_step=5, random_state=0).fit(X, y)
    >>> bool(clf.score(X, y) > 0.9)
    True
    """
_REGRESSOR_EXAMPLE = """
    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from opgrow import {name}
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = {name}(n_min=10, n_step=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.3)
    True
    """


def _values(name: str, given: Any, allowed: Any, rule: str) -> tuple[float, ...]:
    """One number or a sequence of numbers, each checked."""
    single = isinstance(given, numbers.Real) and not isinstance(given, bool)
    values = (given,) if single else given
    ok = not isinstance(values, str) and isinstance(values, Sequence | np.ndarray) and len(values) > 0
    if not ok or not all(isinstance(v, numbers.Real) and allowed(v) for v in values):
        raise ValueError(f"{name} must be a number or a sequence of numbers, each {rule}, got {given!r}")
    return tuple(float(v) for v in values)


class HeMLGOPClassifier(_GrowingClassifier):
    __doc__ = _document(
        "Heterogeneous multilayer GOP network: every block searches its operators and is tuned.",
        _CLASS_WEIGHT,
        _CLASSIFIER_EXAMPLE.format(name="HeMLGOPClassifier"),
    )
    _method = methods.HEMLGOP


class HoMLGOPClassifier(_GrowingClassifier):
    __doc__ = _document(
        "Homogeneous layers of tuned GOP blocks: a layer's first block chooses the operators.",
        _CLASS_WEIGHT,
        _CLASSIFIER_EXAMPLE.format(name="HoMLGOPClassifier"),
    )
    _method = methods.HOMLGOP


class HeMLRNClassifier(_GrowingClassifier):
    __doc__ = _document(
        "Heterogeneous randomised network: operators searched for every block, weights left random.",
        _CLASS_WEIGHT,
        _CLASSIFIER_EXAMPLE.format(name="HeMLRNClassifier"),
    )
    _method = methods.HEMLRN


class HoMLRNClassifier(_GrowingClassifier):
    __doc__ = _document(
        "Homogeneous randomised network: operators searched once a layer, weights left random.",
        _CLASS_WEIGHT,
        _CLASSIFIER_EXAMPLE.format(name="HoMLRNClassifier"),
    )
    _method = methods.HOMLRN


class HeMLGOPRegressor(_GrowingRegressor):
    __doc__ = _document(
        "Heterogeneous multilayer GOP network: every block searches its operators and is tuned.",
        "",
        _REGRESSOR_EXAMPLE.format(name="HeMLGOPRegressor"),
    )
    _method = methods.HEMLGOP


class HoMLGOPRegressor(_GrowingRegressor):
    __doc__ = _document(
        "Homogeneous layers of tuned GOP blocks: a layer's first block chooses the operators.",
        "",
        _REGRESSOR_EXAMPLE.format(name="HoMLGOPRegressor"),
    )
    _method = methods.HOMLGOP


class HeMLRNRegressor(_GrowingRegressor):
    __doc__ = _document(
        "Heterogeneous randomised network: operators searched for every block, weights left random.",
        "",
        _REGRESSOR_EXAMPLE.format(name="HeMLRNRegressor"),
    )
    _method = methods.HEMLRN


class HoMLRNRegressor(_GrowingRegressor):
    __doc__ = _document(
        "Homogeneous randomised network: operators searched once a layer, weights left random.",
        "",
        _REGRESSOR_EXAMPLE.format(name="HoMLRNRegressor"),
    )
    _method = methods.HOMLRN
