"""Docstrings that are put together from signatures, and the signatures of all estimators."""

from __future__ import annotations

import inspect

import pytest
from sklearn.base import clone

import opgrow
from opgrow.estimators.documentation import documentation

NAMES = sorted(name for name in opgrow.__all__ if name.endswith(("Classifier", "Regressor")))
#: What regressors of HeMLGOP and its variants set differently: dropout costs them accuracy.
_OF_REGRESSORS = {"dropout"}
METHODS = sorted({name.removesuffix("Classifier").removesuffix("Regressor") for name in NAMES})


class Model:
    def __init__(
        self,
        *,
        n_min=3,
        n_step=4,
        layer_threshold=1.5e-4,
        class_weight=None,
        device="auto",
        callbacks=None,
    ):
        pass


def test_a_docstring_has_the_parameters_and_defaults_of_its_signature():
    own = {"layer_threshold": "float\n        Of layers."}
    text = documentation("A summary.", "FamilyClassifier", Model.__init__, "n_min=1", own)
    expected = """A summary.

    Parameters
    ----------
    n_min, n_step : int, default=3, 4
        Neurons of a layer's first block and of every further block.
    layer_threshold : float, default=1.5e-4
        Of layers.
    class_weight : dict, "balanced" or None, default=None
    device : {"auto", "cpu", "cuda", "cuda:N"}, default="auto"
        Where the network grows. "auto" takes a GPU if there is one and X has a million values or more.
    callbacks : list of Callback, optional

    Attributes
    """
    assert text.startswith(expected)
    assert ">>> clf = FamilyClassifier(n_min=1, random_state=0).fit(X, y)" in text


def test_a_parameter_without_a_text_is_refused():
    with pytest.raises(KeyError, match="'layer_threshold' has no text"):
        documentation("A summary.", "FamilyClassifier", Model.__init__, "n_min=1")


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_stored_under_its_own_name(name):
    cls = getattr(opgrow, name)
    marks = {parameter: object() for parameter in inspect.signature(cls).parameters}
    assert vars(cls(**marks)) == marks
    assert cls(**marks).get_params(deep=False) == marks
    with pytest.raises(TypeError, match="neurons"):
        cls(neurons=3)


@pytest.mark.parametrize("method", METHODS)
def test_classifiers_have_the_parameters_of_regressors_and_class_weight_after_table(method):
    kinds = (getattr(opgrow, method + kind) for kind in ("Classifier", "Regressor"))
    classifier, regressor = (inspect.signature(cls).parameters for cls in kinds)
    assert classifier["class_weight"].default is None
    names = list(classifier)
    assert names.index("class_weight") == names.index("table") + 1
    names.remove("class_weight")
    assert names == list(regressor)
    different = {parameter for parameter in names if classifier[parameter] != regressor[parameter]}
    assert different == (_OF_REGRESSORS if "n_estimators" in names else set())


def test_a_clone_has_the_class_weight_of_its_model():
    estimator = clone(opgrow.PLNClassifier(n_min=7, class_weight="balanced"))
    assert (estimator.n_min, estimator.class_weight) == (7, "balanced")
    assert repr(estimator) == "PLNClassifier(class_weight='balanced', n_min=7)"
