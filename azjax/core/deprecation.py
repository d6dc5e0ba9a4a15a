"""Old names that still work for one version, with a warning. docs/releasing.md says how a name is retired.

The warning is a `FutureWarning`: Python shows it to every user, once for each line that uses the name, and the commands
print it in one line.
"""

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import typing_extensions

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

# What is deprecated, by its message: the version that announced it. A test compares these with the current version.
ANNOUNCED: dict[str, str] = {}


def deprecated(name: str, *, since: str, use: str) -> Callable[[_T], _T]:
    """Decorator of a function or class that warns when it is called.

    Args:
      name: what users call it, such as `azjax.render.draw`.
      since: the version that announces it, such as `0.3`. It works in that version and is removed in the next.
      use: what takes its place.
    """
    return typing_extensions.deprecated(_announce(name, since, use), category=FutureWarning)


def renamed_keyword(old: str, new: str, *, since: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorator of a function that also takes the argument `new` by its old name.

    Args:
      old: the old name.
      new: the new name.
      since: as for `deprecated`.

    Raises (when the decorated function is called):
      TypeError: a call with both names.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        message = _announce(f"the argument {old} of {function.__name__}", since, new)

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> _R:
            if old in keywords:
                if new in keywords:
                    raise TypeError(f"{function.__name__} got {new} and also its old name {old}")
                warnings.warn(message, FutureWarning, stacklevel=2)
                keywords[new] = keywords.pop(old)
            return function(*arguments, **keywords)

        return call

    return decorate


def renamed_attributes(module: str, names: dict[str, str], *, since: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose names have changed.

    Args:
      module: the name of the module, `__name__` within it.
      names: the new name of each old one.
      since: as for `deprecated`.
    """
    messages = {old: _announce(f"{module}.{old}", since, f"{module}.{new}") for old, new in names.items()}

    def attribute(name: str) -> Any:
        if name not in messages:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(messages[name], FutureWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return attribute


def next_version(version: str) -> str:
    """The minor version after another: `0.4` after `0.3` and after `0.3.1`."""
    major, minor = version.split(".")[:2]
    return f"{major}.{int(minor) + 1}"


def _announce(name: str, since: str, use: str) -> str:
    message = f"{name} is deprecated and will be removed in azjax {next_version(since)}: use {use}"
    ANNOUNCED[message] = since
    return message
