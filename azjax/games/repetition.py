"""The positions that a game has gone through, as a hash table of their keys: asking and adding take constant time."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class History:
    """The positions since the game last became impossible to return; the first of them stands apart.

    table: uint32 [C, 3]; the two halves of a key, and the epoch in which it was written; open addressing with linear
      probing, C a power of two that leaves at least a place free.
    epoch: uint32 []; entries of other epochs are free places, so that starting anew writes nothing to the table.
    origin: uint32 [2]; the key of the first position.
    """

    table: chex.Array
    epoch: chex.Array
    origin: chex.Array

    def contains(self, key: chex.Array) -> chex.Array:
        """bool []: the position of that key, uint32 [2], has occurred."""
        found, _, _ = _probe(self, key)
        return found

    def visit(self, key: chex.Array, condition: chex.Array) -> tuple[chex.Array, "History"]:
        """bool []: the position has occurred; and the history with it, where the condition holds, bool []."""
        found, place, table = _probe(self, key)
        place = jnp.where(condition & ~found, place, len(table))
        table = table.at[place].set(jnp.concatenate([key, self.epoch[None]]), mode="drop")
        return found, History(table, self.epoch, self.origin)

    def restart(self, key: chex.Array, condition: chex.Array) -> "History":
        """A history of that position alone, where the condition holds, bool []."""
        epoch = self.epoch + condition.astype(jnp.uint32)
        return History(self.table, epoch, jnp.where(condition, key, self.origin))


def new_history(num_positions: int, key: chex.Array) -> History:
    """A history of the position of `key`, with room for `num_positions` in all, half of its places being free then."""
    capacity = 1 << (2 * num_positions - 1).bit_length()
    return History(jnp.zeros((capacity, 3), jnp.uint32), jnp.uint32(1), key)


def _probe(history: History, key: chex.Array) -> tuple[chex.Array, chex.Array, chex.Array]:
    """bool []: the key is there; int32 []: its place, or the free one for it; the table, which is not copied so."""

    def searching(carry: tuple) -> chex.Array:
        return carry[0]

    def probe(carry: tuple) -> tuple:
        _, place, _, table = carry
        entry = table.at[place].get(mode="promise_in_bounds")
        used = entry[2] == history.epoch
        same = used & (entry[0] == key[0]) & (entry[1] == key[1])
        goes_on = used & ~same
        return goes_on, jnp.where(goes_on, (place + 1) & (len(table) - 1), place), same, table

    first = (key[1] & np.uint32(len(history.table) - 1)).astype(jnp.int32)
    begin = (jnp.bool_(True), first, jnp.bool_(False), history.table)
    _, place, found, table = jax.lax.while_loop(searching, probe, begin)
    return found | jnp.all(key == history.origin), place, table
