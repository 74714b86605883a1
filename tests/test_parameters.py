"""Docstrings that are put together from signatures, and the families that have them."""

from __future__ import annotations

import inspect

import pytest
from sklearn.base import clone

from opgrow.estimators.base import ClassifierFace, GrowingEstimator, with_class_weight
from opgrow.estimators.parameters import documentation


class Family(GrowingEstimator):
    def __init__(self, *, n_min=3, n_step=4, layer_threshold=1.5e-4, device="auto", callbacks=None):
        self.n_min, self.n_step, self.layer_threshold = n_min, n_step, layer_threshold
        self.device, self.callbacks = device, callbacks


class FamilyClassifier(ClassifierFace, Family):
    __init__ = with_class_weight(Family.__init__)


def test_a_docstring_has_the_parameters_and_defaults_of_its_signature():
    own = {"layer_threshold": "float\n        Of layers."}
    text = documentation("A summary.", "FamilyClassifier", FamilyClassifier.__init__, "n_min=1", own)
    wanted = """A summary.

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
    assert text.startswith(wanted.rstrip())
    assert ">>> clf = FamilyClassifier(n_min=1, random_state=0).fit(X, y)" in text


def test_a_parameter_without_a_text_is_refused():
    with pytest.raises(KeyError, match="'layer_threshold' has no text"):
        documentation("A summary.", "FamilyClassifier", FamilyClassifier.__init__, "n_min=1")


def test_classifiers_of_any_family_have_class_weight():
    assert "class_weight" not in Family().get_params()
    names = list(inspect.signature(FamilyClassifier).parameters)
    assert names == ["n_min", "n_step", "layer_threshold", "class_weight", "device", "callbacks"]
    estimator = clone(FamilyClassifier(n_min=7, class_weight="balanced"))
    assert (estimator.n_min, estimator.n_step, estimator.class_weight) == (7, 4, "balanced")
    assert repr(estimator) == "FamilyClassifier(class_weight='balanced', n_min=7)"
    with pytest.raises(TypeError, match="neurons"):
        FamilyClassifier(neurons=3)
