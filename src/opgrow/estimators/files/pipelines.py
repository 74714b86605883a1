"""Pipelines of scikit-learn that end in an estimator of this package, as plain data and tensors, and back.

The estimator itself is described as it is without a pipeline; beside it, the description lists the parts:
steps, and pipelines and column transformers with steps in them. A part says how many columns it takes; how
many it makes follows from what it has learned, and both have to fit from the first part to the network.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ...rows.tables import TableEncoder
from ..base import GrowingEstimator
from .category_steps import CATEGORY_STEPS
from .format import STEP_TENSORS, as_row, of_type, require
from .steps import (
    MAX_WIDTH,
    STEPS,
    Check,
    describe_arrays,
    flag,
    number,
    parameters_of,
    step_of,
    take_parameters,
)

__all__ = ["describe_pipeline", "model_of", "restore_pipeline"]

#: Version of this part of the description.
_FORMAT = 1
_MAX_PARTS, _MAX_DEPTH = 1000, 10
_COLUMNS: dict[str, Check] = {
    "sparse_threshold": number,
    "verbose_feature_names_out": flag,
    "transformer_weights": lambda value: value is None,
}
_OUTPUTS = ("default", "pandas", "polars")
_KNOWN = (
    *STEPS,
    *(cls.__name__ for cls in CATEGORY_STEPS),
    "TableEncoder",
    "ColumnTransformer",
    "Pipeline",
)


def model_of(pipeline: Pipeline) -> GrowingEstimator[Any]:
    """The estimator in which a pipeline ends."""
    last = pipeline.steps[-1][1] if pipeline.steps else None
    if not isinstance(last, GrowingEstimator):
        raise TypeError(
            f"A pipeline that is saved ends in one of opgrow's estimators, got {type(last).__name__}."
        )
    return last


# --- writing ---


def describe_pipeline(pipeline: Pipeline) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The steps of a fitted pipeline in front of its estimator: plain data, and tensors by name."""
    writer = _Writer()
    steps = [[name, writer.part(step, name)] for name, step in pipeline.steps[:-1]]
    description = {
        "format": _FORMAT,
        "scikit_learn": sklearn.__version__,
        "steps": [*steps, [pipeline.steps[-1][0], {"kind": "model"}]],
    }
    # Always there, so that versions that know no pipelines refuse the file.
    return description, writer.tensors | {f"{STEP_TENSORS}parts": np.array([writer.n_parts], dtype=np.int64)}


@dataclass
class _Writer:
    """Parts as plain data; collects their arrays."""

    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    n_parts: int = 0

    def part(self, step: Any, name: str) -> dict[str, Any]:
        """A part, and what is in it."""
        if step is None or (isinstance(step, str) and step == "passthrough"):
            return {"kind": "passthrough"}
        place, self.n_parts = self.n_parts, self.n_parts + 1
        data = {"kind": type(step).__name__} | self._state(step, name, place)
        if type(step) is not Pipeline:
            data["n"] = int(step.n_features_in_)
            names = getattr(step, "feature_names_in_", None)
            if names is not None and not isinstance(step, TableEncoder):
                data["names"] = [str(one) for one in names]
        output = getattr(step, "_sklearn_output_config", {}).get("transform", "default")
        return data if output == "default" or type(step) is Pipeline else data | {"output": output}

    def _state(self, step: Any, name: str, place: int) -> dict[str, Any]:
        cls = type(step)
        known = STEPS.get(cls.__name__)
        if not (cls in CATEGORY_STEPS or cls in (TableEncoder, ColumnTransformer, Pipeline)) and (
            known is None or known.cls is not cls
        ):
            raise TypeError(
                f"Step {name!r} is a {cls.__name__}, which a model file cannot hold: it can hold "
                f"{', '.join(_KNOWN[:-1])} and {_KNOWN[-1]}."
            )
        try:
            check_is_fitted(step)
        except NotFittedError:
            raise NotFittedError(f"Step {name!r} is not fitted: call fit before saving.") from None
        if cls is Pipeline:
            return {"steps": [[inner, self.part(one, inner)] for inner, one in step.steps]}
        if cls is ColumnTransformer:
            return self._columns(step, name)
        if cls is TableEncoder:
            return {"table": step.to_dict()}
        if cls in CATEGORY_STEPS:
            return CATEGORY_STEPS[cls].describe(step, name)
        assert known is not None
        counts, arrays = describe_arrays(step, known, name)
        self.tensors |= {f"{STEP_TENSORS}{place}.{key}": array for key, array in arrays.items()}
        return {"parameters": parameters_of(step, known.parameters, name), "counts": counts}

    def _columns(self, step: ColumnTransformer, name: str) -> dict[str, Any]:
        parts = []
        for inner, one, _ in step.transformers_:
            places = [int(place) for place in step._transformer_to_input_indices[inner]]
            drop = (isinstance(one, str) and one == "drop") or not places
            parts.append([inner, {"kind": "drop"} if drop else self.part(one, inner), places])
        remainder = step.remainder if isinstance(step.remainder, str) else "estimator"
        shown = ColumnTransformer([], **{key: getattr(step, key) for key in _COLUMNS})
        return {
            "parameters": parameters_of(shown, _COLUMNS | {"transformers": lambda value: True}, name)
            | {"transformers": None},
            "remainder": remainder,
            "sparse": bool(step.sparse_output_),
            "by_name": all(_are_names(columns) for columns in step._columns),
            "parts": parts,
        }


