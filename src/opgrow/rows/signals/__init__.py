"""Windows of signals in, a few numbers for each out.

`windows` cuts a recording into windows, and a `WindowFeatures` turns each into fixed features: a step of a
scikit-learn pipeline that exported C contains.
"""

from .cutting import window_labels, windows
from .form import FARTHEST, FEATURES, WindowForm
from .window_features import WindowFeatures

__all__ = ["FARTHEST", "FEATURES", "WindowFeatures", "WindowForm", "window_labels", "windows"]
