"""What was grown, as pictures, as one HTML page and in words: charts, drawings, reports, explanations."""

from ..network.drawing.drawing import Drawing, draw
from .explanation.explanation import Explanation, explain
from .explanation.formula import Formula, formula
from .explanation.plots import plot_neuron, plot_pair, plot_response, plot_row
from .growth_plot import plot_growth
from .page import write_report

__all__ = [
    "Drawing",
    "Explanation",
    "Formula",
    "draw",
    "explain",
    "formula",
    "plot_growth",
    "plot_neuron",
    "plot_pair",
    "plot_response",
    "plot_row",
    "write_report",
]
