"""Fitted networks in the formats of other programs. Their packages are imported when a file is written."""

from .onnx import export_onnx

__all__ = ["export_onnx"]
