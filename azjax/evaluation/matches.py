"""Matches: many games between two players, each moving first in half of them.

They are played on the host, between any two players; those of `azjax.evaluation.device_match` are one jitted function.
Axis letters: `G` games played side by side.
"""

import collections
import contextlib
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, PRNGKeyArray

from azjax.core.errors import InputError
from azjax.evaluation.external import ExternalPlayer, ExternalSeats
from azjax.evaluation.host_games import host_step, random_openings, rows_of, starts_of
from azjax.evaluation.openspiel import OpenSpielPlayer, OpenSpielSeats
from azjax.evaluation.players import Player, choose
from azjax.evaluation.seats import RESIGNATION, PolicySeats, SeatNumbers, Seats
from azjax.evaluation.sequential import SequentialTest
from azjax.evaluation.timed import TimedPlayer, TimedSeats
from azjax.games.game import AnyGame, State

_GAMES_BETWEEN_TESTS = 32
_NORMAL_95 = 1.959964  # quantile of the normal distribution for two-sided 95%
Contestant = Player | TimedPlayer | ExternalPlayer | OpenSpielPlayer
"""A player that can take part in a match."""


@dataclasses.dataclass(frozen=True)
class Record:
    """Numbers of results of games, for one player."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Points per game: 1 for a win, 1/2 for a draw; NaN without games."""
        return (self.wins + self.draws / 2) / self.games if self.games else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the score (Wilson 1927), narrowed by the smaller variance of draws.

        It assumes independent games: two deterministic players repeat the same game.
        """
        if not self.games:
            return 0.0, 1.0
        # The share of the variance that draws take away, s (1 - s) - draws / 4; a little less of it in few games.
        no_draws = self.score * (1 - self.score) + _NORMAL_95**2 / (16 * self.games)
        spread = _NORMAL_95**2 / self.games * (1 - self.draws / (4 * self.games * no_draws))
        centre = (self.score + spread / 2) / (1 + spread)
        half = math.sqrt(spread * self.score * (1 - self.score) + spread**2 / 4) / (1 + spread)
        return max(0.0, centre - half), min(1.0, centre + half)

    def __add__(self, other: "Record") -> "Record":
        return Record(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """The games of a match, and its results for the first player.

    Attributes:
      first: name of the first player, who is player 0 in games of even number.
      second: name of the second player.
      rewards: of the first player, by game; above 0 is a win.
      actions: by game, from its start, its opening included.
      starts: NumPy leaves [n, ...]; games 2i and 2i + 1 begin at start i modulo n.
      accepted: the Elo difference that a sequential test accepted; None without a test, or if it stayed undecided.
      ends: by game, `resignation` where its loser gave it up, or why an external player forfeited it; None where the
        rules ended it.
      move_seconds: of the first and of the second player, those of each move; empty for players without a clock.
      opening_plies: of the actions of each game, the first ones, which were drawn at random.
    """

    first: str
    second: str
    rewards: tuple[float, ...]
    actions: tuple[tuple[int, ...], ...]
    starts: State = dataclasses.field(compare=False, repr=False)
    accepted: float | None = None
    ends: tuple[str | None, ...] = ()
    move_seconds: tuple[tuple[float, ...], tuple[float, ...]] = dataclasses.field(default=((), ()), compare=False)
    opening_plies: int = 0

    @property
    def plies(self) -> tuple[int, ...]:
        """The length of each game."""
        return tuple(len(actions) for actions in self.actions)

    @property
    def mean_length(self) -> float:
        """Plies per game."""
        return sum(self.plies) / len(self.plies)

    @property
    def moving_first(self) -> Record:
        """Games in which the first player was player 0."""
        return _record(self.rewards[::2])

    @property
    def moving_second(self) -> Record:
        """Games in which the first player was player 1."""
        return _record(self.rewards[1::2])

    @property
    def total(self) -> Record:
        """All games."""
        return self.moving_first + self.moving_second

    @property
    def forfeits(self) -> tuple[str | None, ...]:
        """By game, why an external player forfeited it; None where it was played out or resigned."""
        return tuple(map(_forfeit, self.ends or [None] * len(self.rewards)))

    @property
    def num_forfeits(self) -> int:
        """Games that an external player forfeited."""
        return sum(forfeit is not None for forfeit in self.forfeits)

    @property
    def played_out(self) -> Record:
        """The games that nobody forfeited."""
        first, second = self.played_out_by_seat
        return Record(first.wins + second.wins, first.draws + second.draws, first.losses + second.losses)

    @property
    def played_out_by_seat(self) -> tuple[Record, Record]:
        """The games that nobody forfeited, with the first player moving first, and moving second."""
        games = list(zip(self.rewards, self.forfeits, strict=True))
        first, second = (_record(reward for reward, forfeit in games[seat::2] if forfeit is None) for seat in (0, 1))
        return first, second

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
        """Points per game, 0..1."""
        return self.total.score

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of the score."""
        return self.total.interval


