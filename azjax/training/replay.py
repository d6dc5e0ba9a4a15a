"""The replay: a ring of positions, one row a time step, one column a game of self-play.

A position enters when it is played and waits, in its column, for the result of its game. Until then it is not sampled,
so that no result is guessed, and long games count like short ones.

Axis letters: `B` batch, `G` games side by side, `K` slots of legal actions, `R` rows of the ring,
`RG` both in one axis, `T` time steps, `W` plies that are looked ahead.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from azjax.core.pytree import pytree_dataclass, replace_fields
from azjax.games.game import AnyGame, State
from azjax.games.protocols import without_history
from azjax.parallel.sharding import BY_COLUMN, BY_GAME, GAMES, WHOLE

_T = TypeVar("_T")

WINDOW = 32
"""W: what comes later in a game is not looked at."""

_MEAN_WEIGHT = 64
_MAX_RELATIVE_SURPRISE = 32.0
MAX_WEIGHTED_POSITIONS = 2**31 // (_MEAN_WEIGHT + 1)
"""The weights of more positions would overflow their sum."""


@pytree_dataclass
class Steps:
    """Consecutive time steps of self-play; leading axes [T, G] here, [R, G] in the ring.

    Attributes:
      states: the positions before the move, without their history.
      policy: the search's policy over the slots of `Game.legal_slots`.
      reward: of player 0 for the move; where the game was truncated, the search's value of the position.
      ended: the move ended the game, or the game was truncated after it.
      truncated: the game was truncated after the move.
      value: the search's value of the position, for the player to move.
      proven: `value` is the true value.
      learned: whether the position is learned from.
      trace: the share of what comes after in the result of the position, 0..1; the rest is `value`.
      surprise: the divergence of the search's policy from the prior, in nats; None where it is not used.
    """

    states: State
    policy: Float32[Array, "*TG K"]
    reward: Float32[Array, "*TG"]
    ended: Bool[Array, "*TG"]
    truncated: Bool[Array, "*TG"]
    value: Float32[Array, "*TG"]
    proven: Bool[Array, "*TG"]
    learned: Bool[Array, "*TG"]
    trace: Float32[Array, "*TG"]
    surprise: Float32[Array, "*TG"] | None = None


@pytree_dataclass
class Replay:
    """The ring.

    Attributes:
      steps: with leading axes [R, G].
      outcome: the game's result for the player to move, with values of the search by `Steps.trace`, where `ready`.
      ready: the result is there, and the position is learned from.
      written: rows written since the beginning; the next one goes to `written % R`.
    """

    steps: Steps
    outcome: Float32[Array, "R G"]
    ready: Bool[Array, "R G"]
    written: Int32[Array, ""]


@pytree_dataclass
class Following:
    """What came after the positions of a batch in their games.

    Attributes:
      values: the search's values of the position and of those after it, with the rewards from the position on, for the
        player to move in the position. After the end it is the sum of these rewards; that of a truncated game ends with
        the search's last value.
      plies_left: how many plies the game had left, with the move of the position; W for that many and more, and where
        the game was truncated.
      has_reply: the game went on after the move, and a full search chose the next one.
      reply_states: the positions after the move, where `has_reply`.
      reply_policy: the search's policy there, over the slots of `Game.legal_slots`.
    """

    values: Float32[Array, "B W"]
    plies_left: Int32[Array, "B"]
    has_reply: Bool[Array, "B"]
    reply_states: State
    reply_policy: Float32[Array, "B K"]


@pytree_dataclass
class Examples:
    """A batch drawn from the replay, with leading axis [B]. For the fields see `Steps` and `Replay`.

    Attributes:
      following: None where it was not asked for.
    """

    states: State
    policy: Float32[Array, "B K"]
    outcome: Float32[Array, "B"]
    value: Float32[Array, "B"]
    proven: Bool[Array, "B"]
    following: Following | None = None


def new_replay(game: AnyGame, states: State, num_rows: int, *, with_surprise: bool = False) -> Replay:
    """An empty ring of `num_rows` rows for games of the shape of `states` [G, ...]."""
    states = jax.vmap(functools.partial(without_history, game))(states)
    grid = (num_rows, len(states.terminated))
    return Replay(
        steps=Steps(
            states=jax.tree.map(lambda leaf: jnp.zeros((num_rows, *leaf.shape), leaf.dtype), states),
            policy=jnp.zeros((*grid, game.max_legal_actions), jnp.float32),
            reward=jnp.zeros(grid, jnp.float32),
            ended=jnp.zeros(grid, bool),
            truncated=jnp.zeros(grid, bool),
            value=jnp.zeros(grid, jnp.float32),
            proven=jnp.zeros(grid, bool),
            learned=jnp.zeros(grid, bool),
            trace=jnp.zeros(grid, jnp.float32),
            surprise=jnp.zeros(grid, jnp.float32) if with_surprise else None,
        ),
        outcome=jnp.zeros(grid, jnp.float32),
        ready=jnp.zeros(grid, bool),
        written=jnp.int32(0),
    )


def insert(replay: Replay, steps: Steps, longest_game: int) -> Replay:
    """Writes T rows, and gives every position whose game has now ended its result.

    R is a multiple of T, and no game has more plies than `longest_game`.
    """
    num_rows, num_steps = replay.ready.shape[0], steps.ended.shape[0]
    first = replay.written % num_rows

    def write(ring: Array, rows: Array) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(ring, rows.astype(ring.dtype), first, axis=0)

    ring = jax.tree.map(write, replay.steps, steps)
    ready = write(replay.ready, jnp.zeros_like(steps.ended))
    written = replay.written + num_steps

    # Newest first, back to the first move of the longest game that can have ended just now.
    age = jnp.arange(min(num_steps + longest_game, num_rows))
    rows = (written - 1 - age) % num_rows
    exists = age < written

    is_first = ring.states.current_player[rows] == 0
    first_value = jnp.where(is_first, ring.value[rows], -ring.value[rows])

    def backward(carry: tuple[Array, Array], step: tuple[Array, Array, Array, Array, Array]) -> tuple[Any, Any]:
        returns, has_result = carry
        reward, ended, exists, trace, value = step
        returns = trace * (reward + jnp.where(ended, 0.0, returns)) + (1 - trace) * value
        has_result = (has_result | ended) & exists
        return (returns, has_result), (returns, has_result)

    start = (jnp.zeros_like(ring.reward[0]), jnp.zeros_like(ring.ended[0]))
    steps_back = ring.reward[rows], ring.ended[rows], exists, ring.trace[rows], first_value
    _, (returns, has_result) = jax.lax.scan(backward, start, steps_back)
    outcome = jnp.where(is_first, returns, -returns)
    return Replay(
        steps=ring,
        outcome=replay.outcome.at[rows].set(jnp.where(has_result, outcome, replay.outcome[rows])),
        ready=ready.at[rows].set((has_result & ring.learned[rows]) | ready[rows]),
        written=written,
    )


def count_ready(replay: Replay) -> Int32[Array, "RG"]:
    """How many ready positions there are up to and including each; `sample` draws evenly by it."""
    return jnp.cumsum(replay.ready.reshape(-1), dtype=jnp.int32)


def weigh_ready(replay: Replay) -> Int32[Array, "RG"]:
    """The weights of the ready positions up to and including each, by which `sample` draws surprising ones more often.

    Half of all weight is spread evenly, and half by the surprise of the positions, with at most 32 times the mean for
    one of them: KataGo's policy surprise weighting (docs/KataGoMethods.md), over the replay and not by game. Without
    `Steps.surprise` they are those of `count_ready`.
    """
    if replay.steps.surprise is None:
        return count_ready(replay)
    surprise = jnp.where(replay.ready, replay.steps.surprise, 0.0)
    mean = jnp.sum(surprise) / jnp.maximum(jnp.sum(replay.ready), 1)
    relative = jnp.where(mean > 0, jnp.minimum(surprise / mean, _MAX_RELATIVE_SURPRISE), 1.0)
    # Whole numbers: sums of floats over a million positions would lose the small ones.
    weights = jnp.round(_MEAN_WEIGHT * (0.5 + 0.5 * relative)).astype(jnp.int32)
    return jnp.cumsum(jnp.where(replay.ready, weights, 0).reshape(-1), dtype=jnp.int32)


def sample(
    replay: Replay,
    weight_so_far: Int32[Array, "RG"],
    key: PRNGKeyArray,
    batch_size: int,
    mesh: Mesh | None = None,
    *,
    with_following: bool = False,
) -> Examples:
    """Draws ready positions with replacement, by `count_ready` or `weigh_ready`. There must be at least one.

    With a `mesh` the batch is split over its devices, as the columns of the replay are.
    """
    (row, column), read = draw(replay, weight_so_far, key, batch_size), reader(mesh)
    steps = replay.steps
    examples = Examples(*read((steps.states, steps.policy, replay.outcome, steps.value, steps.proven), row, column))
    if not with_following:
        return examples
    return replace_fields(examples, following=_following(replay, row, column, read))


def draw(
    replay: Replay, weight_so_far: Int32[Array, "RG"], key: PRNGKeyArray, count: int
) -> tuple[Int32[Array, "B"], Int32[Array, "B"]]:
    """The rows and columns of ready positions, drawn with replacement, by `count_ready` or `weigh_ready`."""
    draws = jax.random.randint(key, (count,), 1, weight_so_far[-1] + 1)
    flat = jnp.searchsorted(weight_so_far, draws)
    row, column = jnp.divmod(flat, replay.ready.shape[1])
    return row, column


def reader(mesh: Mesh | None) -> Callable[..., Any]:
    """`read(rings, row, column)`: the entries [B] of rings of the replay, split over the devices of a `mesh`."""
    if mesh is None:
        return _read
    in_specs = BY_COLUMN, WHOLE, WHOLE
    return jax.shard_map(_read_split, mesh=mesh, in_specs=in_specs, out_specs=BY_GAME, check_vma=False)


def _following(
    replay: Replay,
    row: Int32[Array, "B"],
    column: Int32[Array, "B"],
    read: Callable[..., Any],
) -> Following:
    """What came after the ready positions there. All rows up to the end of their games are in the ring."""
    steps, num_rows = replay.steps, replay.ready.shape[0]
    rows = (row[:, None] + jnp.arange(WINDOW, dtype=row.dtype)[None]) % num_rows
    columns = jnp.broadcast_to(column[:, None], rows.shape)
    rings = steps.states.current_player, steps.value, steps.reward, steps.ended, steps.truncated
    entries = read(rings, rows.reshape(-1), columns.reshape(-1))
    player, value, reward, ended, truncated = (entry.reshape(rows.shape) for entry in entries)
    # The rows after the end belong to the next game of the column, or are older.
    is_after = jnp.cumsum(ended, axis=1, dtype=jnp.int32) - ended > 0
    reward = jnp.where(is_after, 0.0, reward) * jnp.where(player[:, :1] == 0, 1.0, -1.0)
    result = jnp.sum(reward, axis=1)
    # What was paid since the position, and what the search expects beyond it.
    value = jnp.cumsum(reward, axis=1) - reward + jnp.where(player == player[:, :1], value, -value)
    was_truncated = jnp.any(truncated & ~is_after, axis=1)
    reply = steps.states, steps.policy, steps.learned
    reply_states, reply_policy, reply_learned = read(reply, (row + 1) % num_rows, column)
    return Following(
        values=jnp.where(is_after, result[:, None], value),
        plies_left=jnp.where(was_truncated, WINDOW, jnp.sum(~is_after, axis=1, dtype=jnp.int32)),
        has_reply=~ended[:, 0] & reply_learned,
        reply_states=reply_states,
        reply_policy=reply_policy,
    )


def _read(rings: _T, row: Int32[Array, "B"], column: Int32[Array, "B"]) -> _T:
    """The entries of rings."""
    entries: _T = jax.tree.map(lambda ring: ring[row, column], rings)
    return entries


def _read_split(rings: _T, row: Int32[Array, "B"], column: Int32[Array, "B"]) -> _T:
    """On each device: its share of the entries [B] of rings whose columns are split.

    Every device reads the entries in its own columns and zero for the others, and the devices add them up. The compiler
    alone would gather whole rings of bool.
    """

    def read(ring: Array) -> Array:
        own_column = column - jax.lax.axis_index(GAMES) * ring.shape[1]
        own = ((own_column >= 0) & (own_column < ring.shape[1])).reshape(-1, *[1] * (ring.ndim - 2))
        entries = jnp.where(own, ring[row, jnp.clip(own_column, 0, ring.shape[1] - 1)], jnp.zeros((), ring.dtype))
        numbers = entries.astype(jnp.uint8) if ring.dtype == bool else entries
        scattered: Array = jax.lax.psum_scatter(numbers, GAMES, tiled=True)
        return scattered.astype(ring.dtype)

    shares: _T = jax.tree.map(read, rings)
    return shares
