"""What azjax is compared with: other libraries, and the plain Python of the repository's folder `benchmarks`."""

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from azjax.core.errors import InputError

PLAIN_PYTHON = "plain Python"
_PACKAGES = {"mctx": "mctx", "pgx": "pgx", "OpenSpiel": "pyspiel"}
_REPOSITORY = Path(__file__).parents[2]


def rival_module(rival: str, module: str = "") -> ModuleType:
    """The package of a rival, or one of its modules.

    Args:
      rival: `mctx`, `pgx`, `OpenSpiel` or `plain Python`.
      module: a module of the package, with its leading dot; the package itself by default.

    Raises:
      InputError: the rival is not installed.
    """
    if rival == PLAIN_PYTHON:
        # Not in the wheel: found beside the package, in a checkout.
        if str(_REPOSITORY) not in sys.path and (_REPOSITORY / "benchmarks" / "rules").is_dir():
            sys.path.append(str(_REPOSITORY))
        package, remedy = "benchmarks", "run azjax from a clone of its repository"
    else:
        package, remedy = _PACKAGES[rival], "pip install 'azjax[interop]'"
    try:
        return importlib.import_module(f"{package}{module}")
    except ModuleNotFoundError as error:
        raise InputError(f"the benchmark needs {rival}: {remedy}") from error


def missing_rivals(rivals: Iterable[str]) -> list[str]:
    """Those of the rivals that are not installed."""
    missing = []
    for rival in rivals:
        try:
            rival_module(rival, ".rules" if rival == PLAIN_PYTHON else "")
        except InputError:
            missing.append(rival)
    return missing


def left_out(missing: list[str]) -> str:
    """One line that names missing rivals and how to get them."""
    remedies = []
    if set(missing) - {PLAIN_PYTHON}:
        remedies.append("pip install 'azjax[interop]'")
    if PLAIN_PYTHON in missing:
        remedies.append("plain Python is in a clone of the repository")
    return f"left out, not installed: {', '.join(missing)} ({'; '.join(remedies)})"
