"""Things by name: games, networks and rules of selection, of the package, of installed packages and of users."""

import functools
import importlib.metadata
import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from azjax.core.errors import InputError
from azjax.core.proposals import did_you_mean
from azjax.core.source import source_name

_T = TypeVar("_T")
_Added = TypeVar("_Added")


class Registry(Generic[_T]):
    """What is registered under names.

    Args:
      kind: what the messages call an entry, such as `game`.
      group: the group of the entry points by which an installed package offers entries, such as `azjax.games`. They are
        imported when their name is asked for.
    """

    def __init__(self, kind: str, group: str):
        self._kind = kind
        self._group = group
        self._entries: dict[str, _T] = {}

    def register(self, name: str) -> Callable[[_Added], _Added]:
        """Decorator: gives an entry its name.

        Raises:
          InputError: the name is no text, has other characters than letters, digits, `_`, `-` and `.`, begins with one
            of the last two, or is taken by an entry from elsewhere. To define the same entry again, as in a notebook,
            is allowed.
        """
        if not isinstance(name, str):
            raise InputError(f'a {self._kind} is registered under a name, as in @register("mine"); got {name!r}')
        # Folders and players are named after it: `runs/NAME`, `NAME:400`. A colon at the end is that of a family.
        if not re.fullmatch(r"\w[\w.-]*:?", name):
            raise InputError(f"a {self._kind} cannot be named {name!r}; allowed: letters, digits, '_', '-' and '.'")

        def add(entry: _Added) -> _Added:
            taken = self._entries.get(name)
            if taken is not None and _identity(taken) != _identity(entry):
                raise InputError(f"the name {name!r} is taken by the {self._kind} of {source_name(taken)}")
            # A package that offers the entry may register it by the decorator too.
            offered = self._offered.get(name)
            if taken is None and offered is not None and offered.module != getattr(entry, "__module__", None):
                raise InputError(f"the name {name!r} is taken by the {self._kind} of an installed package")
            self._entries[name] = cast(_T, entry)
            return entry

        return add

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self._entries, *self._offered})

    def find(self, name: str) -> _T | None:
        """The entry of that name; None if there is none.

        Raises:
          InputError: the package that offers it cannot be imported.
        """
        if name not in self._entries and name not in self._offered:
            self.__dict__.pop("_offered")  # a package may have been installed meanwhile
        if name not in self._entries and name in self._offered:
            point = self._offered[name]
            package = point.dist.name if point.dist is not None else point.value
            try:
                entry = point.load()
            except Exception as error:
                raise InputError(
                    f"the {self._kind} {name!r} of the package {package} cannot be imported: "
                    f"{type(error).__name__}: {error}"
                ) from error
            self._entries.setdefault(name, entry)
        return self._entries.get(name)

    def unknown(self, name: str, choices: list[str]) -> InputError:
        """The error for a name that no entry has."""
        return InputError(
            f"unknown {self._kind} {name!r}{did_you_mean(name, choices)}; available: {', '.join(choices)}"
        )

    @functools.cached_property
    def _offered(self) -> dict[str, importlib.metadata.EntryPoint]:
        # Kept: to look for them takes 10 ms.
        return {point.name: point for point in importlib.metadata.entry_points(group=self._group)}


def _identity(entry: Any) -> tuple[Any, Any]:
    return getattr(entry, "__module__", None), getattr(entry, "__qualname__", repr(entry))
