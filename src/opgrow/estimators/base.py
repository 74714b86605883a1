"""What all estimators share: validation of input, fitting, prediction, and their two faces.

A family of methods is a subclass of `GrowingEstimator` with an ``__init__`` that only assigns; it says in
`_settings` and `_complete` what its parameters mean. Its classifiers and regressors join it with
`ClassifierFace` or `RegressorFace`.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..common.team import current
from ..common.threads import run_all
from ..growth.backends import Backend
from ..growth.checkpoints import Identity, NoFolder
from ..growth.checkpoints.fingerprints import texts
from ..growth.devices import choose_backend, prediction_device
from ..growth.events import Event, FitFinished, FitStarted, GrowthStep, StopGrowth, of_member
from ..growth.loop import GrowthSettings, Method, Problem
from ..growth.model import GrownModel
from ..network import Network
from ..network.average import average, fold_rows, rows_between
from ..network.scaling import BOUND, SAMPLE_ROWS, Ranges, Scaling, kept_sample, robust, spread_rows
from ..rows.chunks.sources import Source
from ..rows.preparation import (
    as_array,
    as_numbers,
    check_labels,
    checking,
    in_units,
    merged,
    moments,
    one_hot,
    ranges,
    split_rows,
    standardized,
)
from ..rows.tables.advice import advice
from ..training.scores import Loss, probabilities
from .listeners.base import Callback, broadcast, check_callbacks
from .listeners.budget import budgets
from .outside import FarRows, values_outside
from .parameters import check_common, class_weights
from .streaming import as_source, chunks_for, fit_source, targets_of

if TYPE_CHECKING:
    from ..export import ExportCheck
    from ..report import Drawing
    from .resources import Plan

__all__ = ["ClassifierFace", "GrowingEstimator", "RegressorFace", "with_class_weight", "with_parameters"]

#: Below this many rows a validation split decides by luck; scores are then taken on the training data.
MIN_VALIDATION_ROWS = 8
#: Rows by which a student is validated, at most.
_STUDENT_ROWS = 1 << 13
#: Parameters that say where and how a network grows, and not which.
_NOT_OF_THE_NETWORK = (
    "callbacks",
    "checkpoint_dir",
    "checkpoint_seconds",
    "n_jobs",
    "random_state",
    "verbose",
)
#: Inputs, which of their rows are meant (None: all), and the targets and weights of these.
_Data = tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]
#: Rows for training (None: all) and for validation (None: no rows, or others).
_Division = tuple[np.ndarray | None, np.ndarray | None]


def _set_constants(
    network: Network, scaling: Scaling, seen: Ranges, shift: np.ndarray, spread: np.ndarray, regression: bool
) -> None:
    """Tell a network how its inputs were scaled, and what was seen of them and of its targets."""
    network.input_mean, network.input_scale = scaling.center.copy(), scaling.scale.copy()
    network.input_bound = scaling.bound
    network.input_low, network.input_high = seen.low, seen.high
    if regression:
        network.output_mean, network.output_scale = shift, spread
        network.output_low, network.output_high = seen.output_limits()


def _refuse_no_rows(keep: np.ndarray) -> None:
    if not keep.any():
        raise ValueError("sample_weight and class_weight together leave no row with a weight")


def _as_many(y: Any, target: np.ndarray) -> np.ndarray:
    """The targets of an eval_set, which are as many as those of the training rows."""
    held = as_numbers(y, "eval_set")
    if held.shape[1] != target.shape[1]:
        raise ValueError(f"eval_set has {held.shape[1]} targets, but y has {target.shape[1]}")
    return held


def _refuse_unknown(labels: np.ndarray, classes: np.ndarray) -> None:
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(f"eval_set has classes that y does not have: {unknown.tolist()}")


def _name(loss: Loss) -> str:
    return "custom" if callable(loss) else loss


def _taken(values: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    return values if rows is None else values[rows]


def _sample(
    x: np.ndarray, weight: np.ndarray, seen: np.ndarray | None, ranks: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Some of the training rows and their weights, the same whatever the number of ranks."""
    numbers = np.arange(len(x)) if seen is None else seen
    before, total = ranks.before(len(numbers)), ranks.total(len(numbers))
    chosen = numbers[spread_rows(len(numbers), before, total, SAMPLE_ROWS)]
    return ranks.joined(x[chosen].astype(np.float64)), ranks.joined(weight[chosen])


