"""JAX's persistent compilation cache, for the commands: what one has compiled the next one loads."""

import contextlib
import hashlib
import os
import platform
import warnings
from pathlib import Path
from typing import Any

import jax
import platformdirs

VARIABLE = "AZJAX_COMPILATION_CACHE"
"""The environment variable that names another folder, or turns the cache off: `0`, `off` or nothing."""
MAX_BYTES = 1 << 30

_OFF = ("", "0", "off")


def use_compilation_cache() -> Path | None:
    """Turns the cache on, in a folder of at most 1 GiB in the user's cache directory.

    Programs used least recently are removed first. A folder that cannot be written and a full disk cost only the time
    to compile again. JAX's own settings, such as `JAX_COMPILATION_CACHE_DIR`, are left as they are.

    Returns:
      the folder; None where the cache is off, or where JAX has its own.
    """
    asked = os.environ.get(VARIABLE)
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None or (asked is not None and asked.lower() in _OFF):
        return None
    folder = Path(asked) if asked else platformdirs.user_cache_path("azjax") / "xla" / _machine()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", MAX_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    return folder


def _machine() -> str:
    """16 hexadecimal digits of the kind of processor: a home directory may be shared by machines of several kinds."""
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()} {platform.processor()}".encode())
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        digest.update("\n".join(sorted({line for line in lines if line.startswith(("flags", "model name"))})).encode())
    return digest.hexdigest()[:16]
