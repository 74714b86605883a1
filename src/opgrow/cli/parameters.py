"""Parameters of estimators, as they are passed to ``opgrow fit --param``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from opgrow.cli import common

__all__ = ["check_class_weight", "check_parameters", "labelled_weights"]

#: Parameters that the command sets itself.
OWN_PARAMETERS = ("callbacks", "checkpoint_dir", "verbose")


def check_parameters(chosen: dict[str, Any], cls: Any, classes: Mapping[Any, Any]) -> None:
    """Refuse a parameter that an estimator does not have, and say where it is to be found."""
    names = _parameters(cls)
    unknown = next((name for name in chosen if name not in names), None)
    if unknown is None:
        return
    owners = [method for method, other in classes.items() if unknown in _parameters(other)]
    near = difflib.get_close_matches(unknown, names, 1)
    if owners:
        hint = f"it belongs to {', '.join(owners)}."
    else:
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}."
    raise ValueError(f"{cls.__name__} has no parameter {unknown!r}: {hint}")


def _parameters(cls: Any) -> list[str]:
    return [name for name in cls._get_param_names() if name not in OWN_PARAMETERS]


def labelled_weights(weights: dict[str, Any], y: Any) -> dict[Any, Any]:
    """Weights by label; JSON has written the labels as text."""
    import numpy as np

    by_text = {common.label_text(label): label for label in np.unique(y).tolist()}
    unknown = next((text for text in weights if text not in by_text), None)
    if unknown is not None:
        raise ValueError(f"class_weight names the class {unknown!r}; the classes are {', '.join(by_text)}.")
    return {by_text[text]: weight for text, weight in weights.items()}


def check_class_weight(class_weight: Any, y: Any) -> None:
    """Refuse weights that a fit would refuse, before it starts."""
    import numpy as np

    from opgrow.estimators.parameters import class_weights

    class_weights(class_weight, *np.unique(y, return_inverse=True))
