"""Moves of games that the host plays: compiled once a game, with NumPy leaves on both ends.

Axis letters: `B` games side by side.
"""

import functools
from typing import Any

import chex
import jax
import numpy as np

from azjax.games.game import Game


def step_one(game: Game, state: Any, action: int) -> Any:
    """The state after an action, NumPy leaves [...]."""
    # Of one type, whoever chose it: another would compile again.
    return jax.tree.map(np.asarray, _step_one(game, state, np.int32(action)))


def step_all(game: Game, states: Any, actions: chex.Array) -> Any:
    """The states after int32 [B] actions, NumPy leaves [B, ...]; a finished game stays as it is."""
    return jax.tree.map(np.asarray, _step_all(game, states, np.asarray(actions, np.int32)))


@functools.partial(jax.jit, static_argnums=0)
def _step_one(game: Game, state: Any, action: chex.Array) -> Any:
    return game.step(state, action)


@functools.partial(jax.jit, static_argnums=0)
def _step_all(game: Game, states: Any, actions: chex.Array) -> Any:
    return jax.vmap(game.step)(states, actions)
