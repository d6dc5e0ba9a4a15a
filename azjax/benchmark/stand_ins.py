"""Stand-ins for a network in the search benchmark, and for a game that enumerates its own moves.

Axis letters: `B` batch, `W` words of a position, `A` actions, `K` slots.
"""

import dataclasses
import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.core.bits import mix
from azjax.games.game import Game
from azjax.search import Evaluator


@functools.cache
def peaked(game: Game) -> Evaluator:
    """Logits in 0..8 and values in -1..1, hashed from the position. `params` are not read."""

    def evaluate(params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        del params, key
        batch = states.terminated.shape[0]
        leaves = jax.tree.leaves(dataclasses.replace(states, rewards=None))
        words = jnp.concatenate([leaf.reshape(batch, -1).astype(jnp.uint32).T for leaf in leaves])
        # A loop, since the unrolled chain of some twenty words takes XLA a minute to compile inside a search.
        start = jnp.zeros(batch, jnp.uint32)
        position, _ = jax.lax.scan(lambda position, word: (_mix(position + word), None), start, words)
        actions = jnp.arange(game.num_actions, dtype=jnp.uint32)
        logits = 8 * _unit(_mix(position[:, None] + jnp.uint32(0x9E3779B9) * (actions[None] + 1)))
        return logits, 2 * _unit(_mix(position)) - 1

    return evaluate


@functools.cache
def with_generic_compaction(game: Game) -> Game:
    """The same rules, whose `legal_slots` is what the contract makes of the mask, for a game that has its own."""
    kind = type(f"{type(game).__name__}WithGenericCompaction", (type(game),), {"legal_slots": Game.legal_slots})
    return kind(**{field.name: getattr(game, field.name) for field in dataclasses.fields(game)})  # type: ignore[arg-type]


def _mix(bits: chex.Array) -> chex.Array:
    """Spreads every bit of uint32 over the word."""
    return mix(bits, (16, 15, 16), (0x7FEB352D, 0x846CA68B))


def _unit(bits: chex.Array) -> chex.Array:
    """uint32 -> float32 in 0..1, of the upper 24 bits."""
    return (bits >> jnp.uint32(8)).astype(jnp.float32) / 2**24
