"""Fitted networks in the formats of other programs. Their packages are imported when a file is written."""

from .c import export_c
from .c_fitting import export_c_into
from .measuring import ExportCheck
from .onnx import export_onnx
from .wasm import export_wasm

__all__ = ["ExportCheck", "export_c", "export_c_into", "export_onnx", "export_wasm"]