def _are_names(columns: Any) -> bool:
    """Whether columns were chosen by their names, and not by their places."""
    return not isinstance(columns, slice) and all(isinstance(one, str) for one in np.atleast_1d(columns))


# --- reading ---


def restore_pipeline(
    data: Any, tensors: dict[str, np.ndarray], model: GrowingEstimator[Any], n_inputs: int
) -> Pipeline:
    """The fitted pipeline, from its description, the tensors of its steps and the estimator that it ends in.

    ``n_inputs`` is how many columns the estimator takes.
    """
    require(isinstance(data, dict), "its pipeline is not a JSON object")
    require(data.get("format") == _FORMAT, f"its pipeline is in format {data.get('format')!r:.40}")
    reader = _Reader({name.removeprefix(STEP_TENSORS): array for name, array in tensors.items()})
    counted = reader.tensors.pop("parts", None)
    require(counted is not None and counted.shape == (1,), "its pipeline has no number of parts")
    steps = of_type(data, "steps", list)
    last = as_row(steps[-1], "step", 2) if steps else ["", None]
    require(last[1] == {"kind": "model"}, "its pipeline does not end in the model")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inner, _, made = reader.steps(steps[:-1], 0)
    require(
        made is None or made == n_inputs, f"the steps make {made} columns, and the model takes {n_inputs}"
    )
    require(reader.n_parts == counted[0], "its pipeline has another number of parts")  # type: ignore[index]
    require(not reader.tensors, f"tensor {next(iter(reader.tensors), '')!r:.100} belongs to no step")
    _check_names([*(name for name, _ in inner), last[0]])
    return Pipeline([*inner, (last[0], model)])


