"""The earlier positions of a game, as a hash table of their keys: looking one up and adding one take constant time."""

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from azjax.core.pytree import pytree_dataclass

_Table: TypeAlias = UInt32[Array, "C 3"]
_Carry: TypeAlias = tuple[Array, Array, Array, Array]


@pytree_dataclass
class History:
    """The positions since the last one that cannot occur again; the first of them is not in the table.

    Attributes:
      table: the two halves of a key, and the epoch in which it was written; open addressing with linear probing. C is
        a power of two, large enough that an entry is always free.
      epoch: entries of other epochs are free, so a restart writes nothing to the table.
      origin: the key of the first position.
    """

    table: UInt32[Array, "*B C 3"]
    epoch: UInt32[Array, "*B"]
    origin: UInt32[Array, "*B 2"]

    def contains(self, key: UInt32[Array, "2"]) -> Bool[Array, ""]:
        """Whether the position of that key has occurred."""
        found, _, _ = _probe(self, key)
        return found

    def visit(self, key: UInt32[Array, "2"], condition: Bool[Array, ""]) -> tuple[Bool[Array, ""], "History"]:
        """Whether the position has occurred, and the history with it added if `condition` holds."""
        found, index, table = _probe(self, key)
        index = jnp.where(condition & ~found, index, len(table))
        table = table.at[index].set(jnp.concatenate([key, self.epoch[None]]), mode="drop")
        return found, History(table, self.epoch, self.origin)

    def restart(self, key: UInt32[Array, "2"], condition: Bool[Array, ""]) -> "History":
        """The history of that position alone if `condition` holds, this one otherwise."""
        epoch = self.epoch + condition.astype(jnp.uint32)
        return History(self.table, epoch, jnp.where(condition, key, self.origin))


def new_history(num_positions: int, key: UInt32[Array, "2"]) -> History:
    """A history of the position of `key`, with capacity for `num_positions`, which fill at most half of the table."""
    capacity = 1 << (2 * num_positions - 1).bit_length()
    return History(jnp.zeros((capacity, 3), jnp.uint32), jnp.uint32(1), key)


def _probe(history: History, key: UInt32[Array, "2"]) -> tuple[Bool[Array, ""], Int32[Array, ""], _Table]:
    """Whether the key is in the history; its index in the table, or the free one for it; the table itself.

    The loop carries the table and returns it, so that XLA writes to it in place afterwards.
    """

    def searching(carry: _Carry) -> Array:
        return carry[0]

    def probe(carry: _Carry) -> _Carry:
        _, index, _, table = carry
        entry = table.at[index].get(mode="promise_in_bounds")
        used = entry[2] == history.epoch
        same = used & (entry[0] == key[0]) & (entry[1] == key[1])
        goes_on = used & ~same
        return goes_on, jnp.where(goes_on, (index + 1) & (len(table) - 1), index), same, table

    first = (key[1] & np.uint32(len(history.table) - 1)).astype(jnp.int32)
    begin = (jnp.bool_(True), first, jnp.bool_(False), history.table)
    _, index, found, table = jax.lax.while_loop(searching, probe, begin)
    return found | jnp.all(key == history.origin), index, table