def _share(max_parameters: int, n_networks: int, n_outputs: int) -> int:
    """Parameters of each network so that their average has no more; it has the biases of the head once."""
    return (max_parameters - n_outputs) // n_networks + n_outputs


class _Listeners:
    """Hands the events of networks that grow side by side to callbacks, one at a time.

    Once closed, as after an error or an interruption, it ends those that still grow. ``stopped`` is why a
    callback has stopped them all, or None.
    """

    def __init__(self, callbacks: Sequence[Callback], n_networks: int) -> None:
        self.callbacks, self.n_networks, self.ranks = callbacks, n_networks, current()
        self.lock, self.closed = threading.Lock(), False
        self.stopped: str | None = None

    def hear(self, member: int, event: Event) -> None:
        with self.lock:
            if self.closed:
                raise RuntimeError("the fit that this network belongs to is over")
            try:
                broadcast(of_member(event, member, self.n_networks), self.callbacks)
            except StopGrowth as stop:
                self.stopped = self.stopped or str(stop) or "a callback has stopped it"
            self.stopped = self.ranks.same(self.stopped)
            if self.stopped is not None:
                raise StopGrowth(self.stopped)

    def hear_all(self, event: Event) -> None:
        """Hand on an event that concerns the fit as a whole."""
        with suppress(StopGrowth):
            self.hear(0, event)

    def begin_student(self) -> None:
        """One network more, for which the callbacks decide anew."""
        self.n_networks, self.stopped = self.n_networks + 1, None

    def close(self) -> None:
        self.closed = True


