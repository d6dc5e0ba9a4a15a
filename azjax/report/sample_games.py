"""Games that a player plays against itself, and how well its values predict their results.

Axis letters: `G` games, `A` actions, `T` moves of a game, `C` classes of predicted values.
"""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from azjax.evaluation import Player, Record, act
from azjax.evaluation.host_games import host_step, random_openings, starts_of
from azjax.games.game import AnyGame, State

_CLASSES = 10


class SampleGame(NamedTuple):
    """One game of T moves.

    Attributes:
      states: T + 1 positions, as NumPy arrays.
      actions: T actions.
      values: T values in -1..1 that the player expected, from the view of player 0; NaN in the opening.
      preferences: T rankings of the actions, see `MoveChoice`; None in the opening.
      result: of player 0.
    """

    states: list[State]
    actions: list[int]
    values: list[float]
    preferences: list[Float[np.ndarray, "A"] | None]
    result: float


def sample_games(
    game: AnyGame, player: Player, count: int, key: PRNGKeyArray, *, opening_plies: int
) -> list[SampleGame]:
    """Plays games at the same time; all but the first begin with random moves.

    Args:
      game: the game.
      player: plays both sides.
      count: number of games, at least 1.
      key: consumed by the openings and the player.
      opening_plies: number of random moves.
    """
    start_key, play_key = jax.random.split(key)
    starts = starts_of(game, count, start_key)
    after_openings, openings = random_openings(game, opening_plies, jax.random.fold_in(start_key, 0), starts)
    # The first game has no opening.
    states = jax.tree.map(lambda start, after: np.concatenate([start[:1], after[1:]]), starts, after_openings)
    games = [SampleGame([_row(starts, number)], [], [], [], 0.0) for number in range(count)]
    for played, opening in zip(games[1:], openings[1:].tolist(), strict=True):
        for action in opening:
            _append(played, action, np.nan, None, host_step(game, played.states[-1], np.int32(action)))
    rewards = np.zeros(count)
    for ply in range(game.max_plies):
        running = ~states.terminated
        if not running.any():
            break
        actions, choice, _ = jax.device_get(act(player, jax.random.fold_in(play_key, ply), states))
        value = np.where(states.current_player == 0, choice.value, -choice.value)
        states = host_step(game, states, actions)
        rewards += np.where(running, states.rewards[:, 0], 0)
        for row in np.flatnonzero(running).tolist():
            _append(games[row], int(actions[row]), float(value[row]), choice.preferences[row], _row(states, row))
    return [played._replace(result=float(reward)) for played, reward in zip(games, rewards, strict=True)]


@dataclasses.dataclass(frozen=True)
class Calibration:
    """The results of games by the value that the network gave their positions.

    Attributes:
      predicted: C mean values in -1..1, for the player to move.
      results: C mean results of that player, in -1..1.
      intervals: C 95% intervals of the results.
      positions: C numbers of positions.
    """

    predicted: tuple[float, ...]
    results: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    positions: tuple[int, ...]


def calibrate(game: AnyGame, player: Player, count: int, key: PRNGKeyArray) -> Calibration:
    """Compares the values of a player with the results of `count` games against itself."""
    games = sample_games(game, player, count, key, opening_plies=0)
    mover = np.concatenate([[int(state.current_player) for state in played.states[:-1]] for played in games])
    sign = np.where(mover == 0, 1.0, -1.0)
    values = np.concatenate([played.values for played in games]) * sign
    results = np.concatenate([np.full(len(played.actions), played.result) for played in games]) * sign
    # The results of the positions of one game depend on each other, so the intervals count games.
    number = np.concatenate([np.full(len(played.actions), index) for index, played in enumerate(games)])
    classes = np.clip(((values + 1) / 2 * _CLASSES).astype(int), 0, _CLASSES - 1)
    members = [rows for rows in (classes == index for index in range(_CLASSES)) if rows.any()]
    ends = (_record(results[rows], len(set(number[rows].tolist()))).interval for rows in members)
    return Calibration(
        predicted=tuple(float(values[rows].mean()) for rows in members),
        results=tuple(float(results[rows].mean()) for rows in members),
        intervals=tuple((2 * low - 1, 2 * high - 1) for low, high in ends),
        positions=tuple(int(rows.sum()) for rows in members),
    )


def _record(results: Float[np.ndarray, "rows"], games: int) -> Record:
    """Wins, draws and losses in the proportions of `results`, scaled to a number of games."""
    wins, losses = (round(games * float(np.mean(np.sign(results) == sign))) for sign in (1, -1))
    return Record(wins, max(0, games - wins - losses), losses)


def _append(
    played: SampleGame, action: int, value: float, preferences: Float[np.ndarray, "A"] | None, state: State
) -> None:
    played.actions.append(action)
    played.values.append(value)
    played.preferences.append(preferences)
    played.states.append(state)


def _row(states: State, row: int) -> State:
    state: State = jax.tree.map(lambda leaf: np.asarray(leaf[row]), states)
    return state
