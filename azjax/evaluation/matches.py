"""Matches: many games between two players, each moving first in half of them.

They are played on the host, between any two players; those of `azjax.evaluation.device_match` are one jitted function.
Axis letters: `G` games played side by side.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, PRNGKeyArray

from azjax.core.errors import InputError
from azjax.evaluation.external import ExternalPlayer, ExternalSeats
from azjax.evaluation.host_games import host_step, random_openings, rows_of, starts_of
from azjax.evaluation.match_result import MatchResult, forfeit_of
from azjax.evaluation.openspiel import OpenSpielPlayer, OpenSpielSeats
from azjax.evaluation.players import Player, choose
from azjax.evaluation.seats import PolicySeats, SeatNumbers, Seats
from azjax.evaluation.sequential import SequentialTest
from azjax.evaluation.timed import TimedPlayer, TimedSeats
from azjax.games.arguments import check_is_game
from azjax.games.game import AnyGame, State

_GAMES_BETWEEN_TESTS = 32
Contestant = Player | TimedPlayer | ExternalPlayer | OpenSpielPlayer
"""A player that can take part in a match."""


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
    check_is_game(game)
    check_num_games(num_games)
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
    # Those that search one position after another gain nothing from games side by side; each that ended is kept.
    limits += [2 for side in players if isinstance(side, TimedPlayer | OpenSpielPlayer)]
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
                accepted = sequential_test.accepted(_played_out_pairs(rewards, [forfeit_of(end) for end in ends]))
                if accepted is not None:
                    break
    return result()


def check_num_games(num_games: int) -> None:
    """Raises InputError unless both players can move first equally often."""
    if num_games < 2 or num_games % 2:
        raise InputError(f"num_games must be even and at least 2, so that both move first equally; got {num_games}")


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
    check_num_games(num_games)
    names = [player.name for player in players]
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(f"matches need two players or more, each with a name of its own; got {'; '.join(names)}")
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