class GrowingEstimator(GrownModel, BaseEstimator):
    """What classifiers and regressors of all families share."""

    _method: ClassVar[Method]
    #: Whether rows may be read in chunks from a `opgrow.rows.chunks.Source`.
    _takes_sources: ClassVar[bool] = False
    # The parameters of every family.
    validation_fraction: float
    standardize: bool
    device: str
    n_jobs: int | None
    max_parameters: int | None
    max_seconds: float | None
    checkpoint_dir: Any
    checkpoint_seconds: float
    callbacks: Any
    verbose: int
    random_state: Any

    # --- what a family says ---

    def _settings(self, classification: bool) -> GrowthSettings:
        """Check all parameters and translate them, before any work."""
        raise NotImplementedError

    def _complete(self, settings: Any, problem: Problem) -> GrowthSettings:
        """Fill in what `_settings` returned where it depends on the size of the data."""
        return settings

    def _n_networks(self, n_rows: int) -> int:
        """How many networks are grown from so many rows and averaged."""
        return 1

    def _member(self, settings: Any, number: int, n_networks: int) -> GrowthSettings:
        """Settings of one of the networks that are averaged, from 0."""
        return settings

    def _student_follows(self, max_parameters: int | None) -> bool:
        """Whether `_student` may have settings."""
        return False

    def _student(self, settings: Any, network: Network) -> GrowthSettings | None:
        """Settings of a network that learns from the grown one, or from the average, and takes its place."""
        return None

    # --- fitting ---

    def plan(self, n_rows: int, n_features: int, n_outputs: int = 2) -> Plan:
        """What `fit` would do with data of these sizes and the memory that it would take; nothing is fitted.

        Parameters
        ----------
        n_rows, n_features : int
        n_outputs : int, default=2
            Classes, or targets of a regressor.

        Returns
        -------
        Plan
            Rows, networks, parameters at most, and the bytes of data and growth.

        Examples
        --------
        >>> from opgrow import PLNClassifier
        >>> plan = PLNClassifier().plan(n_rows=1000, n_features=10, n_outputs=3)
        >>> plan.n_rows, plan.n_held, plan.n_parameters
        (800, 200, 633903)
        """
        from .resources import plan_fit

        return plan_fit(self, n_rows, n_features, n_outputs, isinstance(self, ClassifierMixin))

    def _fit(
        self,
        x: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        codes: np.ndarray | None,
        validation: tuple[np.ndarray, np.ndarray] | None,
    ) -> Self:
        check_common(self)
        ranks = current()
        callbacks = [*check_callbacks(self.callbacks), *budgets(self.max_parameters, self.max_seconds)]
        bounds = [callback.max_parameters for callback in callbacks if callback.max_parameters is not None]
        settings = replace(self._settings(codes is not None), max_parameters=min(bounds, default=None))
        ranks.begin(self, x.shape[1], target.shape[1])
        own = choose_backend(self.device, ranks.total(x.size), settings.n_threads)
        backend = ranks.backend(own)
        seed = ranks.same_number(int(check_random_state(self.random_state).randint(2**31 - 1)))
        with ExitStack() as stack:
            folder = NoFolder()
            if self.checkpoint_dir is not None:
                arrays = x, target, weight, *(validation or ())
                names = "X", "y", "sample_weight", "eval_set X", "eval_set y"
                prints = {n: ranks.fingerprint(array) for n, array in zip(names, arrays, strict=False)}
                identity = self._identity(f"{type(own).__name__}{ranks.mark}", seed, prints)
                place = self.checkpoint_dir, self.checkpoint_seconds
                folder = stack.enter_context(ranks.checkpoint(*place, identity))
                seed = folder.seed
            rows = x, target, weight, codes, validation
            self.network_ = self._fit_rows(*rows, settings, seed, backend, callbacks, folder)
        self.loss_ = _name(settings.fine_tuning.loss)
        return self

    def _identity(self, backend: str, seed: int, data: dict[str, str]) -> Identity:
        """By what a checkpoint knows this fit again; nothing in it changes the network but what is named."""
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k not in _NOT_OF_THE_NETWORK}
        any_seed = self.random_state is None
        return Identity(type(self).__name__, backend, texts(parameters), data, seed, any_seed)

    def _fit_rows(
        self,
        x: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        codes: np.ndarray | None,
        validation: tuple[np.ndarray, np.ndarray] | None,
        settings: GrowthSettings,
        seed: int,
        backend: Backend,
        callbacks: list[Callback],
        folder: NoFolder,
    ) -> Network:
        """Divide the rows among networks and grow these."""
        ranks = current()
        keep = weight > 0
        ranks.together(partial(_refuse_no_rows, keep))
        if not keep.all():  # a row without weight is a row that is not there
            x, target, weight = x[keep], target[keep], weight[keep]
            codes = None if codes is None else codes[keep]
        if ranks.has_all_rows and (x[:64] == x[0]).all() and (x == x[0]).all():
            target, weight = merged(target, weight)
            x, codes = x[: len(target)], None if codes is None else target.argmax(axis=1)
        target = np.ascontiguousarray(target)  # sums depend on the order in memory, if only by rounding
        n_networks = self._n_networks(ranks.total(len(x)))
        divisions: list[_Division] = [(None, None)] * n_networks
        if validation is None:
            rng = np.random.default_rng([seed, 0])
            divisions = ranks.divisions(len(x), codes, lambda n, c: self._divisions(n, c, n_networks, rng))
        # One network learns nothing of its validation rows; to several each row is known to most of them.
        seen = divisions[0][0] if n_networks == 1 else None
        with backend.running():  # sums of many rows are rounded in another way by more threads
            shift, spread = self._target_constants(_taken(target, seen), _taken(weight, seen))
            scaling, known = Scaling.nothing(x.shape[1]), ranges(x, target, ranks)
            sample = _sample(x, weight, seen, ranks)
            if self.standardize:
                center, scale = backend.moments(x, seen, _taken(weight, seen))
                scaling = robust(Scaling(center, scale, BOUND), known, *sample)

        def prepare(data: _Data, validation: Problem | None = None) -> Problem:
            x, rows, target, weight = data
            share = (weight / ranks.mean_weight(weight, len(x), rows)).astype(np.float32)
            scaled = ranks.together(lambda: standardized(target, shift, spread, "y or eval_set"))
            return backend.problem(x, rows, scaled, share, scaling, validation)

        def problem_of(division: _Division) -> Problem:
            most, rest = division
            held: _Data | None = None
            if validation is not None:
                held = validation[0], None, validation[1], np.ones(len(validation[0]))
            elif rest is not None:
                held = x, rest, target[rest], weight[rest]
            train = x, most, _taken(target, most), _taken(weight, most)
            return prepare(train, None if held is None else prepare(held))

        def distilled(teacher: Network) -> Problem:
            """All rows, with what the teacher says of them for targets; validated between the rows."""
            finish(teacher)
            between, near = rows_between(x, _STUDENT_ROWS, np.random.default_rng([seed, 1]))
            said, held = (
                self._predictions(teacher, v, _name(settings.fine_tuning.loss)) for v in (x, between)
            )
            return prepare((x, None, said, weight), prepare((between, None, held, weight[near])))

        def finish(network: Network) -> None:
            _set_constants(network, scaling, known, shift, spread, codes is None)

        self.sample_ = kept_sample(sample[0]).astype(x.dtype)
        problems = [partial(problem_of, division) for division in divisions]
        return self._grow(problems, distilled, finish, settings, seed, backend, callbacks, folder)

    def _divisions(
        self, n_rows: int, codes: np.ndarray | None, n_networks: int, rng: np.random.Generator
    ) -> list[_Division]:
        """Rows for training and for validation of each network; (None, None) where all of them train."""
        fraction = self.validation_fraction
        if fraction == 0:
            return [(None, None)] * n_networks
        if n_networks == 1:
            found = [split_rows(n_rows, fraction, codes, rng)]
        else:
            found = fold_rows(n_rows, n_networks, fraction, codes, rng)
        return [d if len(d[1]) >= MIN_VALIDATION_ROWS else (None, None) for d in found]

    def _grow(
        self,
        problems: Sequence[Callable[[], Problem]],
        distilled: Callable[[Network], Problem],
        finish: Callable[[Network], None],
        settings: GrowthSettings,
        seed: int,
        backend: Backend,
        callbacks: list[Callback],
        folder: NoFolder,
    ) -> Network:
        """Grow a network from each problem; several become their average, or one that learns from it."""
        if current().rank > 0:  # they hear from rank 0 when to stop
            callbacks = []
        elif self.verbose:
            from .listeners.progress import Progress

            callbacks = [*callbacks, Progress()]
        n_networks, follows = len(problems), self._student_follows(settings.max_parameters)
        listeners = _Listeners(callbacks, n_networks)
        steps: dict[int, list[GrowthStep]] = {}
        started = time.perf_counter() - folder.elapsed_before

        def grow(
            number: int, make: Callable[[], Problem], settings: GrowthSettings, backend: Backend
        ) -> Network | None:
            if number > 0 and listeners.stopped is not None:
                return None
            problem, member = make(), number + 1
            most = settings.max_parameters
            if most is not None and number < n_networks:
                most = None if follows else _share(most, n_networks, problem.n_outputs)
            growth = self._method.growth(
                problem,
                self._method,
                self._complete(replace(settings, max_parameters=most), problem),
                seed if number == 0 else int(np.random.SeedSequence([seed, number]).generate_state(1)[0]),
                partial(listeners.hear, member),
                backend,
                folder.journal(f"network{member:02d}"),
            )
            network = growth.run()
            backend.forget(problem)
            steps[number] = [replace(step, member=member) for step in growth.steps]
            return network

        def grow_beside(
            number: int, make: Callable[[], Problem], settings: GrowthSettings, backend: Backend
        ) -> Network | None:
            with backend.member():  # others may wait for it, also if it never begins
                return grow(number, make, settings, backend)

        n_threads, each, where = 1, settings, backend
        if n_networks > 1:
            where, n_threads, threads_each = backend.beside(n_networks)
            each = settings.with_threads(threads_each)
        with ExitStack() as stack:
            for callback in callbacks:
                stack.callback(callback.close)
            stack.callback(listeners.close)
            parameters = {k: v for k, v in self.get_params(deep=False).items() if k != "callbacks"}
            before = folder.elapsed_before
            listeners.hear_all(FitStarted(type(self).__name__, parameters, n_networks, follows, before))
            tasks = [
                partial(grow_beside, number, make, self._member(each, number, n_networks), where)
                for number, make in enumerate(problems)
            ]
            grown = [network for network in run_all(tasks, n_threads) if network is not None]
            network = grown[0] if len(grown) == 1 else average(grown)
            student = self._student(settings, network)
            if student is not None:
                listeners.begin_student()
                learned = grow(n_networks, partial(distilled, network), student, backend)
                assert learned is not None
                network = learned
            finish(network)
            listeners.hear_all(FitFinished(network, time.perf_counter() - started))
        self.history_ = [step for number in sorted(steps) for step in steps[number]]
        return network

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(target.shape[1]), np.ones(target.shape[1])

    def _validated(self, x: Any, y: Any, sample_weight: Any, **options: Any) -> tuple[Any, Any, np.ndarray]:
        check_labels(y, is_classifier(self))
        x, y = self._checked(x, y, ensure_min_samples=2, **options)
        given = as_array(sample_weight)
        with checking():
            weight = _check_sample_weight(given, x, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is zero for every row; at least one row must count")
        return x, y, weight

    def _checked(self, *data: Any, **options: Any) -> Any:
        """X, or X and y, as scikit-learn checks them; of tables it knows less than we do."""
        arrays = [as_array(part) for part in data]
        try:
            with checking():
                return validate_data(self, *arrays, dtype=[np.float64, np.float32], **options)
        except (ValueError, TypeError) as error:
            sentence = advice(arrays[0], type(self).__name__)
            if sentence is None:
                raise
            raise ValueError(sentence) from error

    def _eval_rows(self, eval_set: Any, **options: Any) -> tuple[np.ndarray, Any] | None:
        """Validation data given by the user: (X, y) or a list with that one pair."""
        if eval_set is None:
            return None
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]
        listed = isinstance(eval_set, tuple | list)
        if not listed or len(eval_set) != 2 or all(isinstance(part, tuple) for part in eval_set):
            size = f" of {len(eval_set)}" if listed else ""
            raise ValueError(f"eval_set must be a pair (X, y), got {type(eval_set).__name__}{size}")
        try:
            check_labels(eval_set[1], is_classifier(self))
            return self._checked(*eval_set, reset=False, **options)
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"eval_set: {error}") from error

    # --- predicting ---

    def _outputs(self, x: Any) -> np.ndarray:
        parts, far = [], FarRows(self)
        for chunk in self._chunks(x):
            parts.append(self._network_outputs(self.network_, chunk))
            far.look_at(chunk)
        far.warn()
        outputs = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not np.isfinite(outputs).all():
            finite = np.isfinite(outputs).all(axis=1)
            row, count = int(finite.argmin()), int((~finite).sum())
            raise ValueError(
                f"X is too far from the data that the network was fitted on: it overflows on {count} of "
                f"{len(finite)} rows, the first of them row {row}"
            )
        return outputs

    def _chunks(self, x: Any) -> Iterator[np.ndarray]:
        """Rows that are to be predicted, checked: those of a source one chunk at a time."""
        check_is_fitted(self, "network_")
        if isinstance(x, Source):
            yield from (chunk.x for chunk in chunks_for(self, x))
        else:
            yield x if self._needs_no_check(x) else self._checked(x, reset=False)

    def _needs_no_check(self, x: Any) -> bool:
        """Whether scikit-learn's checks, which take longer than a prediction, would return X itself."""
        plain = type(x) is np.ndarray and x.dtype in (np.float32, np.float64) and x.ndim == 2 and len(x) > 0
        if not plain or x.shape[1] != self.n_features_in_ or hasattr(self, "feature_names_in_"):
            return False
        with np.errstate(all="ignore"):
            return bool(np.isfinite(x.sum()))

    def outside(self, X: Any) -> np.ndarray:
        """Whether rows lie far outside what was seen in training, so that their predictions are guesses.

        A row does if one of its inputs is further from the range of the training rows than that range is
        wide. Of models whose files do not tell these ranges (formats 1 and 2), no row does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source

        Returns
        -------
        array of bool of shape (n_samples,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from opgrow import HeMLRNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = HeMLRNClassifier(preset=None, n_min=4, max_layers=1, random_state=0).fit(X, y)
        >>> model.outside([[5.0, 3.5, 1.5, 0.2], [50.0, 35.0, 15.0, 2.0]])
        array([False,  True])
        """
        return np.concatenate([values_outside(self.network_, chunk).any(axis=1) for chunk in self._chunks(X)])

    def _predictions(self, network: Network, x: np.ndarray, loss: str) -> np.ndarray:
        """What a network that was grown for a loss says of rows, as targets have it: (n, outputs)."""
        return self._network_outputs(network, x)

    def _network_outputs(self, network: Network, x: np.ndarray) -> np.ndarray:
        device = prediction_device(self.device, x.size)
        if device == "cpu":
            return network.outputs(x)
        from ..network.torch import outputs_on

        return outputs_on(network, x, device)

    def save(self, path: Any, *, sample: bool = True) -> None:
        """Write the fitted model to one ``.safetensors`` file; `opgrow.load` reads it.

        Parameters
        ----------
        path : str or path-like
        sample : bool, default=True
            False leaves out ``sample_``, up to 256 rows of the training data by which exports measure
            themselves.
        """
        from .files import save

        save(self, path, sample=sample)

    def export_onnx(
        self,
        path: Any,
        *,
        float16: bool = False,
        input_type: str = "float32",
        calibration: Any = None,
        min_agreement: float = 0.99,
    ) -> ExportCheck:
        """Write the fitted model as an ONNX file; see `opgrow.export_onnx`, which this calls.

        Parameters
        ----------
        path : str or path-like
        float16 : bool, default=False
            Store the weights in half precision: half the file.
        input_type : {"float32", "float64"}, default="float32"
            Type of the model's input; "float64" where features have large means and small deviations.
        calibration : array-like of shape (n_samples, n_features), optional
            Rows on which the file is compared with this model.
        min_agreement : float, default=0.99
            Below this agreement, nothing is written.
        """
        from ..export import export_onnx

        options: dict[str, Any] = {"calibration": calibration, "min_agreement": min_agreement}
        return export_onnx(self, path, float16=float16, input_type=input_type, **options)

    def export_c(
        self,
        path: Any,
        *,
        weights: str = "float32",
        arithmetic: str = "float",
        name: str | None = None,
        calibration: Any = None,
        min_agreement: float = 0.99,
    ) -> ExportCheck:
        """Write the fitted model as a C99 file and its header; see `opgrow.export_c` for the parameters."""
        from ..export import export_c

        options: dict[str, Any] = {"name": name, "calibration": calibration, "min_agreement": min_agreement}
        return export_c(self, path, weights=weights, arithmetic=arithmetic, **options)

    # --- showing ---

    def report(self, path: Any, X_test: Any = None, y_test: Any = None) -> None:
        """Write a page on what was grown, how it grew, how good it is and what it costs.

        Parameters
        ----------
        path : str or path-like
            The HTML file to write; it needs nothing else, and no network.
        X_test, y_test : rows that were not learned from, optional
            Without them, the page cannot say how good the model is.
        """
        from ..report import write_report

        write_report(self, path, X_test, y_test)

    def plot(self) -> Drawing:
        """A drawing of the fitted network: notebooks show it, and its ``save("network.svg")`` writes it."""
        from ..report.page import draw_estimator

        return draw_estimator(self)

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._drawn()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:  # scikit-learn's diagram can be turned off
            bundle["text/html"] += self._drawn()
        return bundle

    def _drawn(self) -> str:
        """What notebooks show below scikit-learn's diagram."""
        return self.plot()._repr_html_() if hasattr(self, "network_") else ""


