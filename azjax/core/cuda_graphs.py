"""What XLA records as a CUDA graph: a sequence of kernels that a GPU runs without the processor."""

import importlib.util
import os
from pathlib import Path

_FLAGS = "XLA_FLAGS"
_COMMAND_BUFFERS = "--xla_gpu_enable_command_buffer"


def record_loops() -> None:
    """Lets XLA record whole loops in CUDA graphs, unless `XLA_FLAGS` says itself what it records.

    A search is a loop of many small kernels. With its loops recorded it is 1.4 to 2.7 times as fast on a GPU
    (docs/benchmarks.md, "On a GPU"). XLA reads the variable when JAX starts its devices, so this call comes before.
    Without JAX's plugin for CUDA nothing changes: programs that azjax starts inherit the variable, and another XLA may
    not know the flag.
    """
    flags = os.environ.get(_FLAGS, "")
    if _COMMAND_BUFFERS not in flags and _has_cuda_plugin():
        os.environ[_FLAGS] = f"{flags} {_COMMAND_BUFFERS}=+WHILE".strip()


def _has_cuda_plugin() -> bool:
    """JAX's plugins are modules of the namespace package `jax_plugins`, such as `jax_plugins.xla_cuda13`."""
    plugins = importlib.util.find_spec("jax_plugins")
    folders = [] if plugins is None else plugins.submodule_search_locations or []
    return any(path for folder in folders for path in Path(folder).glob("xla_cuda*"))
