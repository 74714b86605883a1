"""Fitted networks in the formats of other programs. Their packages are imported when a file is written."""

from .c import export_c
from .measuring import ExportCheck
from .onnx import export_onnx

__all__ = ["ExportCheck", "export_c", "export_onnx"]
