"""Games of self-play that begin at positions of the replay.

With one candidate it is Go-Exploit (Trudeau and Bowling 2023, "Targeted Search Control in AlphaZero for Effective
Policy Improvement"), with the positions visited in self-play as the archive. With more it is the idea of RGSC (Tsai et
al. 2026, "Regret-Guided Search Control for Efficient Learning in AlphaZero"): games begin where the search's value and
the result of the game differed most. RGSC ranks positions by a network of its own. Here the result is known, and of a
few positions that are drawn evenly the one with the highest regret is taken.

Axis letters: `B` positions, `G` games side by side, `T` time steps.
"""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float32, PRNGKeyArray

from azjax.core.pytree import pytree_dataclass, replace_fields
from azjax.games.game import AnyGame, State
from azjax.games.protocols import with_empty_history
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.replay import Replay, count_ready, draw, reader


@pytree_dataclass
class Restarts:
    """Where games begin that take the place of games that end.

    Attributes:
      states: positions of the replay, without history; every leaf [T, G, ...].
      chosen: whether a game begins there and not at a new start.
    """

    states: State
    chosen: Bool[Array, "*TG"]


def draw_restarts(
    config: Config, hyper: Hyper, key: PRNGKeyArray, replay: Replay, mesh: Mesh | None = None
) -> Restarts | None:
    """The restarts of an iteration, none of them chosen while the replay is empty; None if not asked for."""
    if not config.restart_candidates:
        return None
    position_key, choice_key = jax.random.split(key)
    shape, ready_so_far = (config.steps_per_iteration, config.num_games), count_ready(replay)
    row, column = draw(replay, ready_so_far, position_key, shape[0] * shape[1] * config.restart_candidates)
    read = reader(mesh)
    by_restart = -1, config.restart_candidates
    if config.restart_candidates > 1:
        outcome, value = read((replay.outcome, replay.steps.value), row, column)
        highest = jnp.argmax(regret(outcome, value).reshape(by_restart), axis=1)[:, None]
        row, column = (jnp.take_along_axis(each.reshape(by_restart), highest, axis=1)[:, 0] for each in (row, column))
    states = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), read(replay.steps.states, row, column))
    chosen = jax.random.bernoulli(choice_key, hyper.restart_fraction, shape) & (ready_so_far[-1] > 0)
    return Restarts(states, chosen)


def regret(outcome: Float32[Array, "*B"], value: Float32[Array, "*B"]) -> Float32[Array, "*B"]:
    """How far the search's value was from the result of the game, 0 to 2."""
    return jnp.abs(outcome - value)


def begin_games(game: AnyGame, positions: State) -> State:
    """Games [G] at positions without history."""
    states = jax.vmap(functools.partial(with_empty_history, game))(positions)
    begun: State = replace_fields(states, rewards=jnp.zeros_like(states.rewards))
    return begun