@dataclass
class _Reader:
    """Parts from plain data; takes their arrays."""

    tensors: dict[str, np.ndarray]
    n_parts: int = 0

    def steps(self, data: Any, depth: int) -> tuple[list[tuple[str, Any]], int | None, int | None]:
        """Steps one behind the other, the columns that the first takes, and those that the last makes."""
        require(depth <= _MAX_DEPTH, f"its pipeline has steps within steps, more than {_MAX_DEPTH} deep")
        require(isinstance(data, list), "the steps of a pipeline are no list")
        steps: list[tuple[str, Any]] = []
        taken: int | None = None
        made: int | None = None
        for item in data:
            name, described = as_row(item, "step", 2)
            step, n, more = self.part(described, depth)
            require(
                made is None or n is None or n == made,
                f"step {name!r:.100} takes {n} columns, and gets {made}",
            )
            taken, made = (n if taken is None else taken), (made if more is None else more)
            steps.append((name, step))
        _check_names([name for name, _ in steps])
        return steps, taken, made

    def part(self, data: Any, depth: int) -> tuple[Any, int | None, int | None]:
        """A part, and the columns that it takes and makes; None for as many as there are."""
        require(isinstance(data, dict), "a part of its pipeline is not a JSON object")
        kind = data.get("kind")
        if kind == "passthrough":
            return "passthrough", None, None
        require(isinstance(kind, str) and kind in _KNOWN, f"its pipeline has the unknown step {kind!r:.100}")
        require(self.n_parts < _MAX_PARTS, f"its pipeline has more than {_MAX_PARTS} steps")
        place, self.n_parts = self.n_parts, self.n_parts + 1
        if kind == "Pipeline":
            steps, taken, made = self.steps(data.get("steps"), depth + 1)
            require(steps, "a pipeline in its pipeline has no steps")
            return Pipeline(steps), taken, made
        n = of_type(data, "n", int)
        require(0 < n <= MAX_WIDTH, f"a {kind} takes {n} columns, and at most {MAX_WIDTH} are allowed")
        try:
            step, made = self._step(kind, data, place, n, depth)
        except (ValueError, RecursionError):
            raise
        except Exception as error:  # whatever scikit-learn makes of what a file says
            raise ValueError(f"a {kind} does not work ({type(error).__name__}: {error})") from error
        require(0 < made <= MAX_WIDTH, f"a {kind} makes {made} columns")
        self._name(step, data, n)
        return step, n, made

    def _step(self, kind: str, data: dict[str, Any], place: int, n: int, depth: int) -> tuple[Any, int]:
        if kind == "ColumnTransformer":
            return self._columns(data, n, depth + 1)
        if kind == "TableEncoder":
            encoder = TableEncoder.from_dict(data.get("table"))
            require(
                encoder.n_features_in_ == n,
                f"a TableEncoder has {encoder.n_features_in_} columns, and takes {n}",
            )
            return encoder, len(encoder.get_feature_names_out())
        category = next((one for cls, one in CATEGORY_STEPS.items() if cls.__name__ == kind), None)
        if category is not None:
            step = category.restore(data, n)
            return step, len(step.get_feature_names_out())
        start = f"{place}."
        names = [name for name in self.tensors if name.startswith(start)]
        arrays = {name.removeprefix(start): self.tensors.pop(name) for name in names}
        step = step_of(STEPS[kind], data, arrays, n)
        return step, int(np.shape(step.transform(np.zeros((1, n))))[1])

    def _columns(self, data: dict[str, Any], n: int, depth: int) -> tuple[Any, int]:
        """A column transformer; its parts are given their columns by place."""
        parameters = take_parameters(
            {k: v for k, v in of_type(data, "parameters", dict).items() if k != "transformers"},
            ColumnTransformer,
            _COLUMNS,
        )
        require(depth <= _MAX_DEPTH, f"its pipeline has steps within steps, more than {_MAX_DEPTH} deep")
        names: Any = data.get("names") if of_type(data, "by_name", bool) else list(range(n))
        require(isinstance(names, list) and len(names) == n, "a ColumnTransformer has no names of columns")
        parts, indices, outputs, start = [], {}, {}, 0
        for item in of_type(data, "parts", list):
            name, described, places = as_row(item, "part of a ColumnTransformer", 3)
            fits = isinstance(places, list) and all(type(place) is int and 0 <= place < n for place in places)
            require(fits and len(places) <= n, f"the columns of {name!r:.100} are no list of places")
            dropped = described == {"kind": "drop"}
            step, taken, made = ("drop", None, 0) if dropped else self.part(described, depth)
            require(dropped or places, f"{name!r:.100} has no columns")
            require(
                taken in (None, len(places)), f"{name!r:.100} takes {taken} columns, and gets {len(places)}"
            )
            width = len(places) if made is None else made
            parts.append((name, step, [names[place] for place in places]))
            indices[name], outputs[name], start = places, slice(start, start + width), start + width
        _check_names([name for name, *_ in parts])
        require(start <= MAX_WIDTH, f"a ColumnTransformer makes {start} columns")
        others = [part for part in parts if part[0] == "remainder"]
        named = [part for part in parts if part[0] != "remainder"]
        remainder = data.get("remainder")
        require(remainder in ("drop", "passthrough", "estimator"), f"'remainder' is {remainder!r:.40}")
        if remainder == "estimator":
            remainder = others[0][1] if others else "drop"
        step = ColumnTransformer(named, remainder=remainder, **parameters)
        step.transformers_, step._columns = parts, [places for *_, places in named]
        step._remainder = ("remainder", remainder, others[0][2] if others else [])
        step._transformer_to_input_indices, step.output_indices_ = indices, outputs
        step.sparse_output_ = of_type(data, "sparse", bool)
        step.n_features_in_ = n
        return step, start

    def _name(self, step: Any, data: dict[str, Any], n: int) -> None:
        """Give a step the names of its columns, and the kind of its output."""
        names, output = data.get("names"), data.get("output", "default")
        if names is not None:
            texts = isinstance(names, list) and len(names) == n and all(isinstance(one, str) for one in names)
            require(texts and len(set(names)) == n, f"the names of columns are not {n} different texts")
            step.feature_names_in_ = np.array(names, dtype=object)
        require(output in _OUTPUTS, f"the output of a step is {output!r:.40}")
        if output != "default" and hasattr(step, "set_output"):
            step.set_output(transform=output)


def _check_names(names: list[Any]) -> None:
    fits = all(isinstance(name, str) and name and "__" not in name for name in names)
    require(fits and len(set(names)) == len(names), "the names of steps are not different texts")
