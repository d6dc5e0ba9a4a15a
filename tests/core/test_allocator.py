"""Memory that a program frees stays with the process."""

import platform
import subprocess
import sys

import pytest

from azjax.core.allocator import keep_freed_memory
from azjax.core.errors import InputError

FAULTS = """
import resource, sys
from azjax.core.allocator import keep_freed_memory

if sys.argv[1] == "keep":
    keep_freed_memory()

import jax, jax.numpy as jnp

@jax.jit
def with_large_temporary_array(x):
    return jnp.sum(jax.lax.fori_loop(0, 2, lambda _, array: array + 1, jnp.full((25, 1 << 20), x)))

def page_faults(calls):
    for _ in range(calls):
        with_large_temporary_array(1.0).block_until_ready()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

# In the first calls small blocks come to lie between the large ones.
print(-page_faults(20) + page_faults(4))
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")
def test_a_program_faults_on_its_large_arrays_at_each_call_unless_freed_memory_is_kept():
    """100 MB are 25,600 pages, unless the kernel gives larger ones, and so 4 calls have 102,400 faults."""
    faults = {}
    for mode in ("return", "keep"):
        command = [sys.executable, "-c", FAULTS, mode]
        faults[mode] = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert faults["keep"] * 2 < faults["return"]


def test_a_call_that_comes_too_late_is_refused():
    with pytest.raises(InputError, match="must be called before NumPy, JAX or a game of azjax is imported"):
        keep_freed_memory()
