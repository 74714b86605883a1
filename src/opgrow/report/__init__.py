"""What was grown, as pictures and as one HTML page: charts, the drawing of a network, the report."""

from ..network.drawing.drawing import Drawing, draw
from .page import write_report

__all__ = ["Drawing", "draw", "write_report"]
