"""The model file: one ``.safetensors`` file with the tensors of the network and one JSON text about the rest.

safetensors, because reading it runs no code and because other tools can open it. `writing` and
`reading` are about the text, `opgrow.common.checksums` about its checksum, `opgrow.common.atomic` about how a
file is written so that an old one is never lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors_numpy
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from ...common.atomic import check_suffix, check_writable, write_atomically
from ...common.checksums import Tensor, check_seal, is_sealed, seal, tensors_in
from ...network.tensors import to_tensors
from ...rows.tables import TableEncoder
from ..base import GrowingEstimator
from ..registry import ESTIMATORS
from .format import MAX_BLOCKS, MAX_TEXT, STEP_TENSORS
from .reading import parse, restore
from .running import running_tensors
from .tensors import check_tensors
from .writing import describe

__all__ = [
    "ModelFile",
    "load",
    "packed",
    "read",
    "save",
]

#: The key of the JSON text in the metadata of the file.
KEY = "opgrow"
#: Bytes of the file's header at most; it holds the text, in which quotation marks take two, and the names and
#: shapes of the tensors.
_MAX_HEADER = 2 * MAX_TEXT
#: Tensors of a file at most: seven for each block, and some of the network.
_MAX_TENSORS = 7 * MAX_BLOCKS + 50
#: Longest explanation of what is wrong with a file.
_MAX_WHY = 300
#: Data types of tensors, as files and as numpy name them.
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8"}


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds.

    Attributes
    ----------
    estimator : the fitted estimator
    target : name of the column that it predicts, or None
    library : the version of opgrow that wrote the file
    pipeline : the pipeline that ends in the estimator, or None
    """

    estimator: GrowingEstimator[Any]
    target: str | None
    library: str
    pipeline: Pipeline | None = None

    @property
    def encoder(self) -> TableEncoder | None:
        """What turns a table into the network's inputs, if the estimator was fitted on one without steps."""
        return self.estimator.table_ if self.pipeline is None else None


def save(
    estimator: GrowingEstimator[Any] | Pipeline,
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    sample: bool = True,
    sums: bool = False,
) -> None:
    """Write a fitted estimator, or a pipeline that ends in one, to one file, as a whole or not at all.

    Parameters
    ----------
    estimator : a fitted estimator of this package, or a sklearn.pipeline.Pipeline that ends in one
        The steps of a pipeline may be scalers, encoders, imputers, selectors, PCA, polynomial features, a
        `opgrow.data.TableEncoder`, `opgrow.WindowFeatures`, and pipelines and column transformers of these;
        others are refused.

        Functions among the parameters of an estimator, its callbacks and a ``random_state`` that is no number
        are not saved, and come back as None. Of its history, the tuning curves and all candidates but the
        best five of each search are left out.
    path : str or path-like
        Where to, a name that ends in ``.safetensors``; a file that is there is replaced.
    target : str, optional
        Name of the column that the estimator predicts.
    sample : bool, default=True
        False leaves out ``sample_``, up to 256 rows of the training data by which exports measure themselves:
        for a model that is given to people who may not see the data.
    sums : bool, default=False
        True adds what ``partial_fit`` and ``grow`` need to go on: for p features of the last layer and C
        outputs 8 (p + 1) (p + C) bytes, and the rows of the buffer unless ``sample`` is False.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.safetensors"
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import HeMLRNClassifier, load
    >>> X, y = load_iris(return_X_y=True)
    >>> HeMLRNClassifier(n_min=10, max_layers=1, random_state=0).fit(X, y).save(path)
    >>> load(path).predict(X[:2])
    array([0, 0])

    A pipeline with its steps:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), HeMLRNClassifier(n_min=10, max_layers=1, random_state=0))
    >>> save(model.fit(X, y), path)
    >>> [name for name, _ in load(path).steps]
    ['standardscaler', 'hemlrnclassifier']
    """
    pipeline = estimator if type(estimator) is Pipeline else None
    if pipeline is not None:
        from .pipelines import describe_pipeline, model_of  # its steps take a while to import

        estimator = model_of(pipeline)
    name = type(estimator).__name__
    if ESTIMATORS.get(name) is not type(estimator):
        passed = f"the class {estimator.__name__}" if isinstance(estimator, type) else name
        raise TypeError(
            f"Only opgrow's own estimators can be saved, and pipelines that end in one, got {passed}."
        )
    if not hasattr(estimator, "network_"):
        raise NotFittedError(f"This {name} is not fitted: call fit before saving it.")
    check_writable(path)
    check_suffix(path, ".safetensors", "model file")
    if sums and estimator.running_ is None:
        raise ValueError(f"this {name} holds no sums: they come with partial_fit or warm_start=True")
    estimator = copy(estimator)
    if not sample:
        estimator.sample_ = None
        estimator.running_ = None if estimator.running_ is None else estimator.running_.without_rows()
    if not sums:
        estimator.running_ = None
    description = describe(estimator)
    if target is not None:
        description["target"] = str(target)
    tensors = to_tensors(estimator.network_)
    if pipeline is not None:
        description["pipeline"], steps = describe_pipeline(pipeline)
        tensors |= steps
    text = json.dumps(description, allow_nan=False, separators=(",", ":"))
    if estimator.intervals_ is not None:
        tensors |= estimator.intervals_.tensors()
    if estimator.running_ is not None:
        tensors |= running_tensors(estimator.running_)
    if estimator.sample_ is not None:
        tensors["sample"] = np.ascontiguousarray(estimator.sample_)
    write_atomically(path, packed(text, tensors))


