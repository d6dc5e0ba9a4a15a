"""From the words after `azjax COMMAND` to options, games and players."""

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import tyro

from azjax.agents import (
    LEVELS,
    NUM_SIMULATIONS,
    every_checkpoint,
    game_of,
    is_trained,
    load_player,
    load_trained,
    split_level,
)
from azjax.commands.parsing import parse_with_tyro
from azjax.core.errors import InputError
from azjax.core.text import whole_number
from azjax.evaluation import Player
from azjax.games.check import make_checked
from azjax.games.game import AnyGame
from azjax.games.registry import all_names, factory, typed_options

Options = TypeVar("Options")
_AgentOptions = TypeVar("_AgentOptions", bound="AgentOptions")

HELP = ("-h", "--help")
_OF_SEARCHES = ("num_simulations", "policy", "solver", "tables")
_MOST_GAMES = 2**30
_PLAYERS = {1: "a PLAYER", None: "two PLAYERs or more"}


@dataclasses.dataclass(frozen=True)
class AgentOptions:
    """Options of the commands that load one player.

    Attributes:
      num_simulations: simulations of a trained agent's search. Default: those of PLAYER:SIMULATIONS, else 64.
      policy: the search of a trained agent: `alphazero`, `gumbel` or `uct`. Default: that of the training of a run, and
        `alphazero` for an agent that comes with azjax.
      solver: the search proves wins, losses and draws.
      tables: exact values for the leaves of a trained agent's search: a file of `azjax solve GAME --output FILE`.
      seed: seed of all random numbers.
    """

    num_simulations: int | None = None
    policy: str | None = None
    solver: bool = False
    tables: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.num_simulations is not None and self.num_simulations < 1:
            raise InputError(f"num_simulations must be at least 1, got {self.num_simulations}")

    @property
    def of_searches(self) -> tuple[str, ...]:
        """The options that a player without a search refuses."""
        return _OF_SEARCHES

    @property
    def simulations(self) -> int:
        """`num_simulations`, or the default."""
        return NUM_SIMULATIONS if self.num_simulations is None else self.num_simulations

    def players(self, spec: str, game: AnyGame, levels: Sequence[str]) -> dict[str, Player]:
        """Loads the player at each of the levels. A trained agent is read once, while a trainer may save others."""
        search: Any = {name: getattr(self, name) for name in self.of_searches}
        read: Any = {}
        _check_number(spec, self.num_simulations)
        if self.num_simulations is not None and not is_trained(split_level(spec)[0]):
            raise InputError(f"num_simulations is for trained agents; {spec} is not one")
        self.check_level(spec)
        if is_trained(agent := split_level(spec)[0]):
            read["agent"] = load_trained(agent)
        return {
            level: load_player(spec, game, level=level, **read, **(search if level == LEVELS[-1] else {}))
            for level in levels
        }

    def check_level(self, spec: str) -> None:
        """Refuses options of a search if the player has a level that does not search."""
        if split_level(spec)[1] in LEVELS[:-1]:
            for name in self.of_searches:
                if getattr(self, name) != getattr(type(self), name):
                    raise InputError(f"{name} is for players that search; {spec} does not")


def first_word(command: str, name: str, options: object, arguments: list[str]) -> tuple[str, list[str]]:
    """The word after the command, which help texts call `name`, and the arguments that follow it.

    Help without the word is that of `options`, the default options.
    """
    if arguments[:1] and arguments[0] in HELP:
        parse(f"{command} {name}", options, ["--help"])
    if not arguments or arguments[0].startswith("-"):
        choices = f"; available: {', '.join(all_names())}" if name == "GAME" else ""
        raise InputError(f"azjax {command} needs a {name} before its options{choices}; `azjax --help` tells more")
    return arguments[0], arguments[1:]


def parse(prog: str, defaults: Options, arguments: list[str]) -> Options:
    """Parses flags into a dataclass; see `parse_with_tyro`."""
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
    return cast(Options, parse_with_tyro(type(defaults), arguments, f"azjax {prog}", default=defaults, config=config))


def parse_with_game(
    prog: str,
    name: str,
    defaults: Callable[[AnyGame], Options],
    arguments: list[str],
    make_game: Callable[..., AnyGame] = make_checked,
) -> tuple[Options, AnyGame]:
    """Parses the flags of a command and of the game `name`, side by side.

    Args:
      prog: the command as it was typed, before the name of the game.
      name: see `azjax.make`.
      defaults: the default options of the command, which may depend on the game.
      arguments: the flags.
      make_game: makes the game of a name and options.
    """
    parameters = typed_options(name)
    for parameter in parameters:
        if inspect.Parameter.empty in (parameter.annotation, parameter.default):
            raise InputError(
                f"{name}: its option {parameter.name} needs a type and a default, as `{parameter.name}: int = 3`"
            )
        if type(parameter.default).__hash__ is None:
            raise InputError(f"{name}: the default of its option {parameter.name} must be a number, a text or a tuple")
    fields = [(p.name, p.annotation, dataclasses.field(default=p.default)) for p in parameters]
    game_options = dataclasses.make_dataclass(f"{name}_options", fields, frozen=True)
    # Its `Args` describe the options.
    game_options.__doc__ = inspect.getdoc(factory(name)) or f"Options of {name}."
    # The game comes first: the defaults of all other options depend on it.
    of_game = f"azjax {prog} {name}"
    first, _ = parse_with_tyro(game_options, arguments, of_game, return_unknown_args=True, add_help=False)
    default = defaults(make_game(name, **vars(first)))
    command = prog.split()[0]
    for parameter in parameters:
        if parameter.name in _option_names(default):
            raise InputError(f"{name}: its option {parameter.name} is one of azjax {command} too: give it another name")
    both = dataclasses.make_dataclass(
        "Options",
        [(command, Annotated[type(default), tyro.conf.arg(name="")], default), ("game", game_options, game_options())],
        frozen=True,
    )
    both.__doc__ = (inspect.getdoc(type(default)) or "").partition("\n")[0]
    parsed: Any = parse(f"{prog} {name}", both(), arguments)
    return cast(Options, getattr(parsed, command)), make_game(name, **vars(parsed.game))


