"""The earlier positions of a game, as a hash table of their keys: looking one up and adding one take constant time."""

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from azjax.core.pytree import pytree_dataclass

_Table: TypeAlias = UInt32[Array, "C 3"]
_Carry: TypeAlias = tuple[Array, Array, Array, Array]

_EPOCH_BITS = np.uint32(30)
_EPOCHS = np.uint32((1 << 30) - 1)


@pytree_dataclass
class History:
    """The positions since the last one that cannot occur again; the first of them is not in the table.

    Attributes:
      table: the two halves of a key, and the epoch in which it was written with how often it was visited again, in the
        two highest bits; open addressing with linear probing. C is a power of two, large enough that an entry is always
        free.
      epoch: entries of other epochs are free, so a restart writes nothing to the table.
      origin: the key of the first position.
    """

    table: UInt32[Array, "*B C 3"]
    epoch: UInt32[Array, "*B"]
    origin: UInt32[Array, "*B 2"]

    def times(self, key: UInt32[Array, "2"]) -> Int32[Array, ""]:
        """How often the position of that key has occurred."""
        visits, _, _ = _probe(self, key)
        return visits + jnp.all(key == self.origin).astype(jnp.int32)

    def contains(self, key: UInt32[Array, "2"]) -> Bool[Array, ""]:
        """Whether the position of that key has occurred."""
        return self.times(key) > 0

    def visit(
        self, key: UInt32[Array, "2"], condition: Bool[Array, ""], repetitions: int = 2
    ) -> tuple[Bool[Array, ""], "History"]:
        """Whether this is occurrence number `repetitions` of the position, or a later one; and the history after it.

        `repetitions` is 2..4. The history is as before where `condition` does not hold, or the answer is yes.
        """
        visits, index, table = _probe(self, key)
        repeats = visits + jnp.all(key == self.origin).astype(jnp.int32) >= repetitions - 1
        index = jnp.where(condition & ~repeats, index, len(table))
        entry = self.epoch | visits.astype(jnp.uint32) << _EPOCH_BITS
        table = table.at[index].set(jnp.concatenate([key, entry[None]]), mode="drop")
        return repeats, History(table, self.epoch, self.origin)

    def restart(self, key: UInt32[Array, "2"], condition: Bool[Array, ""]) -> "History":
        """The history of that position alone if `condition` holds, this one otherwise."""
        epoch = self.epoch + condition.astype(jnp.uint32)
        return History(self.table, epoch, jnp.where(condition, key, self.origin))


def new_history(num_positions: int, key: UInt32[Array, "2"]) -> History:
    """A history of the position of `key`, with capacity for `num_positions`, which fill at most half of the table."""
    capacity = 1 << (2 * num_positions - 1).bit_length()
    return History(jnp.zeros((capacity, 3), jnp.uint32), jnp.uint32(1), key)


def _probe(history: History, key: UInt32[Array, "2"]) -> tuple[Int32[Array, ""], Int32[Array, ""], _Table]:
    """How often the key was visited; its index in the table, or the free one for it; the table itself.

    The loop carries the table and returns it, so that XLA writes to it in place afterwards.
    """

    def searching(carry: _Carry) -> Array:
        return carry[0]

    def probe(carry: _Carry) -> _Carry:
        _, index, _, table = carry
        entry = table.at[index].get(mode="promise_in_bounds")
        used = entry[2] & _EPOCHS == history.epoch
        same = used & (entry[0] == key[0]) & (entry[1] == key[1])
        goes_on = used & ~same
        visits = jnp.where(same, (entry[2] >> _EPOCH_BITS).astype(jnp.int32) + 1, 0)
        return goes_on, jnp.where(goes_on, (index + 1) & (len(table) - 1), index), visits, table

    first = (key[1] & np.uint32(len(history.table) - 1)).astype(jnp.int32)
    begin = (jnp.bool_(True), first, jnp.int32(0), history.table)
    _, index, visits, table = jax.lax.while_loop(searching, probe, begin)
    return visits, index, table