def packed(text: str, tensors: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a model file: a JSON object as text, its checksum, and tensors."""
    sealed = seal(text, tensors_in(safetensors_numpy.save(dict(tensors))))
    if len(sealed) > MAX_TEXT:
        raise ValueError(
            f"The description of this model has {len(sealed)} characters, and a file holds "
            f"{MAX_TEXT}: shorten the names of its features or classes."
        )
    return safetensors_numpy.save(dict(tensors), metadata={KEY: sealed})


def load(path: str | os.PathLike[str]) -> GrowingEstimator[Any]:
    """Read a model that an estimator's ``save``, ``save`` of this module or ``opgrow fit`` has written.

    No code in the file is run. Its predictions are those of the saved model, bit for bit.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator or sklearn.pipeline.Pipeline
        The fitted estimator, or the pipeline that was saved. An estimator that was fitted on a table has the
        encoder of the table as ``table_``.

    Raises
    ------
    ValueError
        If the file is no model of a known version, is damaged, or uses operators that are not registered.
    FileNotFoundError
        If there is no such file.
    """
    model = read(path, pipelines=True)
    return model.estimator if model.pipeline is None else model.pipeline


def read(path: str | os.PathLike[str], *, pipelines: bool = False) -> ModelFile:
    """Everything in a model file; see `opgrow.load` for what may go wrong.

    ``pipelines`` says whether the caller heeds steps in front of an estimator; otherwise, files that have
    any are refused.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder: expected a model file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is a pipe or a device: expected a model file.")
    try:
        model = _read(path)
    except SafetensorError as error:
        raise ValueError(f"{str(path)!r} is not a complete safetensors file ({_short(error)}).") from error
    except (ValueError, RecursionError) as error:
        why = _short(error).rstrip(".")
        raise ValueError(f"{str(path)!r} is not a model that opgrow can read: {why}.") from error
    if model.pipeline is not None and not pipelines:
        raise ValueError(
            f"{str(path)!r} holds a pipeline of scikit-learn, and this takes an estimator alone: "
            "opgrow.load reads it, and save its last step by itself."
        )
    return model


def _short(error: Exception) -> str:
    """What an error says, on one line: it may quote whatever stands in the file."""
    text = " ".join(str(error).split())
    return text if len(text) <= _MAX_WHY else f"{text[:_MAX_WHY]} [...]"


def _content(path: Path) -> bytes:
    """The bytes of a file, all of the same one, if another process replaces it meanwhile.

    A header that is larger than any of ours is refused before the rest is read.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if _MAX_HEADER < size <= os.fstat(file.fileno()).st_size - 8:
            raise ValueError(f"its header has {size} bytes, and at most {_MAX_HEADER} are allowed")
        file.seek(0)
        return file.read()


def _read(path: Path) -> ModelFile:
    content = _content(path)
    tensors = tensors_in(content)  # which complains of a header that is not valid
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    text = (header.get("__metadata__") or {}).get(KEY)
    if text is None:
        raise ValueError("it has no description of an opgrow model")
    if len(tensors) > _MAX_TENSORS:
        raise ValueError(f"it has {len(tensors)} tensors, and at most {_MAX_TENSORS} are allowed")
    del content
    if is_sealed(text):
        _check(text, tensors)
    data = parse(text)
    steps = [tensor for tensor in tensors if tensor[0].startswith(STEP_TENSORS)]
    tensors = [tensor for tensor in tensors if not tensor[0].startswith(STEP_TENSORS)]
    check_tensors(data, {name: (dtype, list(shape)) for name, dtype, shape, _ in tensors})
    estimator = restore(data, {tensor[0]: _array(tensor) for tensor in tensors})
    pipeline = _pipeline(data.get("pipeline"), steps, estimator)
    return ModelFile(estimator, data.get("target"), str(data.get("library")), pipeline)


def _pipeline(data: Any, tensors: list[Tensor], estimator: GrowingEstimator[Any]) -> Pipeline | None:
    """The pipeline of a file, or None if it holds an estimator alone."""
    if data is None:
        if tensors:
            raise ValueError(f"tensor {tensors[0][0]!r} belongs to no step")
        return None
    strange = next((tensor for tensor in tensors if tensor[1] not in ("F64", "F32", "I64")), None)
    if strange is not None:
        raise ValueError(f"tensor {strange[0]!r} has the data type {strange[1]}")
    from .pipelines import restore_pipeline

    # Copies, as what is read from a file cannot be written to.
    arrays = {tensor[0]: np.array(_array(tensor)) for tensor in tensors}
    return restore_pipeline(data, arrays, estimator, estimator.n_features_in_)


def _check(text: str, tensors: list[Tensor]) -> None:
    """Compare a file with its checksum."""
    try:
        check_seal(text, tensors)
    except ValueError as error:
        raise ValueError(f"it is damaged ({error})") from error


def _array(tensor: Tensor) -> np.ndarray:
    """A tensor of a file, of a type that `check_tensors` has accepted; bfloat16 becomes single precision."""
    _, dtype, shape, data = tensor
    if dtype != "BF16":
        return np.frombuffer(data, _TYPES[dtype]).reshape(shape)
    # Its 16 bits are the upper half of those of single precision.
    upper = np.frombuffer(data, "<u2").astype(np.uint32) << 16
    return upper.view(np.float32).reshape(shape)
