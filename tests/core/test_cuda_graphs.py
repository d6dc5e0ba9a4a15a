"""What XLA records as a CUDA graph."""

import os
import subprocess
import sys

import pytest

from azjax.core.cuda_graphs import record_loops


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "--xla_gpu_enable_command_buffer=+WHILE"),
        ("--xla_dump_to=/tmp", "--xla_dump_to=/tmp --xla_gpu_enable_command_buffer=+WHILE"),
        ("--xla_gpu_enable_command_buffer=FUSION", "--xla_gpu_enable_command_buffer=FUSION"),
    ],
)
def test_loops_are_recorded_unless_the_user_says_what_is(monkeypatch, before, after):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    if before is not None:
        monkeypatch.setenv("XLA_FLAGS", before)
    record_loops()
    record_loops()  # changes nothing
    assert os.environ["XLA_FLAGS"] == after


def test_xla_knows_the_flag():
    """XLA ends the process at a flag or a value that it does not know."""
    code = "from azjax.core.cuda_graphs import record_loops; record_loops(); import jax; print(jax.jit(abs)(-1))"
    variables = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
