"""The operator library: what a Generalized Operational Perceptron can compute."""

from .library import *  # noqa: F403
from .library import __all__ as __all__
