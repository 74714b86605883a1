"""What leaves an estimator: plans of fits, model files, exports to ONNX and C, reports and drawings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from . import files
from .base import Settings
from .prediction import PredictingEstimator
from .resources import Plan, plan_fit

if TYPE_CHECKING:
    from ..export import ExportCheck
    from ..report import Drawing, Explanation

__all__ = ["PublishingEstimator"]


class PublishingEstimator(PredictingEstimator[Settings]):
    """An estimator that says what a fit would take, and writes what it has grown."""

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
        return plan_fit(self, n_rows, n_features, n_outputs)

    def save(self, path: str | os.PathLike[str], *, sample: bool = True, sums: bool = False) -> None:
        """Write the fitted model to one ``.safetensors`` file; `opgrow.load` reads it.

        Parameters
        ----------
        path : str or path-like
        sample : bool, default=True
            False leaves out ``sample_``, up to 256 rows of the training data by which exports measure
            themselves.
        sums : bool, default=False
            True adds what ``partial_fit`` and ``grow`` need to go on, bit for bit; ``running_.n_bytes`` tells
            its size.
        """
        files.save(self, path, sample=sample, sums=sums)

    def export_onnx(
        self,
        path: str | os.PathLike[str],
        *,
        float16: bool = False,
        input_type: str = "float32",
        calibration: ArrayLike | None = None,
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
        path: str | os.PathLike[str],
        *,
        weights: str = "float32",
        arithmetic: str = "float",
        name: str | None = None,
        calibration: ArrayLike | None = None,
        min_agreement: float = 0.99,
        package: str | None = None,
        learn: bool | int = False,
    ) -> ExportCheck:
        """Write the fitted model as a C99 file and its header; see `opgrow.export_c` for the parameters."""
        from ..export import export_c

        options: dict[str, Any] = {"name": name, "calibration": calibration, "min_agreement": min_agreement}
        options["learn"] = learn
        return export_c(self, path, weights=weights, arithmetic=arithmetic, package=package, **options)

    def export_wasm(
        self,
        path: str | os.PathLike[str],
        *,
        weights: str = "float32",
        calibration: ArrayLike | None = None,
        min_agreement: float = 0.99,
    ) -> ExportCheck:
        """Write the fitted model as WebAssembly; see `opgrow.export.export_wasm` for the parameters."""
        from ..export import export_wasm

        options: dict[str, Any] = {"calibration": calibration, "min_agreement": min_agreement}
        return export_wasm(self, path, weights=weights, **options)

    def report(
        self,
        path: str | os.PathLike[str],
        X_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        *,
        with_rows: bool = True,
    ) -> None:
        """Write a page in which the network can be tried, and which says what was grown, how, and how good.

        Parameters
        ----------
        path : str or path-like
            The HTML file to write; it needs nothing else, and no network.
        X_test, y_test : rows that were not learned from, optional
            Without them, the page cannot say how good the model is.
        with_rows : bool, default=True
            Whether the page contains rows, to pick from and to compare with: up to 1,000 of the test rows or,
            without any, those that the model keeps.
        """
        from ..report import write_report

        write_report(self, path, X_test, y_test, with_rows=with_rows)

    def explain(self, X: Any, *, target: str | None = None, random_state: int = 0) -> Explanation:
        """What the fitted network does: curves of its columns, its neurons, and why it says what it says.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            Rows like those that the model is used for: averages are taken over some of them.
        target : str, optional
            What is predicted, for names and sentences.
        random_state : int, default=0
            Seed of the orders of columns, where these are a sample.

        Returns
        -------
        opgrow.report.Explanation

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from opgrow import HeMLRNClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> clf = HeMLRNClassifier(preset=None, n_min=4, max_layers=1, random_state=0).fit(X, y)
        >>> clf.explain(X).row(0).prediction
        '0'
        """
        from ..report import explain

        return explain(self, X, target=target, random_state=random_state)

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
