"""How large fitted models are: the numbers that a prediction uses, counted alike for all kinds.

A split of a tree is a column and a threshold, a leaf one number for each output; a support vector is a row
with a coefficient for each class it separates. None where a model does not show its parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["n_parameters", "structure"]


def n_parameters(model: Any) -> int | None:
    """Numbers that a fitted model has learned."""
    network = getattr(model, "network_", None)
    if network is not None:
        return int(network.n_parameters())
    model = getattr(model, "best_estimator_", model)  # of a grid search
    model = getattr(model, "regressor_", model)  # with a scaled target
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    for attribute, count in _COUNTS.items():
        if hasattr(last, attribute):
            return count(last)
    return None


def _of_perceptron(model: Any) -> int:
    return int(sum(array.size for array in (*model.coefs_, *model.intercepts_)))


def _of_linear(model: Any) -> int:
    return int(np.size(model.coef_) + np.size(model.intercept_))


def _of_svm(model: Any) -> int:
    return int(model.support_vectors_.size + model.dual_coef_.size + model.intercept_.size)


def _of_forest(model: Any) -> int:
    total = 0
    for one in model.estimators_:
        leaves = one.tree_.n_leaves
        total += 2 * (one.tree_.node_count - leaves) + leaves * int(np.prod(one.tree_.value.shape[1:]))
    return int(total)


def _of_histogram_boosting(model: Any) -> int:
    trees = [tree for step in model._predictors for tree in step]
    leaves = sum(int(tree.get_n_leaf_nodes()) for tree in trees)
    return 3 * leaves - 2 * len(trees)  # a tree of n leaves has n - 1 splits


def _of_lightgbm(model: Any) -> int:
    trees = model.booster_.dump_model()["tree_info"]
    return sum(3 * tree["num_leaves"] - 2 for tree in trees)


def _of_catboost(model: Any) -> int:
    # All splits of one level of a tree are the same.
    levels = sum(int(np.log2(n)) for n in model.get_tree_leaf_counts())
    return int(2 * levels + len(model.get_leaf_values()))


def _of_pytabkit(model: Any) -> int | None:
    """Parameters of the torch modules, wherever in the object they are."""
    import torch

    found: dict[int, int] = {}
    seen: set[int] = set()
    queue: list[Any] = [model.alg_interface_]
    while queue:
        one = queue.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, torch.nn.Module):
            found |= {id(p): p.numel() for p in getattr(one, "model", one).parameters()}
        elif isinstance(one, list | tuple):
            queue += one
        elif type(one).__module__.startswith("pytabkit"):
            queue += vars(one).values()
    return sum(found.values()) or None


#: How a model is counted, by an attribute that only its kind has.
_COUNTS = {
    "alg_interface_": _of_pytabkit,
    "coefs_": _of_perceptron,
    "support_vectors_": _of_svm,
    "estimators_": _of_forest,
    "_predictors": _of_histogram_boosting,
    "booster_": _of_lightgbm,
    "get_tree_leaf_counts": _of_catboost,
    "coef_": _of_linear,
}


def structure(model: Any) -> dict[str, int]:
    """What was grown: layers, blocks, distinct operator sets, and networks, a student included."""
    network = getattr(model, "network_", None)
    if network is None:
        return {}
    blocks = [block for layer in network.layers for block in layer]
    return {
        "layers": len(network.layers),
        "blocks": len(blocks),
        "operator_sets": len({str(block.operator_set) for block in blocks}),
        "networks": max((step.member for step in model.history_), default=1),
    }
