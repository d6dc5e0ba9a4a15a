"""Matches: many games between two players, each moving first in half of them.

Axis letters: `B` games played side by side.
"""

import collections
import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import chex
import jax
import numpy as np

from azjax.core.errors import InputError
from azjax.evaluation.external import ExternalPlayer
from azjax.evaluation.host_step import step_all
from azjax.evaluation.openings import random_openings, starts_of
from azjax.evaluation.seats import Contestant, Seats, sit_down
from azjax.evaluation.sequential import SequentialTest
from azjax.games.game import Game

_NORMAL_95 = 1.959964  # quantile of the normal distribution for two-sided 95%


@dataclasses.dataclass(frozen=True)
class Record:
    """Results of games, as one player sees them."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Points a game: 1 for a win, 1/2 for a draw; NaN without games."""
        return (self.wins + self.draws / 2) / self.games if self.games else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the score (Wilson 1927), with draws counted as so many more games as they vary less.

        Games must be independent: two players without chance in them play the same game again and again.
        """
        if not self.games:
            return 0.0, 1.0
        # Share of the variance that the draws take away, s (1 - s) - draws / 4; a little less of it in few games.
        no_draws = self.score * (1 - self.score) + _NORMAL_95**2 / (16 * self.games)
        spread = _NORMAL_95**2 / self.games * (1 - self.draws / (4 * self.games * no_draws))
        centre = (self.score + spread / 2) / (1 + spread)
        half = math.sqrt(spread * self.score * (1 - self.score) + spread**2 / 4) / (1 + spread)
        return max(0.0, centre - half), min(1.0, centre + half)

    def __add__(self, other: "Record") -> "Record":
        return Record(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """What a match gave, as its first player sees it.

    Attributes:
      first: name of the first player.
      second: name of the second one.
      rewards: of the first player in each game, which it began if the game's number is even; above 0 is a win.
      actions: of each game, from its start, with its opening.
      starts: NumPy leaves [n, ...]; games 2i and 2i + 1 begin at start i modulo n.
      accepted: the difference in Elo that a sequential test stopped at; None without one, or where it found neither.
      forfeits: why each game was lost, where an external player broke it off; None where the rules ended it.
    """

    first: str
    second: str
    rewards: tuple[float, ...]
    actions: tuple[tuple[int, ...], ...]
    starts: Any = dataclasses.field(compare=False, repr=False)
    accepted: float | None = None
    forfeits: tuple[str | None, ...] = ()

    @property
    def plies(self) -> tuple[int, ...]:
        """Of each game."""
        return tuple(len(actions) for actions in self.actions)

    @property
    def moving_first(self) -> Record:
        """Games in which the first player was player 0."""
        return _record(self.rewards[::2])

    @property
    def moving_second(self) -> Record:
        """Games in which the first player was player 1."""
        return _record(self.rewards[1::2])

    @property
    def mean_length(self) -> float:
        """Plies of a game."""
        return sum(self.plies) / len(self.plies)

    @property
    def total(self) -> Record:
        """All games."""
        return self.moving_first + self.moving_second

    @property
    def games(self) -> int:
        return self.total.games

    @property
    def wins(self) -> int:
        return self.total.wins

    @property
    def draws(self) -> int:
        return self.total.draws

    @property
    def losses(self) -> int:
        return self.total.losses

    @property
    def score(self) -> float:
        """Points a game, 0..1."""
        return self.total.score

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of the score."""
        return self.total.interval


