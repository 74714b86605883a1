"""The model file: what goes in comes out, and what should not be in it is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import opgrow
from opgrow import Block, Layer, Network, estimators
from opgrow.common.checksums import seal, tensors_in
from opgrow.estimators import files as persistence
from opgrow.estimators.files import format as record_format
from opgrow.estimators.files import reading as record_reading
from opgrow.estimators.files.format import STEP_FIELDS
from opgrow.growth.events import GrowthStep
from opgrow.growth.search import Candidate
from opgrow.operators import PERCEPTRON, OperatorSet, register_nodal, unregister
from opgrow.rows.tables import TableEncoder
from opgrow.training.scores import Score
from tests.double_precision import answers, assert_as_double_precision_says, assert_labels_of_double_precision
from tests.networks import are_same, randomized

QUICK = {
    "n_min": 6,
    "n_step": 3,
    "learning_rates": (0.01, 0.001, 0.0001),
    "epochs": (3, 2, 1),
    "fine_tune_epochs": 2,
    "max_layers": 1,
    "random_state": 0,
}
ONE_SET = QUICK | {"operators": [PERCEPTRON], "n_jobs": 1}
FIXTURES = Path(__file__).parents[2] / "fixtures"
CLASSES = load_iris(return_X_y=True)
NUMBERS = tuple(array[:150] for array in load_diabetes(return_X_y=True))


def data_for(name: str) -> tuple[np.ndarray, np.ndarray]:
    return CLASSES if name.endswith("Classifier") else NUMBERS


def digest(estimator: Any, x: np.ndarray) -> str:
    """All predictions, bit for bit."""
    content = estimator.predict(x).tobytes()
    if hasattr(estimator, "predict_proba"):
        content += estimator.predict_proba(x).tobytes()
    return hashlib.sha256(content).hexdigest()


def saved_and_loaded(estimator: Any, folder: Path, name: str = "model.safetensors") -> Any:
    estimator.save(folder / name)
    return opgrow.load(folder / name)


def as_saved(history: list[GrowthStep]) -> list[GrowthStep]:
    """Steps without their curves, and with the best five of their candidates."""
    return [dataclasses.replace(step, curve=[], candidates=step.candidates[:5]) for step in history]


@pytest.fixture(scope="module")
def fitted() -> Any:
    return opgrow.HeMLGOPClassifier(**QUICK).fit(*CLASSES)


@pytest.fixture
def path(fitted: Any, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def contents(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with safe_open(path, framework="np") as file:
        record = json.loads(file.metadata()["opgrow"])
        record.pop("checksum", None)
        return record, {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118


def rewrite(path: Path, record: Any, tensors: dict[str, np.ndarray]) -> None:
    """A file with this record and the checksum that it should have, or with this text as it is."""
    if isinstance(record, str):
        save_file(tensors, path, metadata={"opgrow": record})
    else:
        path.write_bytes(persistence.packed(json.dumps(record), tensors))


# --- what goes in comes out ---


def test_every_estimator_comes_back_and_predicts_the_same_bits_in_a_new_process(tmp_path: Path) -> None:
    expected = {}
    for name in estimators.__all__:
        x, y = data_for(name)
        cls = getattr(estimators, name)
        quick = {key: value for key, value in QUICK.items() if key in cls._get_param_names()}
        estimator = cls(**quick).fit(x, y)
        loaded = saved_and_loaded(estimator, tmp_path, f"{name}.safetensors")
        assert type(loaded) is cls
        assert loaded.get_params() == estimator.get_params()
        assert loaded.history_ == as_saved(estimator.history_)
        assert are_same(loaded.network_, estimator.network_)
        expected[name] = digest(estimator, x)
    script = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import opgrow
from tests.estimators.files.test_model_files import data_for, digest
found = {}
for path in Path(sys.argv[2]).glob("*.safetensors"):
    model = opgrow.load(path)
    assert type(model).__name__ == path.stem
    found[path.stem] = digest(model, data_for(path.stem)[0])
print(json.dumps(found))
"""
    run = subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parents[3]), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == expected


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "ünsure"]),
        np.array(["no", "yes", "perhaps"], dtype=object),
        np.array([1, 2, 3]),
        np.array([-5, 0, 7], dtype=np.int32),
        np.array([250, 3, 9], dtype=np.uint8),
        np.array([False, True]),
        np.array([-1.0, 0.0, 2.0]),
        np.array([1.0, 2.0], dtype=np.float32),
    ],
    ids=lambda labels: f"{labels.dtype}-{len(labels)}",
)
def test_classes_keep_their_kind(labels: np.ndarray, tmp_path: Path) -> None:
    x, codes = CLASSES
    estimator = opgrow.HeMLRNClassifier(**ONE_SET).fit(x, labels[codes % len(labels)])
    loaded = saved_and_loaded(estimator, tmp_path)
    assert loaded.classes_.dtype == estimator.classes_.dtype
    assert loaded.classes_.tolist() == estimator.classes_.tolist()
    assert loaded.predict(x).tolist() == estimator.predict(x).tolist()


@pytest.mark.parametrize("shape", [(150,), (150, 1), (150, 2)])
def test_regression_keeps_the_shape_of_its_targets(shape: tuple[int, ...], tmp_path: Path) -> None:
    x, y = NUMBERS
    target = y if len(shape) == 1 else np.column_stack([y, x[:, 0]])[:, : shape[1]]
    estimator = opgrow.HeMLRNRegressor(**ONE_SET).fit(x, target)
    loaded = saved_and_loaded(estimator, tmp_path)
    assert loaded.predict(x).shape == shape
    assert np.array_equal(loaded.predict(x), estimator.predict(x))
    assert (loaded.n_targets_, loaded.single_target_) == (estimator.n_targets_, estimator.single_target_)


