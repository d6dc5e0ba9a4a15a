"""What XLA records as a CUDA graph."""

import os
import subprocess
import sys

import pytest

from azjax.core.cuda_graphs import record_loops


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """JAX's plugin for CUDA, as an empty module."""
    folder = tmp_path / "jax_plugins" / "xla_cuda13"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("plugin")
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


def test_without_the_plugin_for_cuda_nothing_changes(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    record_loops()
    assert "XLA_FLAGS" not in os.environ


@pytest.mark.slow
def test_xla_knows_the_flag():
    """XLA ends the process at a flag or a value that it does not know."""
    variables = {**os.environ, "XLA_FLAGS": "--xla_gpu_enable_command_buffer=+WHILE"}
    command = [sys.executable, "-c", "import jax; print(jax.jit(abs)(-1))"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
