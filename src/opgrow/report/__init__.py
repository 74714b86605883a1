"""What was grown, as pictures, as one HTML page and in words: charts, drawings, reports, explanations."""

from ..network.drawing.drawing import Drawing, draw
from .explanation.explanation import Explanation, explain
from .explanation.formula import Formula, formula
from .page import write_report

__all__ = ["Drawing", "Explanation", "Formula", "draw", "explain", "formula", "write_report"]
