"""Growth recorded as curves: the same names and numbers for TensorBoard and for MLflow.

Tuning counts epochs and growth counts steps, over a whole fit; where several networks are grown, each has its
own curves, below ``network 1/``, ``network 2/`` and so on.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import Counter
from copy import copy
from os import PathLike
from typing import Any, Self

from ...common.extras import has, needs, require
from ...growth import events
from ...network import Network
from ...training.scores import Score
from .base import Callback

__all__ = ["MLflow", "TensorBoard"]

#: What MLflow takes in one call, and the longest text of a parameter.
_BATCH, _TEXT = 1000, 6000


class Records(Callback, ABC):
    """Turns events into named numbers; a subclass says in `record` where these go."""

    @abstractmethod
    def record(self, name: str, value: float, count: int) -> None:
        """A point of a curve."""

    def on_fit_start(self, event: events.FitStarted) -> None:
        """Begin all counts anew."""
        self._counts: Counter[tuple[int, str]] = Counter()
        self._several = event.n_networks > 1

    def on_growth_start(self, event: events.GrowthStarted) -> None:
        """A student is a second network, too."""
        self._several |= event.n_members > 1

    def on_epoch_end(self, event: events.EpochFinished) -> None:
        """Score, training loss and learning rate of an epoch."""
        epoch = event.epoch
        values = {"score": epoch.score, "train_loss": epoch.train_loss, "learning_rate": epoch.learning_rate}
        self._record(event.member, event.phase, values)

    def on_candidate_end(self, event: events.CandidateFinished) -> None:
        """The best score among the candidates so far."""
        self._record(event.member, event.phase, {"best_score": event.best})

    def on_step_end(self, event: events.StepFinished) -> None:
        """What a step tried, what came of it, and the size of the network with it."""
        step = event.step
        values: dict[str, Any] = {
            "score": step.score,
            "accepted": step.accepted,
            "parameters": step.n_parameters,
            "neurons": step.n_neurons,
            "seconds": step.search_seconds + step.tuning_seconds,
        }
        if step.improvement is not None:
            values["improvement"] = step.improvement
        self._record(step.member, "growth", values)

    def on_growth_end(self, event: events.GrowthFinished) -> None:
        """The score of a finished network, and its size where it is one of several."""
        values = {"score": event.score, "seconds": event.seconds}
        self._record(event.member, "final", values | (_sizes(event.network) if self._several else {}))

    def on_fit_end(self, event: events.FitFinished) -> None:
        """The size of what the fit has yielded."""
        for name, value in _sizes(event.network).items():
            self.record(f"final/{name}", value, 0)

    def _record(self, member: int, group: str, values: dict[str, Any]) -> None:
        before = f"network {member}/" if self._several else ""
        count = self._counts[member, group]
        self._counts[member, group] += 1
        for name, value in values.items():
            number = float(value.value if isinstance(value, Score) else value)
            if math.isfinite(number):
                self.record(f"{before}{group}/{name}", number, count)


def _sizes(network: Network) -> dict[str, int]:
    neurons = sum(layer.n_neurons for layer in network.layers)
    return {
        "parameters": network.n_parameters(),
        "flops": network.flops(),
        "neurons": neurons,
        "layers": len(network.layers),
    }


def _require(package: str, module: str, extra: str) -> None:
    if not has(module):
        raise ImportError(needs("This callback", f"the package {package}", extra))


class TensorBoard(Records):
    """Writes growth for TensorBoard.

    Parameters
    ----------
    log_dir : str or path-like, optional
        Folder for the event files; by default ``runs/`` with date and host, as torch chooses it.
    writer : torch.utils.tensorboard.SummaryWriter, optional
        What writes instead; it stays open after the fit.

    Examples
    --------
    >>> from opgrow import HeMLGOPClassifier
    >>> from opgrow.estimators.listeners import TensorBoard
    >>> clf = HeMLGOPClassifier(callbacks=[TensorBoard("runs/first")])  # doctest: +SKIP
    """

    def __init__(self, log_dir: str | PathLike[str] | None = None, writer: Any = None) -> None:
        if log_dir is not None and writer is not None:
            raise ValueError("TensorBoard takes log_dir or writer, and got both")
        if writer is None:
            _require("tensorboard", "tensorboard", "tensorboard")
        self.log_dir, self.writer = log_dir, writer
        self._writer: Any = None

    def __deepcopy__(self, memo: Any) -> Self:
        # scikit-learn copies callbacks with their estimator. A copy opens files of its own or, where the
        # writer was given, shares it.
        twin = copy(self)
        twin._writer = None
        return twin

    def on_fit_start(self, event: events.FitStarted) -> None:
        """Open the files, and write down the parameters."""
        super().on_fit_start(event)
        self._writer = self.writer
        if self._writer is None:
            writing = require("torch.utils.tensorboard", "This callback", "tensorboard")
            self._writer = writing.SummaryWriter(self.log_dir)
        rows = "".join(f"| {name} | `{value!r}` |\n" for name, value in event.parameters.items())
        self._writer.add_text(event.estimator, f"| parameter | value |\n|---|---|\n{rows}")

    def record(self, name: str, value: float, count: int) -> None:
        """A point of a curve."""
        self._writer.add_scalar(name, value, count)

    def on_fit_end(self, event: events.FitFinished) -> None:
        """The sizes, and the network as text."""
        super().on_fit_end(event)
        self._writer.add_text("network", f"```\n{event.network!r}\n```")

    def close(self) -> None:
        """Write what is waiting; close files that are the callback's own."""
        if self._writer is not None:
            self._writer.flush()
            if self._writer is not self.writer:
                self._writer.close()
        self._writer = None