def test_feature_names_come_back(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(CLASSES[0], columns=["a", "b", "c d", "größe"])
    estimator = opgrow.HeMLRNClassifier(**ONE_SET).fit(frame, CLASSES[1])
    loaded = saved_and_loaded(estimator, tmp_path)
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c d", "größe"]
    assert np.array_equal(loaded.predict(frame), estimator.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "z"}))


def test_parameters_come_back_as_they_were(tmp_path: Path) -> None:
    parameters = {
        **QUICK,
        "operators": [PERCEPTRON, ("gaussian", "sum", "tanh"), OperatorSet("dog", "maximum", "elu")],
        "dropout": [0.1, 0.2],
        "ridge": np.float64(0.5),
        "n_draws": np.int64(2),
        "block_threshold": -np.inf,
        "max_neurons": 12,
        "class_weight": {0: 1.0, 1: 2.0, 2: 1.5},
        "max_norm": None,
    }
    estimator = opgrow.HeMLRNClassifier(**parameters).fit(*CLASSES)
    loaded = saved_and_loaded(estimator, tmp_path)
    assert loaded.get_params() == estimator.get_params()
    assert isinstance(loaded.epochs, tuple)
    assert isinstance(loaded.dropout, list)
    assert isinstance(loaded.operators[0], OperatorSet)


