"""Models of all kinds, quickly made: fitted ones of all methods, and random networks in an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

import opgrow
from opgrow import Block, HeMLGOPClassifier, HeMLGOPRegressor, Layer, Network, OperatorSet, operator_sets
from tests.networks import randomized

#: What the parameters are that make a fit short, where a method has them.
_BRIEF: dict[str, Any] = {
    "preset": None,
    "n_min": 4,
    "n_step": 4,
    "max_neurons": 12,
    "max_layers": 2,
    "widths": (4, 3),
    "epochs": 2,
    "learning_rates": 0.01,
    "fine_tune_epochs": 2,
    "operators": operator_sets(["harmonic", "dog"], ["sum", "correlation1"], ["tanh"]),
}


def of_network(network: Network, task: str = "classification", loss: str = "cross_entropy") -> Any:
    """An estimator that has this network, as if it had been fitted on a matrix."""
    model: Any = HeMLGOPClassifier() if task == "classification" else HeMLGOPRegressor()
    model.network_, model.loss_, model.history_ = network, loss, []
    model.n_features_in_ = network.n_inputs
    if task == "classification":
        model.classes_ = np.arange(network.n_outputs)
    else:
        model.n_targets_, model.single_target_ = network.n_outputs, network.n_outputs == 1
    return model


def random_model(seed: int) -> Any:
    """A network of one of many forms, and what it is used for."""
    rng = np.random.default_rng(seed)
    n_inputs, n_outputs = int(rng.integers(2, 8)), int(rng.integers(1, 5))
    task = "classification" if n_outputs > 1 and rng.random() < 0.6 else "regression"
    form = ("plain", "average", "operators", "broad", "unit")[seed % 5]
    options: dict[str, Any] = {"input_bound": 3.0 if rng.random() < 0.7 else None}
    if task == "regression":
        options |= {"output_mean": rng.normal(size=n_outputs), "output_scale": rng.uniform(0.5, 3, n_outputs)}
        if rng.random() < 0.5:
            options |= {"output_low": np.full(n_outputs, -2.0), "output_high": np.full(n_outputs, 2.0)}
    if form == "broad":
        options["broad"] = True
    if form == "operators":
        options["head_operators"] = _operators(rng)
    widths = rng.integers(2, 6, size=(2, 2))
    if form == "average":
        # The first network has two layers, the second one.
        first = Layer([_block(rng, n_inputs, int(w)) for w in widths[0]])
        second = Layer([_block(rng, int(widths[0, 0]), int(widths[1, 0]))])
        layers, options["members"] = [first, second], ((1, 1), (1,))
    else:
        first = Layer([_block(rng, n_inputs, int(w), form) for w in widths[0]])
        second = Layer([_block(rng, first.n_neurons, int(w), form) for w in widths[1]])
        layers = [first, second][: 1 + int(rng.random() < 0.6)]
    network = randomized(Network(n_inputs, n_outputs, layers, **options), seed)
    if network.output_low is not None:
        network.output_low, network.output_high = np.full(n_outputs, -2.0), np.full(n_outputs, 2.0)
    return of_network(network, task, "mse" if task == "regression" or rng.random() < 0.3 else "cross_entropy")


def _operators(rng: np.random.Generator) -> OperatorSet:
    sets = operator_sets()
    return sets[int(rng.integers(len(sets)))]


def _block(rng: np.random.Generator, n_inputs: int, n_neurons: int, form: str = "plain") -> Block:
    if form == "unit":
        return Block(
            n_inputs, n_neurons, OperatorSet("multiplication", "sum", "relu"), norm="unit", bias=False
        )
    if form == "broad" and rng.random() < 0.5:
        return Block(n_inputs, n_neurons, OperatorSet("multiplication", "sum", "identity"), norm=None)
    return Block(n_inputs, n_neurons, _operators(rng), norm="batch" if rng.random() < 0.7 else None)


def fitted(name: str, x: Any, y: Any, **more: Any) -> Any:
    """An estimator by name, fitted in a moment."""
    kind = getattr(opgrow, name)
    known = kind().get_params()
    brief = {key: value for key, value in _BRIEF.items() if key in known}
    for key in ("epochs", "learning_rates"):
        if key in known and not isinstance(known[key], str):
            brief[key] = (brief[key],) * len(known[key])
    if known.get("learning_rates") == "auto":
        del brief["learning_rates"]
    return kind(**brief | more, random_state=0).fit(x, y)
