"""The objectives of a sweep: mistakes, points against an opponent, or a rating among fixed opponents."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import jax

from azjax.agents import check_level, game_of, load_player
from azjax.core.errors import InputError
from azjax.evaluation import Player, mistakes, play_match, play_round_robin, rate, solve, tabulate
from azjax.evaluation.ratings import pairings_of
from azjax.evaluation.standard_players import num_simulations_of
from azjax.games.game import AnyGame
from azjax.report.intervals import NO_BOUNDS

Measure: TypeAlias = Callable[[Path, int], float]
"""`measure(run_folder, seed)`: the objective of the newest checkpoint of a run."""

Direction = Literal["minimize", "maximize"]

_AMONG = 2**31 - 1  # in place of a seed


@runtime_checkable
class Objective(Protocol):
    """What is measured of every run.

    Attributes:
      direction: `minimize` or `maximize`, as Optuna names them.
      unit: the unit of the values, in the plural.
      bounds: the lowest and the highest possible value.
    """

    direction: ClassVar[Direction]
    unit: ClassVar[str]
    bounds: ClassVar[tuple[float, float]]

    def check(self, game: AnyGame) -> None:
        """Checks what can be checked quickly.

        Raises:
          InputError: an opponent is unknown or plays another game.
        """
        ...

    def prepare(self, game: AnyGame) -> Measure:
        """Does the work that all runs share: solves the game, or plays the matches among the opponents.

        Raises:
          InputError: the game cannot be solved, or an opponent cannot play.
        """
        ...


@dataclasses.dataclass(frozen=True)
class Mistakes:
    """The number of positions of a solved game in which the player loses value.

    Attributes:
      num_simulations: simulations of the player's search; 0 for the best move of the network alone.
    """

    num_simulations: int = 0
    direction: ClassVar[Direction] = "minimize"
    unit: ClassVar[str] = "mistakes"
    bounds: ClassVar[tuple[float, float]] = (0, math.inf)

    def __post_init__(self) -> None:
        _at_least(self, num_simulations=0)

    def check(self, game: AnyGame) -> None:
        """Does nothing: there is no opponent, and `prepare` solves the game."""

    def prepare(self, game: AnyGame) -> Measure:
        solution = solve(game)

        def measure(folder: Path, seed: int) -> float:
            player = _player(folder, game, self.num_simulations)
            return mistakes(solution, tabulate(player, solution, jax.random.key(seed))).count

        return measure


@dataclasses.dataclass(frozen=True)
class Score:
    """Points a game against a fixed opponent; each player moves first in half of the games.

    Attributes:
      opponent: a PLAYER, such as `uct:100`.
      games: number of games, even.
      opening_plies: number of random plies at the beginning of a game.
      num_simulations: simulations of the player's search; 0 for the best move of the network alone.
    """

    opponent: str
    games: int = 200
    opening_plies: int = 2
    num_simulations: int = 0
    direction: ClassVar[Direction] = "maximize"
    unit: ClassVar[str] = "points a game"
    bounds: ClassVar[tuple[float, float]] = (0, 1)

    def __post_init__(self) -> None:
        _check_match(self)

    def check(self, game: AnyGame) -> None:
        _check_opponent(self.opponent, game)

    def prepare(self, game: AnyGame) -> Measure:
        opponent = load_player(self.opponent, game)

        def measure(folder: Path, seed: int) -> float:
            player = _player(folder, game, self.num_simulations)
            key = jax.random.key(seed)
            return play_match(game, player, opponent, self.games, key, opening_plies=self.opening_plies).score

        return measure


@dataclasses.dataclass(frozen=True)
class Elo:
    """A rating among fixed opponents. Their matches with each other are played once.

    Attributes:
      opponents: PLAYERs, such as `random` and `uct:100`; the first one is rated 0.
      games: number of games of each match, even.
      opening_plies: number of random plies at the beginning of a game.
      num_simulations: simulations of the player's search; 0 for the best move of the network alone.
    """

    opponents: tuple[str, ...]
    games: int = 200
    opening_plies: int = 2
    num_simulations: int = 0
    direction: ClassVar[Direction] = "maximize"
    unit: ClassVar[str] = "Elo"
    bounds: ClassVar[tuple[float, float]] = NO_BOUNDS

    def __post_init__(self) -> None:
        _check_match(self)
        if not self.opponents or len(set(self.opponents)) < len(self.opponents):
            raise InputError(f"opponents must be one or more different PLAYERs, got {list(self.opponents)}")

    def check(self, game: AnyGame) -> None:
        for opponent in self.opponents:
            _check_opponent(opponent, game)

    def prepare(self, game: AnyGame) -> Measure:
        opponents = [dataclasses.replace(load_player(spec, game), name=spec) for spec in self.opponents]
        plies = self.opening_plies
        # The same key in every worker, so that all runs are rated on one scale; that of no seed.
        key = jax.random.fold_in(jax.random.key(0), _AMONG)
        among = play_round_robin(game, opponents, self.games, key, opening_plies=plies) if opponents[1:] else []

        def measure(folder: Path, seed: int) -> float:
            player = _player(folder, game, self.num_simulations)
            keys = jax.random.split(jax.random.key(seed), len(opponents))
            own = [
                play_match(game, player, opponent, self.games, key, opening_plies=plies)
                for opponent, key in zip(opponents, keys, strict=True)
            ]
            ratings = rate(pairings_of([*among, *own]), anchor=opponents[0].name)
            return ratings.elo[ratings.players.index(player.name)]

        return measure


OBJECTIVES: dict[str, type[Mistakes | Score | Elo]] = {"mistakes": Mistakes, "score": Score, "elo": Elo}


def _player(folder: Path, game: AnyGame, num_simulations: int) -> Player:
    """The newest checkpoint of a run; without simulations, the best move of its network."""
    if not num_simulations:
        return load_player(str(folder), game, level="medium")
    return load_player(str(folder), game, num_simulations=num_simulations)


def _check_opponent(spec: str, game: AnyGame) -> None:
    own = game_of(spec)
    check_level(spec)
    if own is None:
        num_simulations_of(spec)  # raises if it is unknown
    elif own != game:
        raise InputError(f"opponent {spec} plays {own}, and the study is of {game}")


def _check_match(objective: Score | Elo) -> None:
    _at_least(objective, num_simulations=0, opening_plies=0)
    if objective.games < 2 or objective.games % 2:
        raise InputError(f"games must be even and at least 2, so that both move first equally; got {objective.games}")


def _at_least(objective: Mistakes | Score | Elo, **lowest: int) -> None:
    for name, low in lowest.items():
        if getattr(objective, name) < low:
            raise InputError(f"{name} must be at least {low}, got {getattr(objective, name)}")