def play_match(
    game: Game,
    first: Contestant,
    second: Contestant,
    num_games: int,
    key: chex.PRNGKey,
    *,
    batch_size: int = 256,
    start_states: Any = None,
    opening_plies: int = 0,
    sequential_test: SequentialTest | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MatchResult:
    """Plays a match.

    Games come in pairs with one start and one opening, in which the players change seats.

    Args:
      game: the game.
      first: the player whose result it is.
      second: the other one.
      num_games: even, at least 2; the most, where a test may stop the match.
      key: consumed by the starts and by both players.
      batch_size: games played side by side, at most.
      start_states: unfinished positions to start from in turn, every leaf [n, ...]; the game's own start by default.
      opening_plies: of random moves that every game begins with, drawn again where they end the game.
      sequential_test: stops the match after a batch that makes it sure enough.
      progress: called with (finished games, num_games) after each batch.

    Raises:
      ValueError: num_games, batch_size or opening_plies out of range, or a finished start.
      RuntimeError: a game does not end within `max_plies`, openings end the game again and again, or an external player
        cannot play the game. What it does wrong in a game is a loss of that game.
    """
    if num_games < 2 or num_games % 2:
        raise InputError(f"num_games must be even and at least 2, so that both move first equally; got {num_games}")
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, got {batch_size}")
    if opening_plies < 0:
        raise InputError(f"opening_plies must be at least 0, got {opening_plies}")
    start_key, play_key = jax.random.split(key)
    if start_states is None:
        starts = starts_of(game, num_games // 2, start_key)
    elif np.any(start_states.terminated):
        raise InputError(f"start state {int(np.argmax(start_states.terminated))} is a finished game")
    else:
        starts = jax.tree.map(np.asarray, start_states)
    start = np.arange(num_games // 2) % len(starts.terminated)
    begun = jax.tree.map(lambda leaf: leaf[start], starts)
    states, openings = random_openings(game, opening_plies, jax.random.fold_in(start_key, 0), begun)
    players = (first, second)
    batch_size = min(batch_size, *(side.processes for side in players if isinstance(side, ExternalPlayer)), num_games)

    rewards: list[float] = []
    actions: list[tuple[int, ...]] = []
    forfeits: list[str | None] = []
    accepted = None
    with contextlib.ExitStack() as stack:
        sides = []
        for player in players:
            sides.append(sit_down(player, game))
            stack.callback(sides[-1].close)
        for number, begin in enumerate(range(0, num_games, batch_size)):
            games = np.arange(begin, min(begin + batch_size, num_games))
            pair, seat = games // 2, games % 2
            for side, of_side in zip(sides, (seat, 1 - seat), strict=True):
                side.begin(of_side, *(jax.tree.map(lambda leaf, at=pair: leaf[at], tree) for tree in (begun, states)))
            now = jax.tree.map(lambda leaf, at=pair: leaf[at], states)
            played = [list(opening) for opening in openings[pair].tolist()]
            won, broken_off = _play_batch(game, sides, seat, now, jax.random.fold_in(play_key, number), played)
            rewards += won.tolist()
            actions += [tuple(moves) for moves in played]
            forfeits += broken_off
            if progress is not None:
                progress(begin + len(games), num_games)
            if sequential_test is not None:
                accepted = sequential_test.accepted(rewards[: len(rewards) // 2 * 2])
                if accepted is not None:
                    break
    return MatchResult(first.name, second.name, tuple(rewards), tuple(actions), starts, accepted, tuple(forfeits))


def play_round_robin(
    game: Game,
    players: Sequence[Contestant],
    num_games: int,
    key: chex.PRNGKey,
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> list[MatchResult]:
    """Plays a match between each two of the players: the first with all others, then the second with those after it.

    Args:
      game: the game.
      players: at least two, each with a name of its own.
      num_games: of each match.
      key: consumed.
      progress: called with (finished games, games of all matches) after each batch.
      **options: of `play_match`.

    Raises:
      ValueError: fewer than two players, a name twice, or what `play_match` refuses.
    """
    names = [player.name for player in players]
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(f"matches need two players or more, each with a name of its own; got {', '.join(names)}")
    pairs = list(itertools.combinations(players, 2))
    found = []
    for number, (first, second) in enumerate(pairs):

        def tell(done: int, _: int, before: int = number * num_games) -> None:
            if progress is not None:
                progress(before + done, len(pairs) * num_games)

        found.append(
            play_match(game, first, second, num_games, jax.random.fold_in(key, number), progress=tell, **options)
        )
    return found


def _record(rewards: Iterable[float]) -> Record:
    signs = collections.Counter(np.sign(reward) for reward in rewards)
    return Record(signs[1], signs[0], signs[-1])


def _play_batch(
    game: Game, sides: Sequence[Seats], seat: np.ndarray, states: Any, key: chex.PRNGKey, played: list[list[int]]
) -> tuple[np.ndarray, list[str | None]]:
    """Plays B games to the end.

    Args:
      game: the game.
      sides: the first and the second player of the match, who have sat down.
      seat: int [B]; 0 where the first player is player 0.
      states: NumPy leaves [B, ...].
      key: consumed by both players.
      played: the actions of each game so far; those that follow are added.

    Returns:
      The first player's sum of rewards, float [B], and why each game was broken off, if it was.
    """
    rewards = np.zeros(len(seat))
    forfeits: list[str | None] = [None] * len(seat)
    for ply in range(game.max_plies):
        running = ~states.terminated & [forfeit is None for forfeit in forfeits]
        if not running.any():
            break
        ply_keys = jax.random.split(jax.random.fold_in(key, ply), len(sides))
        actions = np.zeros(len(seat), np.int32)
        for number, (side, side_key) in enumerate(zip(sides, ply_keys, strict=True)):
            # The player to move is read from the state: a player may move twice in a row.
            rows = np.flatnonzero(running & (states.current_player == seat ^ number))
            chosen = side.choose(side_key, states, rows, played) if len(rows) else []
            for row, action in zip(rows, chosen, strict=True):
                if isinstance(action, str):
                    forfeits[row] = action
                    running[row] = False
                    rewards[row] = -1 if number == 0 else 1
                else:
                    actions[row] = action
                    played[row].append(action)
        for side in sides:
            side.observe(actions)
        # Stepping a finished game changes nothing and pays nothing.
        states = step_all(game, states, actions)
        rewards += np.where(running, np.where(seat == 0, states.rewards[:, 0], states.rewards[:, 1]), 0.0)
    over = states.terminated | [forfeit is not None for forfeit in forfeits]
    if not over.all():
        raise RuntimeError(f"{game.name}: {int((~over).sum())} games go on after {game.max_plies} plies")
    return rewards, forfeits
