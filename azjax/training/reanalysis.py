"""Searches of positions in the replay with the newest network, whose results replace the old ones.

The idea is that of MuZero Reanalyze (Schrittwieser et al. 2020, "Mastering Atari, Go, Chess and Shogi by Planning with
a Learned Model", appendix H). Rewards stay as they were, and so does a proven position that the new search does not
prove. Where results are mixed with values (`Steps.trace`), those of games that ended recently are mixed again.

Axis letters: `G` games side by side, `K` slots of legal actions, `R` rows of the replay.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float32, Int32, Key, PRNGKeyArray

from azjax.core.pytree import replace_fields
from azjax.games.game import AnyGame
from azjax.games.protocols import with_empty_history
from azjax.networks import Network, Variables
from azjax.parallel.members import over_members
from azjax.parallel.sharding import BY_COLUMN, BY_GAME, WHOLE
from azjax.search import SearchResult
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.replay import Replay, Steps
from azjax.training.self_play import policy_of_slots, surprise, values_count


class _Found(NamedTuple):
    """The rings that a search writes; see `Steps`."""

    policy: Float32[Array, "*R G K"]
    value: Float32[Array, "*R G"]
    proven: Bool[Array, "*R G"]
    trace: Float32[Array, "*R G"]
    surprise: Float32[Array, "*R G"] | None


def reanalyze(
    game: AnyGame,
    network: Network,
    config: Config,
    variables: Variables,
    hyper: Hyper,
    key: PRNGKeyArray,
    replay: Replay,
    mesh: Mesh | None = None,
) -> Replay:
    """The replay after `config.reanalyzed_steps` searches in each column, of ready positions that are drawn evenly.

    The searches have no noise. With a `mesh` each device searches positions of its own columns, with the random numbers
    that they have on one device.
    """
    if not config.reanalyzed_steps:
        return replay
    keys = jax.random.split(key, config.num_games)
    search: Callable[..., Steps] = functools.partial(_reanalyze, game, network, config)
    if mesh is None:
        search = over_members(search)
    else:
        split = WHOLE, WHOLE, BY_GAME, BY_COLUMN, BY_COLUMN
        search = jax.shard_map(search, mesh=mesh, in_specs=split, out_specs=BY_COLUMN, check_vma=False)
    return replace_fields(replay, steps=search(variables, hyper, keys, replay.ready, replay.steps))


def _reanalyze(
    game: AnyGame,
    network: Network,
    config: Config,
    variables: Variables,
    hyper: Hyper,
    keys: Key[Array, "G"],
    ready: Bool[Array, "R G"],
    steps: Steps,
) -> Steps:
    """`reanalyze` of some of the columns."""
    policy = config.make_policy(game, network)
    ready_so_far, columns = jnp.cumsum(ready, axis=0, dtype=jnp.int32), jnp.arange(len(keys))

    def search(rings: _Found, number: Int32[Array, ""]) -> tuple[_Found, None]:
        draw_keys, search_keys = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, number)), out_axes=1)(
            keys
        )
        rows = jax.vmap(_draw_row, in_axes=(0, 1))(draw_keys, ready_so_far)
        positions = jax.tree.map(lambda ring: ring[rows, columns], steps.states)
        states = jax.vmap(functools.partial(with_empty_history, game))(positions)
        result: SearchResult = policy(variables, search_keys, states, hyper=config.search_hyper(hyper, 0.0, full=False))
        proven = result.bounds[:, 0] == result.bounds[:, 1]
        found = _Found(
            policy=policy_of_slots(game, positions, result.policy),
            value=result.value,
            proven=proven,
            trace=jnp.where(proven & values_count(hyper), 0.0, rings.trace[rows, columns]),
            surprise=None if rings.surprise is None else surprise(game, positions, result),
        )
        # A column without a ready position, or with a proof that was not found again, writes beyond the ring: nothing.
        stays = (ready_so_far[-1] == 0) | (rings.proven[rows, columns] & ~proven)
        rows = jnp.where(stays, len(ready), rows)
        return jax.tree.map(lambda ring, new: ring.at[rows, columns].set(new, mode="drop"), rings, found), None

    rings = _Found(steps.policy, steps.value, steps.proven, steps.trace, steps.surprise)
    rings, _ = jax.lax.scan(search, rings, jnp.arange(config.reanalyzed_steps, dtype=jnp.int32))
    return replace_fields(steps, **rings._asdict())


def _draw_row(key: PRNGKeyArray, ready_so_far: Int32[Array, "R"]) -> Int32[Array, ""]:
    """The row of a ready position of one column; any row if there is none."""
    draw = jax.random.randint(key, (), 1, jnp.maximum(ready_so_far[-1], 1) + 1)
    return jnp.minimum(jnp.searchsorted(ready_so_far, draw), len(ready_so_far) - 1).astype(jnp.int32)
