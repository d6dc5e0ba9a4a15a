"""The games by name: `make`, `available`, and `register` for a new one."""

import difflib
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from azjax.core.errors import InputError
from azjax.games.game import AnyGame
from azjax.games.protocols import ConfiguredGame

_FACTORIES: dict[str, Callable[..., AnyGame]] = {}
_Factory = TypeVar("_Factory", bound=Callable[..., AnyGame])


def register(name: str) -> Callable[[_Factory], _Factory]:
    """Decorator: `azjax.make(name, **options)` calls the decorated function with the options.

    A name that ends in a colon stands for a family: `make("pgx:hex")` calls the function of `"pgx:"` with `"hex"`.
    """

    def add(factory: _Factory) -> _Factory:
        _FACTORIES[name] = factory
        return factory

    return add


@functools.cache
def _import_games() -> None:
    """Imports every module of `azjax.games`, so that the decorators of its games have run."""
    package = importlib.import_module("azjax.games")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"azjax.games.{module.name}")


def available() -> list[str]:
    """The names of all registered games, without those of families."""
    _import_games()
    return sorted(name for name in _FACTORIES if not name.endswith(":"))


def factory(name: str) -> Callable[..., AnyGame]:
    """The function that builds the game `name`; its keyword arguments are the game's options.

    Raises:
      InputError: no game has that name.
    """
    games = available()
    if name in games:
        return _FACTORIES[name]
    family, colon, member = name.partition(":")
    if colon and family + colon in _FACTORIES:
        return functools.partial(_FACTORIES[family + colon], member)
    close = difflib.get_close_matches(name, games, 1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    families = sorted(f"{name}NAME" for name in _FACTORIES if name.endswith(":"))
    raise InputError(f"unknown game {name!r}{hint}; available: {', '.join(games + families)}")


def make(name: str, **options: Any) -> AnyGame:
    """Builds a game: `make("tictactoe")`, `make("mnk", columns=15, rows=15, in_a_row=5)`, `make("pgx:go_9x9")`.

    Raises:
      InputError: unknown name or option, or an option out of its range; the message lists what is allowed.
    """
    build = factory(name)
    known = list(inspect.signature(build).parameters)
    for option in options:
        if option not in known:
            raise InputError(f"{name} has no option {option!r}; its options: {', '.join(known) or 'none'}")
    return build(**options)


def options_of(game: AnyGame) -> dict[str, Any]:
    """The options that build `game` again: `make(game.name, **options_of(game)) == game`. JSON can hold them.

    They are the attributes of the game with the names of the options, unless it is a `ConfiguredGame`.
    """
    if isinstance(game, ConfiguredGame):
        return game.options
    return {option: getattr(game, option) for option in inspect.signature(factory(game.name)).parameters}
