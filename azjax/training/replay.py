"""The replay: a ring of positions, one row a time step, one column a game of self-play.

A position enters when it is played and waits, in its column, for the result of its game; until then it is not
sampled. So no game is cut or guessed, and long games count like short ones.

Axis letters: `R` rows of the ring, `G` games side by side, `T` time steps, `K` slots of legal actions, `B` batch.
"""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from azjax.core.pytree import pytree_dataclass
from azjax.games.game import Game
from azjax.games.protocols import without_history
from azjax.parallel.sharding import BY_COLUMN, BY_GAME, GAMES, WHOLE


@pytree_dataclass
class Steps:
    """Consecutive time steps of self-play; leading axes [T, G] here, [R, G] in the ring.

    states: the positions, before the move, without their history.
    policy: float32 [..., K]; the search's policy over the slots of `Game.legal_slots`.
    reward: float32 [...]; of player 0, for the move made; where the game was cut, what it was thought to come to.
    ended: bool [...]; that move ended the game, or it was cut.
    cut: bool [...]; it was cut.
    value: float32 [...]; what the search said of the position, seen by the player to move.
    proven: bool [...]; that is the true value.
    learned: bool [...]; whether the position is learned from at all.
    """

    states: Any
    policy: chex.Array
    reward: chex.Array
    ended: chex.Array
    cut: chex.Array
    value: chex.Array
    proven: chex.Array
    learned: chex.Array


@pytree_dataclass
class Replay:
    """The ring.

    steps: `Steps` [R, G].
    outcome: float32 [R, G]; the game's result for the player to move, where `known`.
    known: bool [R, G]; the result has come, and the position is learned from.
    written: int32 []; rows written since the beginning; the next one goes to `written % R`.
    """

    steps: Steps
    outcome: chex.Array
    known: chex.Array
    written: chex.Array


@pytree_dataclass
class Examples:
    """What the loss learns from, drawn from the replay; leading axis [B].

    states, policy, value, proven: see `Steps`.
    outcome: see `Replay`.
    """

    states: Any
    policy: chex.Array
    outcome: chex.Array
    value: chex.Array
    proven: chex.Array


def new_replay(game: Game, states: Any, num_rows: int) -> Replay:
    """An empty ring of `num_rows` rows for games of the shape of `states` [G, ...]."""
    states = jax.vmap(functools.partial(without_history, game))(states)
    num_games = len(states.terminated)
    grid = (num_rows, num_games)
    return Replay(
        steps=Steps(
            states=jax.tree.map(lambda leaf: jnp.zeros((num_rows, *leaf.shape), leaf.dtype), states),
            policy=jnp.zeros((*grid, game.max_legal_actions), jnp.float32),
            reward=jnp.zeros(grid, jnp.float32),
            ended=jnp.zeros(grid, bool),
            cut=jnp.zeros(grid, bool),
            value=jnp.zeros(grid, jnp.float32),
            proven=jnp.zeros(grid, bool),
            learned=jnp.zeros(grid, bool),
        ),
        outcome=jnp.zeros(grid, jnp.float32),
        known=jnp.zeros(grid, bool),
        written=jnp.int32(0),
    )


def insert(replay: Replay, steps: Steps, longest_game: int) -> Replay:
    """Writes T rows, and gives every position whose game has now ended its result. R is a multiple of T.

    No game has more plies than `longest_game`.
    """
    num_rows, num_steps = replay.known.shape[0], steps.ended.shape[0]
    first = replay.written % num_rows

    def write(ring: chex.Array, rows: chex.Array) -> chex.Array:
        return jax.lax.dynamic_update_slice_in_dim(ring, rows.astype(ring.dtype), first, axis=0)

    ring = jax.tree.map(write, replay.steps, steps)
    known = write(replay.known, jnp.zeros_like(steps.ended))
    written = replay.written + num_steps

    # Newest first, back to the first move of the longest game that can have ended just now.
    age = jnp.arange(min(num_steps + longest_game, num_rows))
    rows = (written - 1 - age) % num_rows
    exists = age < written

    def back(carry: tuple[Any, Any], step: tuple) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        returns, is_known = carry
        reward, ended, exists = step
        returns = reward + jnp.where(ended, 0.0, returns)
        is_known = (is_known | ended) & exists
        return (returns, is_known), (returns, is_known)

    nothing: tuple[Any, Any] = (jnp.zeros_like(ring.reward[0]), jnp.zeros_like(ring.ended[0]))
    _, (returns, is_known) = jax.lax.scan(back, nothing, (ring.reward[rows], ring.ended[rows], exists))
    mover = ring.states.current_player[rows]
    outcome = jnp.where(mover == 0, returns, -returns)
    return Replay(
        steps=ring,
        outcome=replay.outcome.at[rows].set(jnp.where(is_known, outcome, replay.outcome[rows])),
        known=known.at[rows].set((is_known & ring.learned[rows]) | known[rows]),
        written=written,
    )


def count_known(replay: Replay) -> chex.Array:
    """int32 [R * G]: how many known positions there are up to and with each; `sample` draws by it."""
    return jnp.cumsum(replay.known.reshape(-1), dtype=jnp.int32)


def sample(
    replay: Replay, known_so_far: chex.Array, key: chex.PRNGKey, batch_size: int, mesh: Mesh | None = None
) -> Examples:
    """Draws positions evenly, with replacement, from the known ones. There must be at least one.

    With a `mesh` the batch is split over its devices, and so are the columns of the replay.
    """
    draws = jax.random.randint(key, (batch_size,), 1, known_so_far[-1] + 1)
    flat = jnp.searchsorted(known_so_far, draws)
    row, column = jnp.divmod(flat, replay.known.shape[1])
    steps = replay.steps
    drawn = Examples(steps.states, steps.policy, replay.outcome, steps.value, steps.proven)
    if mesh is None:
        return jax.tree.map(lambda ring: ring[row, column], drawn)
    return jax.shard_map(
        _read_split, mesh=mesh, in_specs=(BY_COLUMN, WHOLE, WHOLE), out_specs=BY_GAME, check_vma=False
    )(drawn, row, column)


def _read_split(rings: Any, row: chex.Array, column: chex.Array) -> Any:
    """On each device: its share of the entries [B] of rings whose columns are split.

    Every device reads what lies in its own columns, and zero for the rest; the sum is what was asked for. Left to the
    compiler, whole rings of bool would be gathered.
    """

    def read(ring: chex.Array) -> chex.Array:
        here = column - jax.lax.axis_index(GAMES) * ring.shape[1]
        own = ((here >= 0) & (here < ring.shape[1])).reshape(-1, *[1] * (ring.ndim - 2))
        found = jnp.where(own, ring[row, jnp.clip(here, 0, ring.shape[1] - 1)], jnp.zeros((), ring.dtype))
        number = found.astype(jnp.uint8) if ring.dtype == bool else found
        return jax.lax.psum_scatter(number, GAMES, tiled=True).astype(ring.dtype)

    return jax.tree.map(read, rings)
