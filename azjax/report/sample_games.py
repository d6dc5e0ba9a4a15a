"""Games that a player plays with itself, with what it thought at every move."""

from typing import Any, NamedTuple

import chex
import jax
import numpy as np

from azjax.evaluation.host_step import step_all, step_one
from azjax.evaluation.openings import random_openings, starts_of
from azjax.evaluation.players import Player, act
from azjax.games.game import Game


class SampleGame(NamedTuple):
    """One game of T moves.

    Attributes:
      states: T + 1 positions, NumPy leaves [...].
      actions: T.
      values: T; what the player expected, -1..1, seen by player 0; NaN for the moves of the opening.
      preferences: T; float [A] of each position, see `Judgement`; None for the moves of the opening.
      result: of player 0.
    """

    states: list[Any]
    actions: list[int]
    values: list[float]
    preferences: list[np.ndarray | None]
    result: float


def sample_games(game: Game, player: Player, count: int, key: chex.PRNGKey, *, opening_plies: int) -> list[SampleGame]:
    """Games side by side, all but the first beginning with random moves.

    Args:
      game: the game.
      player: plays both sides.
      count: of games, at least 1.
      key: consumed by the openings and the player.
      opening_plies: of random moves.
    """
    start_key, play_key = jax.random.split(key)
    starts = starts_of(game, count, start_key)
    begun, openings = random_openings(game, opening_plies, jax.random.fold_in(start_key, 0), starts)
    # The first game has no opening, and so goes on from where the others began.
    now = jax.tree.map(lambda old, new: np.concatenate([old[:1], new[1:]]), starts, begun)
    games = [SampleGame([_row(starts, number)], [], [], [], 0.0) for number in range(count)]
    for played, opening in zip(games[1:], openings[1:].tolist(), strict=True):
        for action in opening:
            _add(played, action, np.nan, None, step_one(game, played.states[-1], action))
    rewards = np.zeros(count)
    for ply in range(game.max_plies):
        running = ~now.terminated
        if not running.any():
            break
        actions, judgement, _ = jax.device_get(act(player, jax.random.fold_in(play_key, ply), now))
        value = np.where(now.current_player == 0, judgement.value, -judgement.value)
        now = step_all(game, now, actions)
        rewards += np.where(running, now.rewards[:, 0], 0)
        for row in np.flatnonzero(running):
            _add(games[row], int(actions[row]), float(value[row]), judgement.preferences[row], _row(now, int(row)))
    return [played._replace(result=float(reward)) for played, reward in zip(games, rewards, strict=True)]


def _add(played: SampleGame, action: int, value: float, preferences: np.ndarray | None, state: Any) -> None:
    played.actions.append(action)
    played.values.append(value)
    played.preferences.append(preferences)
    played.states.append(state)


def _row(states: Any, row: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf[row]), states)
