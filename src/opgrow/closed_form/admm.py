"""The two constrained fits of the baselines, by the alternating direction method of multipliers (ADMM).

PLN bounds the norm of its output weights, BLS asks for sparse ones. Both split the unknown in two, one half
for the quadratic and one for the constraint or penalty, and tie them with a penalty parameter rho. A fixed
rho needs thousands of iterations where it does not suit the scale of the data, so rho is balanced (Boyd et
al. 2011, section 3.4.1): in the eigenbasis of the Gram matrix the quadratic's step is a division, and a new
rho costs nothing. Only the way to the answer depends on rho, the answer does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..common.errors import NotFiniteError
from ..engine.native import native
from .matrices import HOST, Matrices, Matrix

__all__ = ["bounded_least_squares", "sparse_code"]

#: From a point and rho to the nearest compromise with one half of the problem.
Step = Callable[[np.ndarray, float], np.ndarray]


def bounded_least_squares(
    gram: np.ndarray,
    cross: np.ndarray,
    radius: float,
    mu: float = 1.0,
    iterations: int = 500,
    tolerance: float = 1e-10,
) -> np.ndarray:
    """Minimise ||T - Y O||² over all O with ||O|| <= radius (Frobenius norms), rows being samples.

    Parameters
    ----------
    gram : (n, n) array
        Y'WY with row weights W; it may be rank-deficient.
    cross : (n, C) array
        Y'WT.
    radius : float
        Bound on the norm; where it is not met, the answer is the least-squares answer of smallest norm.
    mu : float
        ADMM starts with the penalty parameter rho = 1 / mu. As rho is balanced afterwards, mu decides how
        many iterations are needed and, once they suffice, not what comes out.
    iterations : int
        At most so many; the first half of them may change rho, which leaves the second one to converge.
    tolerance : float
        Stop as soon as the primal and the dual residual, relative to the answer and to ``cross``, are below.

    Returns
    -------
    (n, C) array
        The feasible iterate, so the bound holds (to rounding) after any number of iterations.

    Examples
    --------
    >>> bounded_least_squares(np.diag([2.0, 1.0]), np.array([[2.0], [0.0]]), radius=0.5)
    array([[0.5],
           [0. ]])
    """
    gram, cross = np.asarray(gram, np.float64), np.asarray(cross, np.float64)
    _require_finite(gram, cross, np.asarray(0.0 if radius == np.inf else radius), np.asarray(mu))
    if radius < 0 or mu <= 0:
        raise ValueError(f"radius must not be negative and mu must be positive, not {radius} and {mu}")
    if not cross.any() or radius == 0:
        return np.zeros_like(cross)
    curvature, basis = _eigen(gram)
    slope = native().multiply(basis.T, cross)
    # What Y does not span is rounding error in Y'T, and dividing by the rounding error of a zero blows it up.
    spanned = curvature > curvature[-1] * len(gram) * np.finfo(np.float64).eps
    curvature, slope, basis = curvature[spanned, None], slope[spanned], basis[:, spanned]
    answer = slope / curvature
    if _norm(answer) > radius:
        answer = _alternate(
            lambda towards, rho: (slope + rho * towards) / (curvature + rho),
            lambda point, _: _onto_ball(point, radius),
            _norm(slope),
            slope.shape,
            1 / mu,
            iterations,
            tolerance,
        )
    return _onto_ball(native().multiply(basis, answer), radius)


def sparse_code(
    a: Matrix,
    x: Matrix,
    penalty: float,
    iterations: int = 500,
    tolerance: float = 1e-8,
    weight: Matrix | None = None,
    matrices: Matrices = HOST,
) -> np.ndarray:
    """Minimise 1/2 ||A W - X||² + penalty ||W||_1, the sparse autoencoder of a BLS feature window.

    It is scikit-learn's ``Lasso(alpha=penalty / N, fit_intercept=False)``, one for each column of X. ADMM
    starts with the rho = 1 of BLS and balances it: with many rows, rho = 1 is far below the eigenvalues of
    A'A and would not get there. The problem, and so the answer, is the same. Where A can reproduce X exactly
    and the penalty is minute, the answer at ``iterations`` is near the optimum measured by ||X||² only.

    Parameters
    ----------
    a : (N, m) array
    x : (N, D) array
    penalty : float
    iterations : int
        At most so many; the first half of them may change rho.
    tolerance : float
        Stop as soon as the primal and the dual residual, relative to the answer and to A'X, are below.
    weight : (N,) array, optional
        Row weights; a whole number counts a row so many times.
    matrices : Matrices
        What works on the rows; they are its own.

    Returns
    -------
    (m, D) array
        The iterate that went through the soft threshold: its zeros are exact.

    Examples
    --------
    >>> sparse_code(np.eye(2), np.array([[3.0], [0.5]]), penalty=1.0).round(6)
    array([[2.],
           [0.]])
    """
    if penalty < 0:
        raise ValueError(f"the penalty must not be negative, not {penalty}")

    def sums(a: Any, x: Any, weight: Any = None) -> tuple[Any, Any]:
        left = matrices.double(a)
        weighted = left.T if weight is None else left.T * weight
        return matrices.product(weighted, left), matrices.product(weighted, matrices.double(x))

    rows = [a, x, *([] if weight is None else [weight])]
    gram, cross = matrices.sums(sums, *rows, columns=a.shape[1] + x.shape[1])
    _require_finite(gram, cross, np.asarray(penalty))
    if not cross.size or np.abs(cross).max() <= penalty:
        return np.zeros_like(cross)
    curvature, basis = _eigen(gram)
    curvature = np.maximum(curvature, 0.0)[:, None]
    product = native().multiply
    return _alternate(
        lambda towards, rho: product(basis, product(basis.T, cross + rho * towards) / (curvature + rho)),
        lambda point, rho: _soft_threshold(point, penalty / rho),
        _norm(cross),
        cross.shape,
        1.0,
        iterations,
        tolerance,
    )


def _alternate(
    quadratic: Step,
    proximal: Step,
    scale: float,
    shape: tuple[int, ...],
    rho: float,
    iterations: int,
    tolerance: float,
) -> np.ndarray:
    """ADMM from zero with the scaled dual variable (Boyd et al., section 3.1.1; PLN's Λ is its negative).

    ``scale`` is the size of the gradient at zero, which the dual residual is compared with.
    """
    answer, dual = np.zeros(shape), np.zeros(shape)
    for i in range(iterations):
        free = quadratic(answer - dual, rho)
        before, answer = answer, proximal(free + dual, rho)
        dual += free - answer
        primal = _norm(free - answer) / (max(_norm(free), _norm(answer)) or 1.0)
        change = _norm(answer - before)
        if primal <= tolerance and rho * change <= tolerance * scale:
            break
        if i < iterations // 2:
            factor = _balance(primal, change, _norm(dual))
            rho *= factor
            dual /= factor  # rho times it is the multiplier, which stays
    return answer


def _balance(primal: float, change: float, dual: float) -> float:
    """Factor for rho that brings the two relative residuals together.

    Boyd et al. compare the residuals themselves; those have different units, and relative ones make the
    choice independent of the scale of the data (Wohlberg 2017, arXiv 1704.06209).
    """
    factor = (primal * dual / change) ** 0.5 if change else 10.0
    factor = min(max(factor, 0.1), 10.0)
    return 1.0 if 2 / 3 < factor < 3 / 2 else factor


def _onto_ball(x: np.ndarray, radius: float) -> np.ndarray:
    norm = _norm(x)
    return x * (radius / norm) if norm > radius else x


def _soft_threshold(x: np.ndarray, threshold: float) -> np.ndarray:
    return x - np.clip(x, -threshold, threshold)


def _norm(x: np.ndarray) -> float:
    return float(np.sqrt(native().row_sums(np.ascontiguousarray(x)[None], power=2)[0]))


def _eigen(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    eigen = native().eigen(np.ascontiguousarray(gram))
    assert eigen is not None  # its elements are finite
    return eigen


def _require_finite(*arrays: np.ndarray) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise NotFiniteError("the sums over rows to be fitted hold values that are not finite")