def play_match(
    game: AnyGame,
    first: Contestant,
    second: Contestant,
    num_games: int,
    key: PRNGKeyArray,
    *,
    batch_size: int = 256,
    start_states: State | None = None,
    opening_plies: int = 0,
    judge: Player | None = None,
    balance: float = 0.3,
    sequential_test: SequentialTest | None = None,
    on_batch: Callable[[MatchResult, int], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MatchResult:
    """Plays a match.

    Games come in pairs with one start and one opening, in which the players change seats.

    Args:
      game: the game.
      first: the player whose results are reported.
      second: its opponent.
      num_games: even, at least 2; the maximum, where a test may stop the match.
      key: consumed by the starts and by both players.
      batch_size: games played side by side, at most.
      start_states: unfinished positions to start from in turn, every leaf [n, ...]; the game's own start by default.
      opening_plies: random moves at the beginning of every game, drawn again where they end the game.
      judge: openings are drawn again, too, unless its value of the position after them is -`balance`..`balance`.
      balance: the largest value, 0..1, with which the judge takes neither side to be ahead.
      sequential_test: stops the match after the batch that decides it, of at most 32 games.
      on_batch: called after each batch with the result so far and the number of the first game of the batch, so that
        games are kept of a match that does not end.
      progress: called with (finished games, num_games) after each batch.

    Raises:
      InputError: num_games, batch_size, opening_plies or balance out of range, a finished start, a judge that has no
        values or no openings to judge, only openings that end the game or are not balanced, an external player that
        cannot play the game (its fault within a game is a loss of that game), or a game that does not end within
        `max_plies`.
    """
    if num_games < 2 or num_games % 2:
        raise InputError(f"num_games must be even and at least 2, so that both move first equally; got {num_games}")
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, got {batch_size}")
    if opening_plies < 0:
        raise InputError(f"opening_plies must be at least 0, got {opening_plies}")
    if judge is not None and not opening_plies:
        raise InputError("a judge needs openings: opening_plies must be at least 1, got 0")
    if not 0 <= balance <= 1:
        raise InputError(f"balance must be 0..1, got {balance}")
    start_key, play_key = jax.random.split(key)
    if start_states is None:
        starts = starts_of(game, num_games // 2, start_key)
    elif not len(start_states.terminated):
        raise InputError("start_states must hold at least one position, got none")
    elif np.any(start_states.terminated):
        raise InputError(f"start state {int(np.argmax(start_states.terminated))} is a finished game")
    else:
        starts = jax.tree.map(np.asarray, start_states)
    begun = rows_of(starts, np.arange(num_games // 2) % len(starts.terminated))
    is_fair = None if judge is None else functools.partial(_is_balanced, judge, balance)
    states, openings = random_openings(game, opening_plies, jax.random.fold_in(start_key, 0), begun, is_fair)
    players = (first, second)
    limits = [side.processes for side in players if isinstance(side, ExternalPlayer)]
    if sequential_test is not None:
        limits.append(_GAMES_BETWEEN_TESTS)
    batch_size = min(batch_size, num_games, *limits)

    rewards: list[float] = []
    actions: list[tuple[int, ...]] = []
    ends: list[str | None] = []
    accepted = None
    sides: list[Seats] = []

    def result() -> MatchResult:
        return MatchResult(
            first=first.name,
            second=second.name,
            rewards=tuple(rewards),
            actions=tuple(actions),
            starts=starts,
            accepted=accepted,
            ends=tuple(ends),
            move_seconds=(tuple(sides[0].seconds), tuple(sides[1].seconds)),
            opening_plies=opening_plies,
        )

    with contextlib.ExitStack() as stack:
        for player in players:
            sides.append(_seats_of(player, game))
            stack.callback(sides[-1].close)
        for number, begin in enumerate(range(0, num_games, batch_size)):
            games = np.arange(begin, min(begin + batch_size, num_games))
            pair, seat = games // 2, games % 2
            now = rows_of(states, pair)
            for side, seat_of_side in zip(sides, (seat, 1 - seat), strict=True):
                side.begin(seat_of_side, rows_of(begun, pair), now)
            played: list[list[int]] = openings[pair].tolist()
            batch_rewards, batch_ends = _play_batch(
                game, sides, seat, now, jax.random.fold_in(play_key, number), played
            )
            rewards += batch_rewards.tolist()
            actions += [tuple(moves) for moves in played]
            ends += batch_ends
            if on_batch is not None:
                on_batch(result(), begin)
            if progress is not None:
                progress(begin + len(games), num_games)
            if sequential_test is not None:
                accepted = sequential_test.accepted(_played_out_pairs(rewards, list(map(_forfeit, ends))))
                if accepted is not None:
                    break
    return result()


def play_round_robin(
    game: AnyGame,
    players: Sequence[Contestant],
    num_games: int,
    key: PRNGKeyArray,
    *,
    played: Callable[[str, str], int] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> list[MatchResult]:
    """Plays a match between each two of the players: the first with all others, then the second with those after it.

    Args:
      game: the game.
      players: at least two, with different names.
      num_games: of each two players.
      key: consumed.
      played: the number of games that the players of two names have played already; these are not played again.
      progress: called with (finished games, games of all matches) after each batch.
      **options: of `play_match`.

    Raises:
      InputError: fewer than two players, a name twice, or an argument that `play_match` refuses.
    """
    names = [player.name for player in players]
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(f"matches need two players or more, each with a name of its own; got {', '.join(names)}")
    results: list[MatchResult] = []
    pairs = list(itertools.combinations(players, 2))
    # Even, since a match plays each opening twice.
    before = [0 if played is None else played(first.name, second.name) // 2 * 2 for first, second in pairs]
    missing = [max(num_games - games, 0) for games in before]
    for number, ((first, second), games, count) in enumerate(zip(pairs, before, missing, strict=True)):
        if not count:
            continue

        def report(done: int, _: int, earlier: int = sum(missing[:number])) -> None:
            if progress is not None:
                progress(earlier + done, sum(missing))

        match_key = jax.random.fold_in(key, number)
        if games:
            match_key = jax.random.fold_in(match_key, games)  # for openings that were not played yet
        results.append(play_match(game, first, second, count, match_key, progress=report, **options))
    return results


def _is_balanced(judge: Player, balance: float, key: PRNGKeyArray, states: State) -> Bool[np.ndarray, "G"]:
    """Where the judge takes neither side to be ahead."""
    values = np.asarray(choose(judge, key, states).value)
    running = values[~np.asarray(states.terminated)]
    if running.size and np.isnan(running).all():
        raise InputError(f"{judge.name} cannot judge openings: it has no values")
    balanced: np.ndarray = np.abs(values) <= balance
    return balanced


def _seats_of(player: Contestant, game: AnyGame) -> Seats:
    if isinstance(player, ExternalPlayer):
        return ExternalSeats(player, game)
    if isinstance(player, TimedPlayer):
        return TimedSeats(player)
    return OpenSpielSeats(player, game) if isinstance(player, OpenSpielPlayer) else PolicySeats(player)


def _forfeit(end: str | None) -> str | None:
    return None if end == RESIGNATION else end


def _record(rewards: Iterable[float]) -> Record:
    signs = collections.Counter(np.sign(reward) for reward in rewards)
    return Record(signs[1], signs[0], signs[-1])


def _played_out_pairs(rewards: Sequence[float], forfeits: Sequence[str | None]) -> list[float]:
    """The rewards of the pairs of games of which neither was forfeited."""
    pairs = (slice(number, number + 2) for number in range(0, len(rewards) - 1, 2))
    return [reward for pair in pairs if not any(forfeits[pair]) for reward in rewards[pair]]


def _play_batch(
    game: AnyGame,
    sides: Sequence[Seats],
    seat: SeatNumbers,
    states: State,
    key: PRNGKeyArray,
    played: list[list[int]],
) -> tuple[np.ndarray, list[str | None]]:
    """Plays G games to the end.

    Args:
      game: the game.
      sides: the seats of the first and of the second player of the match.
      seat: the number of the first player in each game.
      states: NumPy leaves [G, ...].
      key: consumed by both players.
      played: the actions of each game so far; those that follow are appended.

    Returns:
      The first player's sum of rewards, float [G], and the ends of the games, as in `MatchResult`.
    """
    rewards = np.zeros(len(seat))
    ends: list[str | None] = [None] * len(seat)
    for ply in range(game.max_plies):
        running = ~np.asarray(states.terminated) & [end is None for end in ends]
        if not running.any():
            break
        ply_keys = jax.random.split(jax.random.fold_in(key, ply), len(sides))
        actions = np.zeros(len(seat), np.int32)
        for number, (side, side_key) in enumerate(zip(sides, ply_keys, strict=True)):
            # The player to move is read from the state: a player may move twice in a row.
            rows = np.flatnonzero(running & (states.current_player == seat ^ number))
            moves = side.choose(side_key, states, rows, played) if len(rows) else []
            for row, move in zip(rows, moves, strict=True):
                if isinstance(move, str):
                    ends[row], running[row], rewards[row] = move, False, (-1, 1)[number]
                else:
                    actions[row] = move
                    played[row].append(move)
        for side in sides:
            side.observe(actions)
        # Stepping a finished game changes nothing and pays nothing.
        states = host_step(game, states, actions)
        rewards += np.where(running, np.where(seat == 0, states.rewards[:, 0], states.rewards[:, 1]), 0.0)
    over = np.asarray(states.terminated) | [end is not None for end in ends]
    if not over.all():
        raise InputError(
            f"{game.name}: {int((~over).sum())} games go on after {game.max_plies} plies: a player chose actions that "
            "are not legal, or the game breaks a law (`azjax check` tells which)"
        )
    return rewards, ends
