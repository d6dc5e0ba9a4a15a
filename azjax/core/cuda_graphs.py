"""What XLA records as a CUDA graph: a sequence of kernels that a GPU runs without the processor."""

import os

_FLAGS = "XLA_FLAGS"
_COMMAND_BUFFERS = "--xla_gpu_enable_command_buffer"


def record_loops() -> None:
    """Lets XLA record whole loops in CUDA graphs, unless `XLA_FLAGS` says itself what it records.

    A search is a loop of some hundred small kernels, and on a GPU their launches take longer than their work. With its
    loops recorded it runs about twice as fast (docs/benchmarks.md, "On a GPU"). XLA reads the variable when JAX starts
    its devices, so this call comes before. On other devices nothing changes.
    """
    flags = os.environ.get(_FLAGS, "")
    if _COMMAND_BUFFERS not in flags:
        os.environ[_FLAGS] = f"{flags} {_COMMAND_BUFFERS}=+WHILE".strip()