def with_parameters(family_init: Callable[..., None], before: str, **defaults: Any) -> Callable[..., None]:
    """A family's ``__init__`` with further parameters, which stand before the given one."""

    def __init__(self: Any, **parameters: Any) -> None:
        family_init(self, **{name: value for name, value in parameters.items() if name not in defaults})
        for name, default in defaults.items():
            setattr(self, name, parameters.get(name, default))

    # scikit-learn, help() and editors read the parameters from the signature.
    own = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d) for n, d in defaults.items()]
    shared = list(inspect.signature(family_init).parameters.values())
    place = [parameter.name for parameter in shared].index(before)
    signature = inspect.Signature([*shared[:place], *own, *shared[place:]])
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def with_class_weight(family_init: Callable[..., None]) -> Callable[..., None]:
    """The ``__init__`` of a family's classifiers: the family's, and ``class_weight`` before ``device``."""
    return with_parameters(family_init, "device", class_weight=None)


class ClassifierFace(ClassifierMixin, GrowingEstimator):
    """Fits and predicts classes. A family's classifiers take their ``__init__`` from `with_class_weight`."""

    class_weight: Any
    classes_: np.ndarray

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Grow a network that classifies.

        Parameters
        ----------
        X : array-like, data frame, torch tensor or memory map of shape (n_samples, n_features)
            Or, for HeMLGOP, HoMLGOP, HeMLRN and HoMLRN, a source (see `opgrow.stream`), which has y in it.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        eval_set : pair (X, y), optional
            Validation data; replaces the split of ``validation_fraction``.
        """
        ranks = current()
        source = as_source(self, X, y, sample_weight)
        if source is not None:
            classes = fit_source(self, source, eval_set, classification=True).preparation.classes
            assert classes is not None
            self.classes_ = classes
            return self
        x, y, weight = ranks.together(lambda: self._validated(X, y, sample_weight))
        weight = in_units(weight, ranks)
        ranks.together(lambda: check_classification_targets(y))
        classes, codes = ranks.classes(*np.unique(y, return_inverse=True))
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes, got 1 class: {classes.tolist()[0]!r}"
            )
        if self.class_weight is not None:
            weight = weight * class_weights(self.class_weight, classes, codes, ranks.add)
        held = ranks.together(lambda: self._eval_rows(eval_set))
        validation = None
        if held is not None:
            ranks.together(lambda: _refuse_unknown(held[1], classes))
            validation = held[0], one_hot(np.searchsorted(classes, held[1]), len(classes))
        self._fit(x, one_hot(codes, len(classes)), weight, codes, validation)
        self.classes_ = classes
        return self

    def _predictions(self, network: Network, x: np.ndarray, loss: str) -> np.ndarray:
        return probabilities(loss, self._network_outputs(network, x))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of shape (n_samples, n_classes)."""
        outputs = self._outputs(X)
        return probabilities(self.loss_, outputs)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each sample: the first of the largest in `predict_proba`."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on rows and their classes, or on a source, which has both."""
        if isinstance(X, Source) and y is None:
            y, sample_weight = targets_of(X)
        return super().score(X, y, sample_weight)


