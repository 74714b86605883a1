"""A long recording as windows of equal length, and a label for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...common.checks import check_choice, check_integer

__all__ = ["window_labels", "windows"]


def windows(signal: ArrayLike, length: int, step: int | None = None) -> np.ndarray:
    """Cut a recording into windows, as `opgrow.WindowFeatures` takes them.

    Samples behind the last whole window are left out. Windows that overlap share samples: split a recording
    by time before it is cut, or what is tested has been seen in training.

    Parameters
    ----------
    signal : array-like of shape (n_samples,) or (n_samples, n_channels)
        The samples in the order of time.
    length : int
        Samples of each channel in a window.
    step : int, optional
        Samples from the start of one window to that of the next. Default: ``length``, so that windows follow
        each other.

    Returns
    -------
    ndarray of shape (n_windows, length * n_channels)
        A window in each row, sample by sample: all channels of its first sample, then of its second.

    Examples
    --------
    >>> windows([1, 2, 3, 4, 5, 6, 7], length=4, step=2)
    array([[1, 2, 3, 4],
           [3, 4, 5, 6]])
    >>> windows([[1, 10], [2, 20], [3, 30]], length=3)
    array([[ 1, 10,  2, 20,  3, 30]])
    """
    samples = np.asarray(signal)
    if samples.ndim not in (1, 2):
        raise ValueError(
            f"signal must have the shape (n_samples,) or (n_samples, n_channels), got {samples.shape}."
        )
    starts = _starts(len(samples), length, step)
    return samples[starts[:, None] + np.arange(length)].reshape(len(starts), -1)


def window_labels(
    labels: ArrayLike, length: int, step: int | None = None, *, rule: str = "majority"
) -> np.ndarray:
    """One label for each window of a recording in which every sample has one.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
    length, step : int
        As of `windows`.
    rule : {"majority", "last"}, default="majority"
        The label that most samples have, of equally frequent ones the first when sorted; or that of the last
        sample, which is what a device that predicts as time goes by wants to know.

    Returns
    -------
    ndarray of shape (n_windows,)

    Examples
    --------
    >>> window_labels([0, 0, 1, 1, 1, 0], length=3)
    array([0, 1])
    >>> window_labels([0, 0, 1, 1, 1, 0], length=3, rule="last")
    array([1, 0])
    """
    check_choice("rule", rule, ("majority", "last"))
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ValueError(f"labels must have the shape (n_samples,), got {given.shape}.")
    starts = _starts(len(given), length, step)
    if rule == "last":
        return given[starts + length - 1]
    kinds, codes = np.unique(given, return_inverse=True)
    before = np.zeros((len(given) + 1, len(kinds)), np.int64)
    np.cumsum(codes[:, None] == np.arange(len(kinds)), axis=0, out=before[1:])
    majority: np.ndarray = kinds[(before[starts + length] - before[starts]).argmax(axis=1)]
    return majority


def _starts(n_samples: int, length: int, step: int | None) -> np.ndarray:
    """The first sample of each window."""
    check_integer("length", length, 1)
    step = length if step is None else step
    check_integer("step", step, 1)
    if n_samples < length:
        raise ValueError(f"A window takes {length} samples, and the recording has {n_samples}.")
    return np.arange(0, n_samples - length + 1, step)