def test_what_json_cannot_hold_comes_back_as_none(tmp_path: Path) -> None:
    def loss(outputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (outputs - target).abs().sum(dim=1)

    given = {"loss": loss, "random_state": np.random.RandomState(0), "callbacks": [opgrow.Callback()]}
    estimator = opgrow.HeMLGOPClassifier(**(ONE_SET | given)).fit(*CLASSES)
    loaded = saved_and_loaded(estimator, tmp_path)
    assert [loaded.get_params()[name] for name in given] == [None, None, None]
    assert digest(loaded, CLASSES[0]) == digest(estimator, CLASSES[0])


def test_history_comes_back_without_curves_and_with_the_best_five_candidates(fitted: Any, path: Path) -> None:
    assert len(fitted.history_[0].candidates) > 5
    assert opgrow.load(path).history_ == as_saved(fitted.history_)


def test_the_tensors_of_a_file_are_those_of_the_torch_module(fitted: Any, path: Path) -> None:
    module, (_, tensors) = fitted.network_.to_torch(), contents(path)
    tensors.pop("sample")
    state = module.state_dict()
    assert {name: (tuple(t.shape), str(t.dtype)) for name, t in state.items()} == {
        name: (array.shape, f"torch.{array.dtype}") for name, array in tensors.items()
    }
    assert all(np.array_equal(state[name].numpy(), array) for name, array in tensors.items())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_are_read_as_single_precision(dtype: torch.dtype, fitted: Any, path: Path) -> None:
    description, arrays = contents(path)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    for name, tensor in tensors.items():
        if tensor.dtype == torch.float32:
            tensors[name] = tensor.to(dtype)
    save_tensors(tensors, path)
    text = seal(json.dumps(description), tensors_in(path.read_bytes()))
    save_tensors(tensors, path, metadata={"opgrow": text})
    network = opgrow.load(path).network_
    assert network.head.weight.dtype == np.float32
    np.testing.assert_array_equal(network.head.weight, tensors["head.weight"].float().numpy().T)
    for got, wanted in zip(network.layers[0], fitted.network_.layers[0], strict=True):
        np.testing.assert_array_equal(got.weight, torch.from_numpy(wanted.weight).to(dtype).float().numpy())
    loose = 0.1 if dtype == torch.bfloat16 else 0.02
    np.testing.assert_allclose(
        network.outputs(CLASSES[0]), fitted.network_.outputs(CLASSES[0]), atol=10 * loose
    )


def test_a_loaded_model_can_be_fitted_again(fitted: Any, path: Path) -> None:
    again = opgrow.load(path).fit(*CLASSES)
    assert digest(again, CLASSES[0]) == digest(fitted, CLASSES[0])


def test_a_file_keeps_the_encoder_of_a_table(tmp_path: Path) -> None:
    x, y = CLASSES
    table = {"size": x[:, 0], "colour": [("red", "blue", None)[code] for code in y], "width": x[:, 1]}
    wishes = TableEncoder(max_categories=7, text=["width"], gaps="fill")
    estimator = opgrow.HeMLRNClassifier(**ONE_SET, table=wishes).fit(table, y)
    path = tmp_path / "model.safetensors"
    persistence.save(estimator, path, target="kind")
    loaded = opgrow.load(path)
    assert type(loaded) is opgrow.HeMLRNClassifier
    assert np.array_equal(loaded.predict_proba(table), estimator.predict_proba(table))
    assert loaded.feature_names_in_.tolist() == ["size", "colour", "width"]
    assert loaded.n_features_in_ == 3 < loaded.network_.n_inputs
    assert loaded.table_.to_dict() == estimator.table_.to_dict()
    assert loaded.table.get_params() == wishes.get_params() | {"text": ("width",)}
    model = persistence.read(path)
    assert (model.target, model.library) == ("kind", opgrow.__version__)
    assert np.array_equal(loaded.fit(table, y).predict_proba(table), estimator.predict_proba(table))


def test_a_file_of_format_4_with_an_encoder_is_an_estimator_that_takes_tables(
    fitted: Any, path: Path
) -> None:
    names = ["a", "b", "c"]
    columns = [{"name": name, "kind": "number", "median": 1.0} for name in names]
    colour = {"name": "d", "kind": "text", "categories": ["red"], "missing": False}
    record, tensors = contents(path)
    encoder = {"format": 1, "max_categories": 100, "columns": [*columns, colour]}
    rewrite(path, record | {"format": 4, "table": encoder}, tensors)
    loaded, x = opgrow.load(path), CLASSES[0].copy()
    table = {name: x[:, i] for i, name in enumerate(names)} | {"d": ["red"] * len(x)}
    x[:, 3] = 1.0
    assert np.array_equal(loaded.predict_proba(table), fitted.predict_proba(x))
    assert loaded.feature_names_in_.tolist() == [*names, "d"]


def test_saving_twice_gives_the_same_bytes(fitted: Any, path: Path) -> None:
    first = path.read_bytes()
    opgrow.load(path).save(path)
    assert path.read_bytes() == first


# --- saving ---


def test_only_fitted_estimators_of_the_package_are_saved(tmp_path: Path) -> None:
    class Mine(opgrow.HeMLGOPClassifier):
        pass

    path = tmp_path / "model.safetensors"
    with pytest.raises(
        NotFittedError, match="^This HeMLGOPClassifier is not fitted: call fit before saving it.$"
    ):
        opgrow.HeMLGOPClassifier().save(path)
    for other in (LogisticRegression(), Mine()):
        with pytest.raises(TypeError, match=f"Only opgrow's own .* got {type(other).__name__}"):
            persistence.save(other, path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    function: str, error: BaseException, fitted: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        # What is about to be moved must already be complete, and beside its place.
        assert len(list(path.parent.iterdir())) == 2
        raise error

    before = path.read_bytes()
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(error)):
        opgrow.HeMLRNClassifier(**ONE_SET).fit(*CLASSES).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_model_is_never_seen_in_parts(fitted: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, seen = os.replace, []

    def spy(source: Any, target: Any) -> None:
        seen.append((digest(opgrow.load(source), CLASSES[0]), Path(target)))
        replace(source, target)

    monkeypatch.setattr(os, "replace", spy)
    fitted.save(path)
    assert seen == [(digest(fitted, CLASSES[0]), path.resolve())]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_saved_files_have_ordinary_permissions_and_links_are_followed(fitted: Any, tmp_path: Path) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    place, link = tmp_path / "models" / "first.safetensors", tmp_path / "latest.safetensors"
    place.parent.mkdir()
    link.symlink_to(place)
    fitted.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(place.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def test_places_that_cannot_be_written_to(fitted: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a file that can be replaced"):
        fitted.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        fitted.save(tmp_path / "nowhere" / "model.safetensors")
    with pytest.raises(ValueError, match=r"^The model file must end in '\.safetensors', got 'model\.pkl'\.$"):
        fitted.save(tmp_path / "model.pkl")
    assert not list(tmp_path.iterdir())


# --- broken and hostile files ---


def set_in(record: Any, *keys: Any) -> Any:
    """A change of the record: the last key's value becomes what follows it."""
    *way, last, value = keys
    for key in way:
        record = record[key]
    record[last] = value
    return None


BROKEN: dict[str, tuple[Any, str]] = {
    "not JSON": (lambda r: "{'format': 1}", "description is not valid JSON"),
    "JSON of another kind": (lambda r: "[1]", "not a JSON object"),
    "JSON without end": (lambda r: "[" * 100_000, "description is not valid JSON"),
    "constant": (lambda r: '{"format": NaN}', "NaN is no JSON number"),
    "no version": (lambda r: r.pop("format") and None, "format version is None"),
    "future version": (lambda r: set_in(r, "format", 6), "in format 6, and opgrow .* the formats 1 to 5"),
    "version 0": (lambda r: set_in(r, "format", 0), "in format 0, and opgrow .* the formats 1 to 5"),
    "true as version": (lambda r: set_in(r, "format", True), "format version is True"),
    "unknown estimator": (
        lambda r: set_in(r, "estimator", "os.system"),
        "'os.system' is not one of opgrow's",
    ),
    "unknown parameter": (lambda r: set_in(r, "parameters", "speed", 9), "no parameter 'speed'"),
    "parameter of unknown form": (lambda r: set_in(r, "parameters", "n_min", {"code": "x"}), "form 'code'"),
    "unregistered operator": (
        lambda r: set_in(r, "layers", 0, 0, "operators", ["cubic", "sum", "tanh"]),
        "uses the nodal operator 'cubic', which is not registered here",
    ),
    "operators of a wrong type": (lambda r: set_in(r, "layers", 0, 0, "operators", "a/b/c"), "three names"),
    "no layers": (lambda r: r.pop("layers") and None, "'layers' is missing"),
    "empty layer": (lambda r: set_in(r, "layers", [[]]), "layer 1 is not a list of blocks"),
    "fewer layers": (
        lambda r: r.update(layers=[], members=None),
        "does not belong to the declared topology",
    ),
    "more layers": (
        lambda r: r.update(layers=[*r["layers"], r["layers"][0]], members=None),
        "\\d+ outputs|tensor .* is missing",
    ),
    "fewer layers than members": (
        lambda r: set_in(r, "layers", []),
        "members have .* the network has \\[\\]",
    ),
    "more layers than members": (
        lambda r: r["layers"].append(r["layers"][0]),
        r"members have \[(\d+)\] blocks in their layers, and the network has \[\1, \1\]",
    ),
    "huge block": (lambda r: set_in(r, "layers", 0, 0, "n_neurons", 2**45), "has shape .* the topology says"),
    "huge input": (lambda r: set_in(r, "n_inputs", 2**60), "4 inputs, and the layer before it"),
    "huge output": (lambda r: set_in(r, "n_outputs", 10**30), "has shape .* the topology says"),
    "negative size": (lambda r: set_in(r, "n_outputs", -3), "'n_outputs' .* is -3"),
    "fractional size": (lambda r: set_in(r, "layers", 0, 0, "n_neurons", 6.0), "'n_neurons' .* is 6.0"),
    "too few classes": (
        lambda r: r["classes"]["values"].pop() and None,
        "2 classes do not go with 3 outputs",
    ),
    "equal classes": (lambda r: set_in(r, "classes", "values", [1, 1, 2]), "two classes are the same"),
    "mixed classes": (lambda r: set_in(r, "classes", "values", [1, "b", 2]), "not a list of int"),
    "class too large": (lambda r: set_in(r, "classes", "values", [1, 2, 2**70]), "does not fit into int64"),
    "classes of objects": (lambda r: set_in(r, "classes", "type", "O"), "type 'O' are not known"),
    "no classes": (lambda r: set_in(r, "classes", None), "'classes' is of type NoneType"),
    "unknown loss": (lambda r: set_in(r, "loss", "hinge"), "'loss' is 'hinge'"),
    "feature names": (lambda r: set_in(r, "feature_names", ["a"]), "'feature_names' must be 4 texts"),
    "history": (lambda r: set_in(r, "history", 0, "score", "good"), "a score is not a list of 3"),
    "encoder": (lambda r: set_in(r, "table", {"format": 1}), "description of a table encoder is not valid"),
    "encoder of another size": (
        lambda r: r.update(table=TableEncoder().fit({"a": [1, 2]}).to_dict(), table_names=True),
        "encoder makes 1 inputs, and the network takes 4",
    ),
    "target": (lambda r: set_in(r, "target", 3), "name of its target is 3"),
    "version of the library": (lambda r: set_in(r, "library", ["x"]), r"version that wrote it is \['x'\]"),
    "half a character": (lambda r: set_in(r, "target", "\ud800"), "text that is not valid Unicode"),
    "long label": (
        lambda r: r["classes"].update(kind="str", type="str", values=["x" * 70_000, "y", "z"]),
        "a class label has 70000 characters",
    ),
    "deep parameter": (lambda r: set_in(r, "parameters", "ridge", nested(30)), "more than 20 deep"),
    "deeper parameter": (lambda r: set_in(r, "parameters", "ridge", nested(400)), "more than 20 deep"),
    "number without end": (lambda r: set_in(r, "history", 0, "improvement", 10**400), "has 401 digits"),
    "bound of inputs": (lambda r: set_in(r, "input_bound", -1), "'input_bound' is -1.0, expected"),
    "bound in words": (lambda r: set_in(r, "input_bound", "wide"), "bound of the inputs is 'wide'"),
    "bound without end": (lambda r: set_in(r, "input_bound", 10**400), "bound of the inputs has 401 digits"),
    "text without end": (lambda r: set_in(r, "loss", "x" * 10_000), r"'loss' is 'xxx.{,300} \[\.\.\.\]\."),
}


def nested(depth: int) -> list[Any]:
    actual: list[Any] = []
    for _ in range(depth):
        actual = [actual]
    return actual


@pytest.mark.parametrize("case", BROKEN)
def test_an_edited_description_is_refused_in_one_sentence(case: str, path: Path) -> None:
    change, message = BROKEN[case]
    record, tensors = contents(path)
    record.update(feature_names=None)
    replaced = change(record)
    rewrite(path, record if replaced is None else replaced, tensors)
    assert_refused_in_one_sentence(path, message)


def test_a_bound_that_is_a_large_integer_is_a_number(fitted: Any, path: Path) -> None:
    record, tensors = contents(path)
    rewrite(path, record | {"input_bound": 10**30}, tensors)
    assert opgrow.load(path).predict(CLASSES[0]).shape == (150,)


def assert_refused_in_one_sentence(path: Path, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        opgrow.load(path)
    text = str(caught.value)
    assert text.startswith(f"{str(path)!r} is not a model that opgrow can read: ")
    assert text.endswith(".")
    assert "\n" not in text


TENSORS: dict[str, tuple[Any, str]] = {
    "wrong shape": (
        lambda t: t.update({"head.bias": np.zeros(7, np.float32)}),
        r"'head.bias' has shape \(7,\)",
    ),
    "missing": (lambda t: t.pop("head.bias") is None, "tensor 'head.bias' is missing"),
    "extra": (lambda t: t.update(more=np.zeros(1, np.float32)), "tensor 'more' does not belong"),
    "integers": (lambda t: t.update({"head.bias": np.zeros(3, np.int32)}), "data type I32"),
    "mixed": (lambda t: t.update({"head.bias": np.zeros(3)}), "data type F64"),
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensors_that_do_not_fit_are_refused(case: str, path: Path) -> None:
    change, message = TENSORS[case]
    record, tensors = contents(path)
    change(tensors)
    rewrite(path, record, tensors)
    with pytest.raises(ValueError, match=message):
        opgrow.load(path)


def places(data: Any) -> list[tuple[Any, ...]]:
    """The ways to every value inside plain data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [way for key, value in items for way in [(key,), *((key, *rest) for rest in places(value))]]


def test_no_edit_of_the_description_does_more_than_load_or_be_refused(path: Path) -> None:
    record, tensors = contents(path)
    record["history"] = record["history"][:1]
    record["history"][0]["candidates"] = record["history"][0]["candidates"][:1]
    assert outcomes_of_edits(path, record, tensors) == {"loaded", "refused"}


def outcomes_of_edits(path: Path, record: dict[str, Any], tensors: dict[str, np.ndarray]) -> set[str]:
    text, outcomes = json.dumps(record), set()
    strange = [
        None,
        True,
        -1,
        0,
        1e308,
        "x",
        "",
        [],
        [[]],
        {},
        {"dict": [[[], 1]]},
        {"float": 3},
        {"tuple": 1},
    ]
    for way in places(record):
        for value in [*strange, "remove"]:
            edited = json.loads(text)
            inner = edited
            for key in way[:-1]:
                inner = inner[key]
            if value == "remove":
                del inner[way[-1]]
            else:
                inner[way[-1]] = value
            rewrite(path, edited, tensors)
            try:
                opgrow.load(path)
                outcomes.add("loaded")
            except ValueError as error:
                outcomes.add("refused" if "\n" not in str(error) else f"in several lines: {error}")
    return outcomes


def test_files_that_are_no_models(path: Path) -> None:
    whole = path.read_bytes()
    for length in (0, 7, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is not a complete safetensors file"):
            opgrow.load(path)
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    with pytest.raises(ValueError, match="is not a complete safetensors file"):
        opgrow.load(path)
    path.write_bytes(b"\xff" * 7 + b"\x7f" + b"{}")  # a header of 2^63 bytes
    with pytest.raises(ValueError, match="is not a complete safetensors file"):
        opgrow.load(path)
    save_file({"weight": np.zeros(2)}, path)
    with pytest.raises(ValueError, match="has no description of an opgrow model"):
        opgrow.load(path)
    with pytest.raises(ValueError, match="is a folder"):
        opgrow.load(path.parent)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        opgrow.load(path.parent / "nothing")


# --- checksums ---


def test_no_flipped_bit_goes_unnoticed(path: Path) -> None:
    """One bit in every part of the file, also where the numbers remain plausible."""
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    places = {*range(0, header, 97), *range(header - 120, header), *range(header, len(whole), 31)}
    for place in sorted(places):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="is not a (model|complete)"):
            opgrow.load(path)


def test_what_was_exchanged_or_left_out_is_noticed(path: Path) -> None:
    record, tensors = contents(path)
    text = json.dumps(record | {"library": "9.9"})
    sealed = persistence.packed(text, tensors)
    path.write_bytes(sealed.replace(b"9.9", b"9.8"))
    assert_refused_in_one_sentence(path, "it is damaged .its content does not match its checksum")
    rewrite(path, text, tensors)
    assert_refused_in_one_sentence(path, "it has no checksum")
    path.write_bytes(sealed.replace(b'\\"format\\": 5', b'\\"format\\": 7'))  # by one bit
    assert path.read_bytes() != sealed
    assert_refused_in_one_sentence(path, "it is damaged")
    first, second = "input_mean", "input_scale"  # of the same shape
    swapped = tensors | {first: tensors[second], second: tensors[first]}
    path.write_bytes(sealed)
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    save_file(swapped, path, metadata=metadata)
    assert_refused_in_one_sentence(path, "it is damaged")


# --- networks of the other methods, and files of the first format ---

RELU = OperatorSet("multiplication", "sum", "relu")
IDENTITY = OperatorSet("multiplication", "sum", "identity")


def plain_network() -> Network:
    """PMLP and the methods of the first format."""
    return Network(4, 3, [Layer([Block(4, 3, PERCEPTRON), Block(4, 2, RELU)]), Layer([Block(5, 4, RELU)])])


def pop_network() -> Network:
    head = OperatorSet("harmonic", "correlation1", "elu")
    return Network(4, 3, [Layer([Block(4, 5, OperatorSet("dog", "sum", "tanh"))])], head_operators=head)


def pln_network() -> Network:
    layers = [
        Layer([Block(n, 6, RELU, norm=None, bias=False), Block(n, 2, RELU, norm="unit", bias=False)])
        for n in (4, 8)
    ]
    return Network(4, 3, layers)


def bls_network() -> Network:
    windows = Layer([Block(4, 3, IDENTITY, bias=False), Block(4, 2, IDENTITY)])
    nodes = Layer([Block(3, 4, PERCEPTRON, norm=None), Block(5, 2, PERCEPTRON, norm=None)])
    return Network(4, 3, [windows, nodes], broad=True)


def broad_pop_network() -> Network:
    return Network(4, 3, [Layer([Block(4, 5, RELU)])], head_operators=PERCEPTRON, broad=True)


NETWORKS = [plain_network, pop_network, pln_network, bls_network, broad_pop_network]


def fitted_with(make: Any) -> Any:
    """A classifier around a network with arbitrary parameters and statistics, as after a fit."""
    network = randomized(make())
    estimator = opgrow.HeMLRNClassifier(random_state=0)
    estimator.network_, estimator.history_, estimator.loss_ = network, [], "cross_entropy"
    estimator.classes_, estimator.n_features_in_ = np.arange(network.n_outputs), network.n_inputs
    return estimator


@pytest.mark.parametrize("make", NETWORKS)
def test_every_kind_of_network_comes_back(make: Any, tmp_path: Path) -> None:
    estimator = fitted_with(make)
    loaded = saved_and_loaded(estimator, tmp_path)
    assert digest(loaded, CLASSES[0]) == digest(estimator, CLASSES[0])
    network, twin = estimator.network_, loaded.network_
    assert repr(twin) == repr(network)
    assert twin.describe() == network.describe()
    assert twin.digest() == network.digest()
    for layer, other in zip(network.layers, twin.layers, strict=True):
        for block, copy in zip(layer, other, strict=True):
            assert (copy.n_inputs, copy.normalization, copy.has_bias) == (
                block.n_inputs,
                block.normalization,
                block.has_bias,
            )
            assert np.array_equal(copy.bias, block.bias)
            assert copy.bias.flags.writeable
    before = (tmp_path / "model.safetensors").read_bytes()
    loaded.save(tmp_path / "model.safetensors")
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_regression_with_a_head_of_neurons_comes_back(tmp_path: Path) -> None:
    constants = {"output_mean": np.array([3.0]), "output_scale": np.array([2.0])}
    layers = [Layer([Block(10, 3, RELU, norm=None)])]
    estimator = opgrow.HeMLRNRegressor(random_state=0)
    estimator.network_ = Network(10, 1, layers, **constants, head_operators=PERCEPTRON)
    estimator.history_, estimator.loss_, estimator.n_features_in_ = [], "mse", 10
    estimator.n_targets_, estimator.single_target_ = 1, True
    loaded = saved_and_loaded(estimator, tmp_path)
    assert digest(loaded, NUMBERS[0]) == digest(estimator, NUMBERS[0])
    assert loaded.network_.output_mean.tolist() == [3.0]


def block_edit(key: str, value: Any, layer: int = 0, block: int = 0) -> Any:
    return lambda r: set_in(r, "layers", layer, block, key, value)


WRONG: dict[str, tuple[Any, Any, str]] = {
    "unknown norm": (
        plain_network,
        block_edit("norm", "layer"),
        "'norm' of block 1 of layer 1 is 'layer', expected 'batch', 'unit' or null",
    ),
    "norm of a wrong type": (plain_network, block_edit("norm", True), "'norm' of .* is True"),
    "norm as a list": (plain_network, block_edit("norm", ["batch"]), "'norm' of .* is \\['batch'\\]"),
    "no norm": (plain_network, lambda r: r["layers"][0][0].pop("norm") and None, "'norm' of .* is missing"),
    "number as bias": (plain_network, block_edit("bias", 1), "'bias' of block 1 of layer 1 is 1, expected"),
    "null as bias": (plain_network, block_edit("bias", None), "'bias' of block 1 of layer 1 is None"),
    "no bias": (plain_network, lambda r: r["layers"][0][0].pop("bias") and None, "'bias' of .* is missing"),
    "unit norm with bias": (pln_network, block_edit("bias", True, 0, 1), "norm 'unit' and a bias"),
    "bias that the file lacks": (
        pln_network,
        block_edit("bias", True),
        "tensor 'layers.0.blocks.0.bias' is missing",
    ),
    "bias too many": (
        plain_network,
        block_edit("bias", False),
        "tensor 'layers.0.blocks.0.bias' does not belong",
    ),
    "norm that the file lacks": (
        pln_network,
        block_edit("norm", "batch"),
        "tensor 'layers.0.blocks.0.norm.*' is missing",
    ),
    "norm too many": (plain_network, block_edit("norm", None), "tensor '.*norm.*' does not belong"),
    "number as broad": (
        bls_network,
        lambda r: set_in(r, "broad", 1),
        "'broad' is of type int, expected bool",
    ),
    "no broad": (bls_network, lambda r: r.pop("broad") and None, "'broad' is missing"),
    "broad, and the head is not": (
        plain_network,
        lambda r: set_in(r, "broad", True),
        r"'head.weight' has shape \(3, 4\), and the topology says \(3, 9\)",
    ),
    "narrow block, and not broad": (
        bls_network,
        lambda r: set_in(r, "broad", False),
        "block 1 of layer 2 has 3 inputs, and the layer before it 5 outputs",
    ),
    "narrow block in the first layer": (
        bls_network,
        block_edit("n_inputs", 3),
        "block 1 of layer 1 has 3 inputs, and the layer before it 4 outputs",
    ),
    "wide block": (
        bls_network,
        block_edit("n_inputs", 6, 1, 1),
        "block 2 of layer 2 has 6 inputs, and the layer before it 5 outputs",
    ),
    "narrower than its tensor": (
        bls_network,
        block_edit("n_inputs", 4, 1, 1),
        r"'layers.1.blocks.1.weight' has shape \(5, 2\), and the topology says \(4, 2\)",
    ),
    "no head": (pop_network, lambda r: r.pop("head") and None, "'head' is missing"),
    "linear head": (
        pop_network,
        lambda r: set_in(r, "head", None),
        r"'head.weight' has shape \(5, 3\), and the topology says \(3, 5\)",
    ),
    "head of neurons": (
        plain_network,
        lambda r: set_in(r, "head", ["dog", "sum", "tanh"]),
        r"'head.weight' has shape \(3, 4\), and the topology says \(4, 3\)",
    ),
    "head of unregistered neurons": (
        pop_network,
        lambda r: set_in(r, "head", ["dog", "median", "tanh"]),
        "uses the pool operator 'median', which is not registered here",
    ),
    "head in words": (pop_network, lambda r: set_in(r, "head", "linear"), "is not a list of three names"),
    "head as a truth value": (pop_network, lambda r: set_in(r, "head", False), "not a list of three names"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_edited_kind_of_network_is_refused_in_one_sentence(case: str, tmp_path: Path) -> None:
    make, change, message = WRONG[case]
    path = tmp_path / "model.safetensors"
    fitted_with(make).save(path)
    record, tensors = contents(path)
    change(record)
    rewrite(path, record, tensors)
    assert_refused_in_one_sentence(path, message)


@pytest.mark.parametrize("make", NETWORKS)
def test_no_edit_of_a_network_does_more_than_load_or_be_refused(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    fitted_with(make).save(path)
    record, tensors = contents(path)
    record["parameters"] = {}
    assert outcomes_of_edits(path, record, tensors) == {"loaded", "refused"}


@pytest.mark.cpu
def test_models_of_format_1_are_read_and_written_in_format_5(tmp_path: Path) -> None:
    expected = np.load(FIXTURES / "format1.npz")
    path = tmp_path / "model.safetensors"
    for kind in ("classifier", "regressor"):
        old = FIXTURES / f"format1-{kind}.safetensors"
        assert contents(old)[0]["format"] == 1
        model = opgrow.load(old)
        model.save(path)
        assert contents(path)[0]["format"] == 5
        again = opgrow.load(path)
        assert digest(again, expected[f"{kind}_inputs"]) == digest(model, expected[f"{kind}_inputs"])
        assert again.history_ == model.history_ != []
        x = expected[f"{kind}_inputs"]
        if kind == "classifier":
            assert_labels_of_double_precision(model, x, model.predict(x), expected["classifier_labels"])
            then = expected["classifier_probabilities"]
        else:
            then = expected["regressor_predictions"].reshape(len(x), -1)
        assert_as_double_precision_says(model, x, answers(model, x), then)


def test_limits_of_features_come_back_and_files_may_lack_them(tmp_path: Path) -> None:
    x, y = NUMBERS
    model = opgrow.HeMLRNRegressor(**ONE_SET).fit(x, y)
    again = saved_and_loaded(model, tmp_path)
    assert again.network_.head_low.dtype == np.float32
    assert are_same(again.network_, model.network_)
    path = tmp_path / "model.safetensors"
    record, tensors = contents(path)
    for name in ("head_low", "head_high"):
        del tensors[name]
    assert record.pop("head_limits") is True
    rewrite(path, record, tensors)
    assert opgrow.load(path).network_.head_low is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r, t: t.update(head_low=t["head_low"][1:]), "tensor 'head_low' has shape"),
        (lambda r, t: t.pop("head_high"), "tensor 'head_high' is missing"),
        (lambda r, t: t["head_low"].fill(np.nan), "'head_low' is above 'head_high', or one of them is no"),
        (lambda r, t: t["head_high"].fill(np.nan), "'head_low' is above 'head_high', or one of them is no"),
        (lambda r, t: t.update(head_low=t["head_high"] + 1), "'head_low' is above 'head_high'"),
        (lambda r, t: r.update(head_limits=1), "'head_limits' is of type int, expected bool"),
        (lambda r, t: r.pop("head_limits"), "tensor 'head_(low|high)' does not belong"),
    ],
)
def test_limits_of_features_that_cannot_be_are_refused(change: Any, message: str, tmp_path: Path) -> None:
    model = opgrow.HeMLRNRegressor(**ONE_SET).fit(*NUMBERS)
    path = tmp_path / "model.safetensors"
    model.save(path)
    record, tensors = contents(path)
    change(record, tensors)
    rewrite(path, record, tensors)
    with pytest.raises(ValueError, match=message):
        opgrow.load(path)


def test_heads_of_neurons_have_no_limits_of_features(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    opgrow.POPRegressor(widths=(3,), operators=ONE_SET["operators"], random_state=0).fit(*NUMBERS).save(path)
    record, tensors = contents(path)
    assert "head_limits" not in record
    record["head_limits"] = True
    tensors |= {name: np.zeros(3, np.float32) for name in ("head_low", "head_high")}
    rewrite(path, record, tensors)
    with pytest.raises(ValueError, match="'head_limits' are those of a linear head"):
        opgrow.load(path)


def test_models_of_format_3_say_nothing_of_members(path: Path) -> None:
    record, tensors = contents(path)
    assert len(record.pop("members")) > 1
    assert record.pop("intervals") is None
    expected = opgrow.load(path).network_.outputs(CLASSES[0])
    path.write_bytes(persistence.packed(json.dumps(record | {"format": 3}), tensors))
    again = opgrow.load(path)
    assert again.network_.members is None  # in one layer it makes no difference whose a block is
    assert again.intervals_ is None
    np.testing.assert_array_equal(again.network_.outputs(CLASSES[0]), expected)


@pytest.mark.cpu
@pytest.mark.parametrize("kind", ["average", "population", "broad"])
def test_models_of_format_2_are_read(kind: str) -> None:
    expected = np.load(FIXTURES / "format2.npz")
    path = FIXTURES / f"format2-{kind}.safetensors"
    assert contents(path)[0]["format"] == 2
    model = opgrow.load(path)
    x = expected[f"{kind}_inputs"]
    then = expected[f"{kind}_outputs"].reshape(len(x), -1)
    assert_as_double_precision_says(model, x, answers(model, x), then)


def test_format_1_has_nothing_of_format_2(tmp_path: Path) -> None:
    old, path = FIXTURES / "format1-classifier.safetensors", tmp_path / "model.safetensors"
    record, tensors = contents(old)
    record.update(head=["dog", "sum", "tanh"], broad=True)
    record["layers"][0][0].update(norm="unit", bias=False)
    rewrite(path, record, tensors)
    assert repr(opgrow.load(path).network_) == repr(opgrow.load(old).network_)
    for layers in (3, [3], [[3]], None):
        rewrite(path, record | {"layers": layers}, tensors)
        assert_refused_in_one_sentence(path, "layer")


# --- the history ---

SPECIAL = {"score", "operator_set", "head_operators", "candidates", "curve"}


def full_step() -> GrowthStep:
    """A step in which no plain field has its default value."""
    made = {str: "layer", int: 7, bool: True, float: 0.25}
    plain = {name: made[kind] for name, (kind, _) in STEP_FIELDS.items()}
    candidates = [
        Candidate(PERCEPTRON, 1.0, 0.5, 0.25, 0.125),
        Candidate(PERCEPTRON, 1.0, 0.0, 0.25, 0.125, head_operators=RELU),
    ]
    sets = {"operator_set": PERCEPTRON, "head_operators": RELU}
    return GrowthStep(**plain, **sets, score=Score(0.5, 0.25, True), candidates=candidates)


def test_every_field_of_a_step_is_saved(tmp_path: Path) -> None:
    """A field of a new type needs its own lines in `opgrow.estimators.files.writing`."""
    assert {field.name for field in dataclasses.fields(GrowthStep)} == set(STEP_FIELDS) | SPECIAL
    estimator = fitted_with(plain_network)
    optional = {name: None for name, (_, null) in STEP_FIELDS.items() if null}
    assert "improvement" in optional
    bare = dataclasses.replace(full_step(), **optional, operator_set=None, head_operators=None)
    estimator.history_ = [full_step(), bare]
    assert saved_and_loaded(estimator, tmp_path).history_ == estimator.history_


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        (("head_operators",), "linear", "not a list of three names"),
        (("candidates", 1, 5), ["dog", "sum"], "not a list of three names"),
        (("candidates", 1, 5), None, "not a list of three names"),
        (("candidates", 1, 4), "low", "a candidate is 'low' and not a number"),
        (("candidates", 0), [["dog", "sum", "elu"], 1.0], "a candidate is not a list of 5"),
        (("candidates", 0), [["dog", "sum", "elu"], 1, 1, 1, 1, ["dog", "sum", "elu"], 1], "not a list of 5"),
    ],
)
def test_operators_of_a_step_are_checked(
    way: tuple[Any, ...], value: Any, message: str, tmp_path: Path
) -> None:
    estimator, path = fitted_with(plain_network), tmp_path / "model.safetensors"
    estimator.history_ = [full_step()]
    estimator.save(path)
    data, tensors = contents(path)
    set_in(data["history"][0], *way, value)
    rewrite(path, data, tensors)
    assert_refused_in_one_sentence(path, message)


def test_a_step_may_lack_what_was_added_later_but_nothing_else(tmp_path: Path) -> None:
    estimator, path = fitted_with(plain_network), tmp_path / "model.safetensors"
    estimator.history_ = [full_step()]
    estimator.save(path)
    data, tensors = contents(path)
    for field in dataclasses.fields(GrowthStep):
        if field.name in SPECIAL:
            continue
        step = {key: value for key, value in data["history"][0].items() if key != field.name}
        rewrite(path, data | {"history": [step]}, tensors)
        if field.default is dataclasses.MISSING:
            assert_refused_in_one_sentence(path, f"'{field.name}' is missing")
        else:
            assert getattr(opgrow.load(path).history_[0], field.name) == field.default
        rewrite(path, data | {"history": [step | {field.name: []}]}, tensors)
        assert_refused_in_one_sentence(path, field.name)


# --- operators of users ---


def test_custom_operators_are_found_by_name_only(tmp_path: Path) -> None:
    def cosine(y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.cos(w * y)

    path = tmp_path / "model.safetensors"
    register_nodal("cosine_of_a_test", cosine)
    try:
        settings = ONE_SET | {"operators": [("cosine_of_a_test", "sum", "tanh")]}
        estimator = opgrow.HeMLRNClassifier(**settings).fit(*CLASSES)
        expected = digest(estimator, CLASSES[0])
        estimator.save(path)
    finally:
        unregister("nodal", "cosine_of_a_test")
    with pytest.raises(
        ValueError, match="'cosine_of_a_test', which is not registered here: call opgrow.register_nodal"
    ):
        opgrow.load(path)
    register_nodal("cosine_of_a_test", cosine)
    try:
        assert digest(opgrow.load(path), CLASSES[0]) == expected
    finally:
        unregister("nodal", "cosine_of_a_test")


def test_an_operator_that_was_only_tried_need_not_be_known(path: Path) -> None:
    record, tensors = contents(path)
    names = ["somebody_elses", "sum", "tanh"]
    record["history"][0]["candidates"][-1][0] = names
    record["parameters"]["operators"] = [{"operators": names}]
    rewrite(path, record, tensors)
    loaded = opgrow.load(path)
    assert str(loaded.history_[0].candidates[-1].operator_set) == "somebody_elses/sum/tanh"
    with pytest.raises(ValueError, match="unknown nodal operator 'somebody_elses'"):
        loaded.fit(*CLASSES)


# --- the package ---


def test_every_public_name_is_there_and_importing_the_command_line_is_light() -> None:
    for name in opgrow.__all__:
        assert getattr(opgrow, name) is not None
        assert name in dir(opgrow)
    assert opgrow.operators.PERCEPTRON is opgrow.PERCEPTRON
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = opgrow.nothing  # type: ignore[attr-defined]
    script = "import sys, opgrow.cli; print([m for m in ('torch', 'sklearn') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# --- files that would cost much ---


def test_a_description_is_bounded_before_it_is_parsed(fitted: Any, path: Path, monkeypatch: Any) -> None:
    description, tensors = contents(path)
    description["ignored"] = "x" * record_format.MAX_TEXT
    rewrite(path, json.dumps(description), tensors)
    refuse = SimpleNamespace(loads=lambda *_, **__: pytest.fail("it was parsed"))
    monkeypatch.setattr(record_reading, "json", refuse)
    assert_refused_in_one_sentence(path, f"and {record_format.MAX_TEXT} are allowed")


def test_what_could_not_be_read_is_not_written(fitted: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(persistence, "MAX_TEXT", 1000)
    with pytest.raises(ValueError, match="a file holds 1000: shorten the names"):
        fitted.save(tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("constant", "what"), [("MAX_LAYERS", "layers"), ("MAX_BLOCKS", "blocks")])
def test_layers_and_blocks_are_bounded_before_blocks_are_made(
    constant: str, what: str, fitted: Any, path: Path, monkeypatch: Any
) -> None:
    description, tensors = contents(path)
    layer = description["layers"][0]
    many = [layer] * 1001 if what == "layers" else [layer[:1] * 10_001]
    rewrite(path, description | {"layers": many}, tensors)
    monkeypatch.setattr(record_reading, "Block", lambda *_, **__: pytest.fail("it was made"))
    assert_refused_in_one_sentence(path, rf"has \d+ {what}, and a model file holds at most \d+")
    monkeypatch.undo()
    monkeypatch.setattr(record_format, constant, 0)
    with pytest.raises(ValueError, match=f"{what}, and a model file holds at most 0"):
        fitted.save(path.with_name("other.safetensors"))
    assert list(path.parent.iterdir()) == [path]


def test_tensors_are_counted_before_they_are_read(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(persistence, "_MAX_TENSORS", 3)
    monkeypatch.setattr(persistence, "check_seal", lambda *_: pytest.fail("they were read"))
    assert_refused_in_one_sentence(path, r"it has \d+ tensors, and at most 3 are allowed")


def test_a_header_is_bounded_before_it_is_read(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(persistence, "_MAX_HEADER", 1000)
    assert_refused_in_one_sentence(path, "its header has .* bytes, and at most 1000 are allowed")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in the file system")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe or a device: expected a model file"):
        opgrow.load(tmp_path / "pipe")
