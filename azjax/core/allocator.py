"""The memory allocator of the C library, which XLA's CPU backend takes the temporary arrays of a program from."""

import ctypes
import sys

from azjax.core.errors import InputError

# Parameters of `mallopt` in glibc's malloc.h, and their values here.
_TRIM_THRESHOLD, _NEVER = -1, -1
_MMAP_MAX = -4
_ARENA_MAX = -8


def keep_freed_memory() -> None:
    """Lets this process keep the memory that it frees, until it ends. For programs that search large trees on a CPU.

    XLA allocates the temporary arrays of a compiled program, the search trees among them, at each call. glibc returns
    blocks of more than 32 MB to Linux at once, so that each call takes a page fault for every 4 KB that it touches:
    up to a third of the time of a large search without a network. Other C libraries are left as they are.

    All threads share one pool of memory from now on; programs of many small operations on all cores, such as the
    training of a small network, can become slower by that. Threads that exist already keep pools of their own, and so
    this call comes before the first import of NumPy.

    Raises:
      InputError: NumPy is imported already.
    """
    if "numpy" in sys.modules:
        raise InputError("keep_freed_memory must be called before NumPy, JAX or a game of azjax is imported")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for parameter, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_ARENA_MAX, 1)):
            mallopt(parameter, value)
