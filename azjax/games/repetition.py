"""Repetition: the keys of the positions that a game went through, and whether a key is among them.

Axis letters: `H` places of a history, `B` batch.
"""

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import History

_CHUNK = 32


def new_history(num_positions: int) -> History:
    """Room for so many positions, and none yet."""
    capacity = -(-num_positions // _CHUNK) * _CHUNK
    return History(jnp.zeros((2, capacity), jnp.uint32), jnp.int32(0))


def append(history: History, key: chex.Array, condition: chex.Array) -> History:
    """The history with `key` uint32 [2] as its newest one where the condition holds, bool []."""
    place = jnp.where(condition, history.count, history.keys.shape[1])
    keys = history.keys.at[:, place].set(key, mode="drop")
    return History(keys, history.count + condition.astype(jnp.int32))


def find(history: History, key: chex.Array) -> tuple[chex.Array, History]:
    """bool []: `key` uint32 [2] is in the history; and the history, to go on with.

    Who uses the history that went in again makes XLA copy it.
    """
    found, keys = _find(history.keys, history.count, key)
    return found, History(keys, history.count)


@jax.custom_batching.custom_vmap
def _find(keys: chex.Array, count: chex.Array, key: chex.Array) -> tuple[chex.Array, chex.Array]:
    places = jnp.arange(keys.shape[1], dtype=jnp.int32)
    return jnp.any((keys[0] == key[0]) & (keys[1] == key[1]) & (places < count)), keys


@_find.def_vmap
def _find_in_batch(
    axis_size: int, in_batched: list[bool], keys: chex.Array, count: chex.Array, key: chex.Array
) -> tuple[tuple[chex.Array, chex.Array], tuple[bool, bool]]:
    """Reads as far as the longest history of the batch, which most of the time is short."""
    keys, count, key = (
        argument if batched else jnp.broadcast_to(argument, (axis_size, *argument.shape))
        for argument, batched in zip((keys, count, key), in_batched, strict=True)
    )
    longest = jnp.max(count)

    def look(carry: tuple) -> tuple:
        start, found, keys = carry
        chunk = jax.lax.dynamic_slice_in_dim(keys, start, _CHUNK, axis=2)
        places = start + jnp.arange(_CHUNK, dtype=jnp.int32)
        same = (chunk[:, 0] == key[:, :1]) & (chunk[:, 1] == key[:, 1:]) & (places[None] < count[:, None])
        return start + _CHUNK, found | jnp.any(same, axis=1), keys

    begin = (jnp.int32(0), jnp.zeros(axis_size, bool), keys)
    _, found, keys = jax.lax.while_loop(lambda carry: carry[0] < longest, look, begin)
    return (found, keys), (True, True)
