"""Matches on the device: one jitted function, for the gate and the ladder of a run. Axis letters: `G` games."""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.evaluation.players import Policy, draw
from azjax.games.game import Game


def make_device_match(
    game: Game,
    one: Policy,
    other: Policy,
    *,
    num_games: int,
    max_plies: int,
    start: Callable[[chex.PRNGKey], Any] | None = None,
) -> Callable[[Any, Any, chex.PRNGKey], chex.Array]:
    """`match(params, other_params, key)`: points a game of the policy `one`, float32 []; 1 for a win, 1/2 for a draw.

    Pure. Each policy is player 0 in every second game. `play_match` stops where games end and tells more.

    Args:
      game: the game.
      one: whose points they are.
      other: the other one.
      num_games: G, at least 1.
      max_plies: a game that goes on after so many plies is a draw.
      start: `start(key)`: where a game begins; the game's own start by default.
    """

    def match(params: Any, other_params: Any, key: chex.PRNGKey) -> chex.Array:
        start_key, play_key = jax.random.split(key)
        states = jax.vmap(start or game.init)(jax.random.split(start_key, num_games))
        seat = jnp.arange(num_games, dtype=jnp.int32) & 1  # of the first policy

        def move(number: int, policy: Policy, params: Any, key: chex.PRNGKey, games: tuple) -> tuple:
            """A ply of the games in which it is this policy's turn."""
            states, total, plies = games
            policy_key, draw_key = jax.random.split(key)
            actions = draw(draw_key, policy(params, policy_key, states).probabilities)
            following = jax.vmap(game.step)(states, actions)
            moved = (states.current_player == seat ^ number) & ~states.terminated & (plies < max_plies)

            def put(new: chex.Array, old: chex.Array) -> chex.Array:
                return jnp.where(moved.reshape(-1, *[1] * (new.ndim - 1)), new, old)

            total += jnp.where(moved[:, None], following.rewards, 0.0)
            return jax.tree.map(put, following, states), total, plies + moved

        def play(carry: tuple) -> tuple:
            turn, games = carry
            keys = jax.random.split(jax.random.fold_in(play_key, turn))
            games = move(0, one, params, keys[0], games)
            return turn + 1, move(1, other, other_params, keys[1], games)

        def goes_on(carry: tuple) -> chex.Array:
            _, (states, _, plies) = carry
            return jnp.any(~states.terminated & (plies < max_plies))

        games = states, jnp.zeros((num_games, 2)), jnp.zeros(num_games, jnp.int32)
        _, (_, total, _) = jax.lax.while_loop(goes_on, play, (jnp.int32(0), games))
        points = jnp.where(seat == 0, total[:, 0], total[:, 1])
        return (1 + jnp.mean(jnp.clip(points, -1, 1))) / 2

    return match
