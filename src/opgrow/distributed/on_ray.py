"""Fitting on a Ray cluster, by Ray Train: its workers are the ranks of a process group."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..common.extras import needs
from ..rows.chunks.sources import Source
from .launch import share_of

__all__ = ["ray_fit"]

Estimator = TypeVar("Estimator")
_MODEL = "model.safetensors"


def ray_fit(
    estimator: Estimator,
    X: Any,
    y: Any = None,
    *,
    num_workers: int = 2,
    use_gpu: bool = False,
    storage_path: str | None = None,
    max_failures: int = 0,
) -> Estimator:
    """Fit an estimator on the workers of a Ray cluster, or of this machine where there is none.

    Parameters
    ----------
    estimator : an estimator of HeMLGOP, HoMLGOP, HeMLRN or HoMLRN
    X, y : arrays, of which each worker takes its share; or, instead of X, a function of a worker's rank and
        of the number of workers that returns the rows of that worker, (X, y) or a source: where each reads
        its own files
    num_workers : int, default=2
    use_gpu : bool, default=False
        Whether each worker has a GPU.
    storage_path : str, optional
        Folder, or address of a storage, that all machines reach: rank 0 writes the model there. Default: a
        temporary folder, which is enough on one machine.
    max_failures : int, default=0
        How often the workers are started again after a failure.

    Returns
    -------
    estimator : a new estimator of the same kind, fitted

    Examples
    --------
    >>> from opgrow import HeMLGOPClassifier, distributed
    >>> clf = distributed.ray_fit(HeMLGOPClassifier(), X, y, num_workers=4)  # doctest: +SKIP
    """
    try:
        import ray
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer
    except ImportError as error:
        raise ImportError(needs("ray_fit", "Ray Train", "ray")) from error
    if callable(X) != (y is None):
        raise ValueError("ray_fit takes X and y, or a function that returns both instead of X")
    if not ray.is_initialized():
        ray.init()
    rows = X if callable(X) else (ray.put(X), ray.put(y))
    with tempfile.TemporaryDirectory() as folder:
        trainer = TorchTrainer(
            _work,
            train_loop_config={"estimator": estimator, "rows": rows},
            scaling_config=ScalingConfig(num_workers=num_workers, use_gpu=use_gpu),
            run_config=RunConfig(
                storage_path=storage_path or folder, failure_config=FailureConfig(max_failures=max_failures)
            ),
        )
        checkpoint = trainer.fit().checkpoint
        assert checkpoint is not None
        with checkpoint.as_directory() as folder:
            from ..estimators.files import load

            return load(Path(folder) / _MODEL)


def _work(config: dict[str, Any]) -> None:
    """What each worker does: take its rows, fit with the others; rank 0 hands over the model."""
    import ray
    from ray import train

    from .fitting import fit

    context = train.get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    rows: Any = config["rows"]
    if isinstance(rows, tuple):
        x, y = ray.get(list(rows))
        share = share_of(len(x), rank, size)
        x, y = x[share], y[share]
    else:
        load: Callable[[int, int], Any] = rows
        data = load(rank, size)
        x, y = (data, None) if isinstance(data, Source) else data
    fitted = fit(config["estimator"], x, y)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if rank == 0:
            fitted.save(Path(folder) / _MODEL)
            checkpoint = train.Checkpoint.from_directory(folder)
        train.report({}, checkpoint=checkpoint)