class MLflow(Records):
    """Writes growth to a run of MLflow: parameters, curves and the size of the network.

    Parameters
    ----------
    run : str or mlflow.entities.Run, optional
        The run to write to, which stays open. By default the active run of the thread that calls ``fit``; if
        there is none, every fit begins a run of its own and ends it.
    experiment : str, optional
        Name of the experiment of runs that are begun; it is made where there is none.
    client : mlflow.MlflowClient, optional
        What writes; by default a client of the tracking server that MLflow is set to.

    Examples
    --------
    >>> from opgrow import HeMLGOPClassifier
    >>> from opgrow.estimators.listeners import MLflow
    >>> clf = HeMLGOPClassifier(callbacks=[MLflow(experiment="pima")])  # doctest: +SKIP
    """

    def __init__(self, run: Any = None, *, experiment: str | None = None, client: Any = None) -> None:
        _require("mlflow-skinny", "mlflow", "mlflow")
        self.run, self.experiment, self.client = run, experiment, client
        self._client: Any = None
        self._run_id: str | None = None
        self._own = False  # the run was begun here and is ended here
        self._waiting: list[Any] = []

    def __deepcopy__(self, memo: Any) -> Self:
        twin = copy(self)  # as for TensorBoard
        twin._client, twin._run_id, twin._own, twin._waiting = None, None, False, []
        return twin

    def on_fit_start(self, event: events.FitStarted) -> None:
        """Find or begin the run, and write down the parameters."""
        super().on_fit_start(event)
        import mlflow
        from mlflow.entities import Param

        self._client = mlflow.MlflowClient() if self.client is None else self.client
        run: Any = mlflow.active_run() if self.run is None else self.run
        self._own = run is None
        if self._own:
            run = self._client.create_run(self._experiment_id(), run_name=event.estimator)
        self._run_id = run if isinstance(run, str) else run.info.run_id
        parameters = {"estimator": event.estimator} | dict(event.parameters)
        texts = [Param(name, str(value)[:_TEXT]) for name, value in parameters.items()]
        self._client.log_batch(self._run_id, params=texts)

    def _experiment_id(self) -> str:
        if self.experiment is None:
            return "0"
        experiment = self._client.get_experiment_by_name(self.experiment)
        if experiment is None:
            return self._client.create_experiment(self.experiment)
        return experiment.experiment_id

    def record(self, name: str, value: float, count: int) -> None:
        """A point of a curve; points are sent when a step is over."""
        from mlflow.entities import Metric

        self._waiting.append(Metric(name, value, int(1000 * time.time()), count))

    def on_step_end(self, event: events.StepFinished) -> None:
        """Write the step and the epochs that belong to it."""
        super().on_step_end(event)
        self._send()

    def on_fit_end(self, event: events.FitFinished) -> None:
        """The sizes and the topology; end a run that was begun here."""
        super().on_fit_end(event)
        self._send()
        self._client.set_tag(self._run_id, "topology", event.network.topology())
        self._end("FINISHED")

    def close(self) -> None:
        """Mark a run that was begun here as failed, unless the fit has ended well."""
        self._end("FAILED")

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), _BATCH):
            self._client.log_batch(self._run_id, metrics=waiting[start : start + _BATCH])

    def _end(self, status: str) -> None:
        if self._own:
            self._client.set_terminated(self._run_id, status)
        self._client, self._run_id, self._own, self._waiting = None, None, False, []