class RegressorFace(RegressorMixin, GrowingEstimator):
    """Fits and predicts one or several numeric targets."""

    n_targets_: int
    single_target_: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Grow a network for one or several numeric targets.

        Parameters
        ----------
        X : array-like, data frame, torch tensor or memory map of shape (n_samples, n_features)
            Or, for HeMLGOP, HoMLGOP, HeMLRN and HoMLRN, a source (see `opgrow.stream`), which has y in it.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        eval_set : pair (X, y), optional
            Validation data; replaces the split of ``validation_fraction``.
        """
        ranks = current()
        source = as_source(self, X, y, sample_weight)
        if source is not None:
            opened = fit_source(self, source, eval_set, classification=False)
            self.n_targets_, self.single_target_ = opened.preparation.n_outputs, opened.y_ndim == 1
            return self
        options = {"multi_output": True, "y_numeric": True}
        x, y, weight = ranks.together(lambda: self._validated(X, y, sample_weight, **options))
        held = ranks.together(lambda: self._eval_rows(eval_set, **options))
        weight = in_units(weight, ranks)
        target = ranks.together(lambda: as_numbers(y))
        validation = None
        if held is not None:
            validation = held[0], ranks.together(lambda: _as_many(held[1], target))
        self._fit(x, target, weight, None, validation)
        self.n_targets_, self.single_target_ = target.shape[1], np.ndim(y) == 1
        return self

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return moments(target, weight, "y", ranks=current())

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, of the shape that y had in `fit`."""
        outputs = self._outputs(X).astype(np.float64)
        return outputs[:, 0] if self.single_target_ else outputs

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R2 on rows and their targets, or on a source, which has both."""
        if isinstance(X, Source) and y is None:
            y, sample_weight = targets_of(X)
        predicted, y = self.predict(X), as_array(y)
        largest = np.abs(predicted).max(initial=0.0)
        if largest > 1e100 or 0 < largest < 1e-100:  # whose squares overflow or vanish; R2 has no unit
            unit = np.ldexp(1.0, np.frexp(largest)[1] - 1)
            predicted, y = predicted / unit, np.asarray(y, np.float64) / unit
        return float(r2_score(y, predicted, sample_weight=sample_weight))