def _option_names(options: Any) -> set[str]:
    """The names of the options of a command, those of nested dataclasses too."""
    values = [(field.name, getattr(options, field.name)) for field in dataclasses.fields(options)]
    nested = [_option_names(value) if dataclasses.is_dataclass(value) else {name} for name, value in values]
    return set().union(*nested)


@dataclasses.dataclass(frozen=True)
class _GameName:
    game: str | None = None


def parse_with_players(
    command: str, count: int | None, defaults: Options, arguments: list[str]
) -> tuple[Options, AnyGame, list[str]]:
    """Parses players and flags.

    Args:
      command: the name of the command.
      count: the number of players; None for two or more.
      defaults: the default options of the command.
      arguments: the players, then the flags.

    Returns:
      the options; the game, which the flag `--game` names or else the players know; the players as they were typed.

    Raises:
      InputError: too few players, no game, or players of different games and no `--game`.
    """
    words = list(itertools.takewhile(lambda word: not word.startswith("-"), arguments))
    flags = arguments[len(words) :]
    if count is None:
        words = [spec for word in words for spec in every_checkpoint(word)]
    if not words and any(flag in HELP for flag in flags):
        parse(f"{command} {'PLAYER' if count else 'A B ...'}", defaults, ["--help"])
    if len(words) < (count or 2):
        raise InputError(f"azjax {command} needs {_PLAYERS[count]} before its options; `azjax --help` tells more")
    specs = words[:count]
    flags = words[len(specs) :] + flags  # tyro refuses the words that are too many
    prog = " ".join([command, *specs])
    games = [(spec, game) for spec in specs if (game := game_of(spec)) is not None]
    if games and not any(flag.partition("=")[0] == "--game" for flag in flags):
        game = games[0][1]
        for spec, other in games[1:]:
            if other.name != game.name:
                raise InputError(
                    f"{games[0][0]} plays {game.name} and {spec} plays {other.name}: choose players of one game"
                )
            if other != game:
                raise InputError(f"{spec} was trained on {other} and not on {game}: name one by --game and its options")
        _refuse_rules(game, flags, defaults)
        return parse(prog, defaults, flags), game, specs
    named, rest = parse_with_tyro(_GameName, flags, f"azjax {prog}", return_unknown_args=True, add_help=False)
    if named.game is None:
        if any(flag in HELP for flag in flags):
            parse(f"{prog} --game GAME", defaults, ["--help"])
        load_player(specs[0])  # raises the error that lists the players
    options, game = parse_with_game(f"{prog} --game", str(named.game), lambda _: defaults, rest)
    return options, game, specs


def _refuse_rules(game: AnyGame, flags: list[str], defaults: object) -> None:
    """Options of the rules need the name of the game."""
    names = inspect.signature(factory(game.name)).parameters.keys() - vars(defaults).keys()
    for flag in flags:
        option = flag.partition("=")[0]
        if option.startswith("--") and option.removeprefix("--").replace("-", "_") in names:
            raise InputError(f"{option} is an option of {game.name}: add --game {game.name}")


def split_simulations(spec: str, options: _AgentOptions) -> tuple[str, _AgentOptions]:
    """The agent of PLAYER:SIMULATIONS, and the options with these simulations; other players and their options.

    Raises:
      InputError: a number out of range.
    """
    agent, level = split_level(spec)
    number = whole_number(level)
    _check_number(spec, options.num_simulations)
    return (spec, options) if number is None else (agent, dataclasses.replace(options, num_simulations=number))


def _check_number(spec: str, num_simulations: int | None) -> None:
    """Refuses two numbers of simulations."""
    number = whole_number(split_level(spec)[1])
    if None not in (number, num_simulations) and number != num_simulations:
        raise InputError(f"{spec} names {number} simulations, and num_simulations is {num_simulations}: leave out one")


def check_games(games: int) -> None:
    """Checks the number of games of a match."""
    if games < 2 or games % 2:
        raise InputError(f"games must be even and at least 2, so that both move first equally; got {games}")
    if games > _MOST_GAMES:
        raise InputError(f"games must be at most {_MOST_GAMES:,}, got {games:,}")


def check_seed(seed: int) -> None:
    """Checks a seed of `jax.random.key`."""
    if not 0 <= seed < 2**32:
        raise InputError(f"seed must be 0..2^32 - 1, got {seed}")
