"""Matches: many games between two players, each moving first in half of them.

Axis letters: `B` games played side by side.
"""

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.evaluation.players import Player, act, observe, start_memory
from azjax.evaluation.sequential import SequentialTest
from azjax.games.game import Game, random_legal_action

_SMALLEST_BUCKET = 16
_OPENING_ATTEMPTS = 100
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
    """

    first: str
    second: str
    rewards: tuple[float, ...]
    actions: tuple[tuple[int, ...], ...]
    starts: Any = dataclasses.field(compare=False, repr=False)
    accepted: float | None = None

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
    first: Player,
    second: Player,
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
      RuntimeError: a game does not end within `max_plies`, or all openings do.
    """
    if num_games < 2 or num_games % 2:
        raise ValueError(f"num_games must be even and at least 2, so that both move first equally; got {num_games}")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if opening_plies < 0:
        raise ValueError(f"opening_plies must be at least 0, got {opening_plies}")
    start_key, play_key = jax.random.split(key)
    if start_states is None:
        start_states = _starts(game, jax.random.split(start_key, num_games // 2))
    elif np.any(start_states.terminated):
        raise ValueError(f"start state {int(np.argmax(start_states.terminated))} is a finished game")
    starts = jax.tree.map(np.asarray, start_states)
    pair = np.arange(num_games) // 2
    begun = jax.tree.map(lambda leaf: leaf[np.arange(num_games // 2) % len(starts.terminated)], starts)
    openings = np.zeros((num_games // 2, 0), np.int32)
    if opening_plies:
        begun, openings = _openings(game, opening_plies, jax.random.fold_in(start_key, 0), begun)
    seat = np.arange(num_games) % 2  # of the first player

    rewards: list[float] = []
    actions: list[tuple[int, ...]] = []
    accepted = None
    for number, begin in enumerate(range(0, num_games, batch_size)):
        games = slice(begin, min(begin + batch_size, num_games))
        states = jax.tree.map(lambda leaf: leaf[pair[games]], begun)
        batch_key = jax.random.fold_in(play_key, number)
        won, played = _play_batch(game, (first, second), seat[games], states, batch_key)
        rewards += won.tolist()
        actions += [(*openings[p].tolist(), *moves) for p, moves in zip(pair[games], played, strict=True)]
        if progress is not None:
            progress(games.stop, num_games)
        if sequential_test is not None:
            accepted = sequential_test.accepted(rewards[: len(rewards) // 2 * 2])
            if accepted is not None:
                break
    return MatchResult(first.name, second.name, tuple(rewards), tuple(actions), starts, accepted)


def play_round_robin(
    game: Game,
    players: Sequence[Player],
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
        raise ValueError(f"matches need two players or more, each with a name of its own; got {', '.join(names)}")
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
    game: Game, players: tuple[Player, Player], seat: np.ndarray, states: Any, key: chex.PRNGKey
) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Plays B games to the end.

    Args:
      game: the game.
      players: the first and the second player of the match.
      seat: int [B]; 0 where the first player is player 0.
      states: NumPy leaves [B, ...].
      key: consumed by both players.

    Returns:
      The first player's sum of rewards, float [B], and the actions of each game.
    """
    rewards = np.zeros(len(seat))
    played: list[list[int]] = [[] for _ in seat]
    memories = [start_memory(player, states) for player in players]
    for ply in range(game.max_plies):
        running = ~states.terminated
        if not running.any():
            break
        ply_keys = jax.random.split(jax.random.fold_in(key, ply), len(players))
        actions = np.zeros(len(seat), np.int32)
        for number, (player, player_key) in enumerate(zip(players, ply_keys, strict=True)):
            # The player to move is read from the state: a player may move twice in a row.
            rows = np.flatnonzero(running & (states.current_player == seat ^ number))
            if len(rows):
                actions[rows], memories[number] = _choose(player, player_key, states, memories[number], rows)
        memories = [observe(*of_player, actions) for of_player in zip(players, memories, strict=True)]
        # Stepping a finished game changes nothing and pays nothing.
        states = jax.tree.map(np.asarray, _step(game, states, actions))
        rewards += np.where(seat == 0, states.rewards[:, 0], states.rewards[:, 1])
        for row in np.flatnonzero(running):
            played[row].append(int(actions[row]))
    if not states.terminated.all():
        raise RuntimeError(f"{game.name}: {int((~states.terminated).sum())} games go on after {game.max_plies} plies")
    return rewards, [tuple(moves) for moves in played]


def _choose(player: Player, key: chex.PRNGKey, states: Any, memory: Any, rows: np.ndarray) -> tuple[np.ndarray, Any]:
    """int32 [rows]: the player's moves in these rows; and its memory of all games.

    Rows are padded to a power of two so that few sizes are compiled.
    """
    bucket = max(_SMALLEST_BUCKET, 1 << (len(rows) - 1).bit_length())
    padded = np.resize(rows, bucket)
    asked = jax.tree.map(lambda leaf: jnp.asarray(leaf[padded]), states)
    actions, _, thought = act(player, key, asked, _take(memory, padded))
    # What was thought in the rows of the padding falls beyond the last game.
    put = np.where(np.arange(bucket) < len(rows), padded, len(states.terminated))
    return np.asarray(actions)[: len(rows)], _put(memory, put, thought)


@jax.jit
def _take(memory: Any, rows: chex.Array) -> Any:
    return jax.tree.map(lambda leaf: leaf[rows], memory)


@jax.jit
def _put(memory: Any, rows: chex.Array, thought: Any) -> Any:
    return jax.tree.map(lambda leaf, new: leaf.at[rows].set(new, mode="drop"), memory, thought)


@functools.partial(jax.jit, static_argnums=0)
def _starts(game: Game, keys: chex.PRNGKey) -> Any:
    return jax.vmap(game.init)(keys)


def _openings(game: Game, plies: int, key: chex.PRNGKey, states: Any) -> tuple[Any, np.ndarray]:
    """Random moves from every position that do not end the game: NumPy leaves [n, ...] and int32 [n, plies]."""
    wanted = np.arange(len(states.terminated))
    found, actions = states, np.zeros((len(wanted), plies), np.int32)
    for attempt in range(_OPENING_ATTEMPTS):
        tried = jax.tree.map(np.asarray, _random_moves(game, plies, jax.random.fold_in(key, attempt), states))
        good = wanted[~tried[0].terminated[wanted]]
        found = jax.tree.map(lambda old, new, rows=good: _replaced(old, rows, new[rows]), found, tried[0])
        actions[good] = tried[1][good]
        wanted = np.setdiff1d(wanted, good)
        if not len(wanted):
            return found, actions
    raise RuntimeError(f"{game.name}: {plies} random plies ended a game {_OPENING_ATTEMPTS} times in a row")


def _replaced(leaf: np.ndarray, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
    leaf = leaf.copy()
    leaf[rows] = new
    return leaf


@functools.partial(jax.jit, static_argnums=(0, 1))
def _random_moves(game: Game, plies: int, key: chex.PRNGKey, states: Any) -> tuple[Any, chex.Array]:
    def move(states: Any, key: chex.PRNGKey) -> tuple[Any, chex.Array]:
        keys = jax.random.split(key, len(states.terminated))
        actions = jax.vmap(functools.partial(random_legal_action, game))(keys, states)
        return jax.vmap(game.step)(states, actions), actions

    states, actions = jax.lax.scan(move, states, jax.random.split(key, plies))
    return states, actions.T


@functools.partial(jax.jit, static_argnums=0)
def _step(game: Game, states: Any, actions: chex.Array) -> Any:
    return jax.vmap(game.step)(states, actions)
