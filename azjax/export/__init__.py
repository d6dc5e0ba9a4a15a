"""Trained networks as files for other programs: safetensors, ONNX and StableHLO."""

from azjax.export.export import FORMATS, export_agent

__all__ = ["FORMATS", "export_agent"]
