"""The games by name: `make`, `available`, and `register` for a new one."""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from azjax.core.errors import AzjaxError, InputError
from azjax.core.registry import Registry
from azjax.core.source import place_of, source_name
from azjax.games.game import AnyGame, Game
from azjax.games.protocols import ConfiguredGame

GAMES: Registry[Callable[..., AnyGame]] = Registry("game", "azjax.games")
_Factory = TypeVar("_Factory", bound=Callable[..., AnyGame])


def register(name: str) -> Callable[[_Factory], _Factory]:
    """Decorator: `azjax.make(name, **options)` calls the decorated function with the options.

    A name that ends in a colon stands for a family: `make("pgx:hex")` calls the function of `"pgx:"` with `"hex"`.

    Raises:
      InputError: the name is taken, or no text.
    """
    register_game = GAMES.register(name)

    def add(factory: _Factory) -> _Factory:
        if not factory.__module__.startswith("azjax."):
            _import_games()  # so that the names of the package are taken
        return register_game(factory)

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
    return [name for name in GAMES.names() if not name.endswith(":")]


def all_names() -> list[str]:
    """The names of all registered games, and of families as in `pgx:NAME`."""
    return available() + [f"{name}NAME" for name in GAMES.names() if name.endswith(":")]


def factory(name: str) -> Callable[..., AnyGame]:
    """The function that builds the game `name`; its keyword arguments are the game's options.

    Raises:
      InputError: no game has that name, or it is no text.
    """
    if not isinstance(name, str):
        raise InputError(f"a game is made by its name, a text such as 'tictactoe'; got {name!r}")
    _import_games()
    if not name.endswith(":") and (found := GAMES.find(name)) is not None:
        return found
    family, colon, member = name.partition(":")
    if colon and (found := GAMES.find(family + colon)) is not None:
        build = functools.partial(found, member)
        build.__doc__ = found.__doc__  # else that of `partial`
        return build
    raise GAMES.unknown(name, all_names())


def typed_options(name: str) -> list[inspect.Parameter]:
    """The options of the game `name`, with their types also where these are written as texts.

    Raises:
      InputError: no game has that name, or a type is unknown in the module of the game.
    """
    try:
        return list(inspect.signature(factory(name), eval_str=True).parameters.values())
    except NameError as error:
        raise InputError(f"{name}: the types of its options cannot be read: {error}") from error


def is_registered(name: str) -> bool:
    """Whether `factory` finds the name."""
    try:
        factory(name)
    except InputError:
        return False
    return True


def make(name: str, /, **options: Any) -> AnyGame:
    """Builds a game: `make("tictactoe")`, `make("mnk", columns=15, rows=15, in_a_row=5)`, `make("pgx:go_9x9")`.

    Raises:
      InputError: unknown name or option, or an option out of its range; the message lists what is allowed. Also a game
        without a method that it needs, or that is not hashable, or whose name is not registered; and a function from
        outside the package that raises an error, or that returns no game.
    """
    build = factory(name)
    known = list(inspect.signature(build).parameters)
    for option in options:
        if option not in known:
            raise InputError(f"{name} has no option {option!r}; its options: {', '.join(known) or 'none'}")
    try:
        game = build(**options)
    except AzjaxError:
        raise
    except Exception as error:
        if isinstance(error, TypeError) and "abstract" in str(error):
            raise InputError(f"{name}: {error}; `azjax.games.Game` tells what they are for") from error
        if source_name(build).startswith("azjax."):
            raise
        raise InputError(f"{name}: its function raised {type(error).__name__}: {error}{place_of(error)}") from error
    if not isinstance(game, Game):
        raise InputError(f"{name}: its function must return an azjax.games.Game, got {game!r}")
    try:
        hash(game)
    except TypeError as error:
        kind = type(game).__name__
        raise InputError(
            f"{name}: a game must be hashable; make {kind} a frozen dataclass of hashable fields: {error}"
        ) from error
    if not is_registered(game.name):
        raise InputError(f"{name}: the name of its game is {game.name!r}, which is not registered: make it {name!r}")
    return game


def options_of(game: AnyGame) -> dict[str, Any]:
    """The options that build `game` again: `make(game.name, **options_of(game)) == game`. JSON can hold them.

    They are the attributes of the game with the names of the options, unless it is a `ConfiguredGame`.

    Raises:
      InputError: the game has no such attribute, or its name is not registered.
    """
    if isinstance(game, ConfiguredGame):
        return game.options
    names = list(inspect.signature(factory(game.name)).parameters)
    for option in names:
        if not hasattr(game, option):
            raise InputError(
                f"{game.name}: its option {option} is no attribute of {type(game).__name__}: name the field so, or "
                "make the game an azjax.games.ConfiguredGame"
            )
    return {option: getattr(game, option) for option in names}
