"""The commands keep what they compile, unless told otherwise; a folder that cannot be written only costs speed."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jax, jax.numpy as jnp
from azjax.core.compilation_cache import use_compilation_cache

print(use_compilation_cache())
print(float(jax.jit(lambda x: jnp.sin(x) * 2)(1.0)))
"""


def run(**environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    folder, result = done.stdout.split()
    assert float(result) == pytest.approx(1.682942)
    return folder


def test_it_lies_in_the_user_s_cache_directory_in_a_folder_for_the_processor(tmp_path):
    folder = run(XDG_CACHE_HOME=str(tmp_path))
    assert folder.startswith(str(tmp_path / "azjax" / "xla"))
    assert list((tmp_path / "azjax" / "xla").rglob("*-cache"))


@pytest.mark.slow
def test_one_variable_moves_it_or_turns_it_off(tmp_path):
    assert run(AZJAX_COMPILATION_CACHE=str(tmp_path / "here")) == str(tmp_path / "here")
    assert list((tmp_path / "here").glob("*-cache"))
    assert run(AZJAX_COMPILATION_CACHE="off", XDG_CACHE_HOME=str(tmp_path)) == "None"
    assert run(JAX_COMPILATION_CACHE_DIR=str(tmp_path / "jax"), XDG_CACHE_HOME=str(tmp_path)) == "None"
    assert not (tmp_path / "azjax").exists()


def test_a_folder_that_cannot_be_made_only_costs_speed(tmp_path):
    (tmp_path / "file").write_text("")
    assert run(AZJAX_COMPILATION_CACHE=str(tmp_path / "file" / "cache")) == "None"


@pytest.mark.slow
def test_a_damaged_entry_only_costs_speed(tmp_path):
    run(AZJAX_COMPILATION_CACHE=str(tmp_path))
    for path in tmp_path.glob("*-cache"):
        path.write_bytes(b"damaged")
    assert run(AZJAX_COMPILATION_CACHE=str(tmp_path)) == str(tmp_path)
