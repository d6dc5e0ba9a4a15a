"""How games begin: their starts, and random moves from there.

Axis letters: `N` starts.
"""

import functools
from typing import Any

import chex
import jax
import numpy as np

from azjax.games.game import Game, random_legal_action

_ATTEMPTS = 100


def starts_of(game: Game, count: int, key: chex.PRNGKey) -> Any:
    """So many starts of the game, NumPy leaves [N, ...]."""
    return jax.tree.map(np.asarray, _starts(game, jax.random.split(key, count)))


def start_text(game: Game, state: Any) -> str | None:
    """The text of a start; None where the game begins there anyway."""
    own = jax.tree.leaves(_starts(game, jax.random.split(jax.random.key(0), 1)))
    same = all(np.array_equal(ours[0], theirs) for ours, theirs in zip(own, jax.tree.leaves(state), strict=True))
    return None if same else game.to_text(state)


def random_openings(game: Game, plies: int, key: chex.PRNGKey, states: Any) -> tuple[Any, np.ndarray]:
    """Random moves from every position that do not end the game; those that do are drawn again.

    Args:
      game: the game.
      plies: moves of each opening; may be 0.
      key: consumed.
      states: NumPy leaves [N, ...].

    Returns:
      NumPy leaves [N, ...] of the states then; and the actions, int32 [N, plies].

    Raises:
      RuntimeError: from some position so many plies end the game again and again.
    """
    wanted = np.arange(len(states.terminated))
    found, actions = jax.tree.map(np.copy, states), np.zeros((len(wanted), plies), np.int32)
    if not plies:
        return found, actions
    for attempt in range(_ATTEMPTS):
        tried, moves = _random_moves(game, plies, jax.random.fold_in(key, attempt), states)
        good = wanted[~np.asarray(tried.terminated)[wanted]]
        for leaf, new in zip(jax.tree.leaves(found), jax.tree.leaves(tried), strict=True):
            leaf[good] = np.asarray(new)[good]
        actions[good] = np.asarray(moves)[good]
        wanted = np.setdiff1d(wanted, good)
        if not len(wanted):
            return found, actions
    raise RuntimeError(f"{game.name}: {plies} random plies ended a game {_ATTEMPTS} times in a row")


@functools.partial(jax.jit, static_argnums=0)
def _starts(game: Game, keys: chex.PRNGKey) -> Any:
    return jax.vmap(game.init)(keys)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _random_moves(game: Game, plies: int, key: chex.PRNGKey, states: Any) -> tuple[Any, chex.Array]:
    def move(states: Any, key: chex.PRNGKey) -> tuple[Any, chex.Array]:
        keys = jax.random.split(key, len(states.terminated))
        actions = jax.vmap(functools.partial(random_legal_action, game))(keys, states)
        return jax.vmap(game.step)(states, actions), actions

    states, actions = jax.lax.scan(move, states, jax.random.split(key, plies))
    return states, actions.T
