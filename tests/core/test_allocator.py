"""Memory that a program frees stays with the process."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import jax, jax.numpy as jnp
from azjax.core.allocator import keep_freed_memory

if sys.argv[1] == "keep":
    keep_freed_memory()

@jax.jit
def with_large_temporary_array(x):
    return jnp.sum(jax.lax.fori_loop(0, 2, lambda _, array: array + 1, jnp.full((25, 1 << 20), x)))

def page_faults():
    with_large_temporary_array(1.0).block_until_ready()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

page_faults()
page_faults()
print(-page_faults() + page_faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")
def test_a_program_faults_on_its_large_arrays_at_each_call_unless_freed_memory_is_kept():
    """100 MB are 25,600 pages, unless the kernel gives larger ones."""
    faults = {}
    for mode in ("return", "keep"):
        command = [sys.executable, "-c", FAULTS, mode]
        faults[mode] = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert faults["keep"] * 10 < faults["return"]
