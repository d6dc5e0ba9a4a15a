"""Pure functions that remember their last results. `functools.lru_cache` hides the signature from type checkers."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_R = TypeVar("_R")


def remember(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorator: the last 16 results of `function` are kept. Its arguments must be hashable."""
    return cast(Callable[_P, _R], functools.lru_cache(maxsize=16)(function))
