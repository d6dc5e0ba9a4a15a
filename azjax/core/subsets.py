"""Numbers of subsets: the combinatorial number system (Knuth, The Art of Computer Programming 4A, 7.2.1.3).

Axis letter: `N` cells.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32


def rank_of_subset(chosen: Bool[Array, "N"], among: Bool[Array, "N"], most: int) -> UInt32[Array, ""]:
    """The rank of a subset of the cells `among`, in 0..C(n, k)-1 for k of n cells. It has at most `most` cells."""
    nth = jnp.minimum(_counts(chosen), most)
    parts = jnp.asarray(binomials(len(chosen), most))[_places(among), nth]
    rank: Array = jnp.sum(jnp.where(chosen, parts, 0), dtype=jnp.uint32)
    return rank


def subset_of_rank(
    rank: UInt32[Array, ""], count: Int32[Array, ""], among: Bool[Array, "N"], most: int
) -> Bool[Array, "N"]:
    """The inverse of `rank_of_subset`: `count` of the cells `among`, at most `most`."""
    table = jnp.asarray(binomials(len(among), most))

    def choose(
        carry: tuple[UInt32[Array, ""], Int32[Array, ""]], cell: tuple[Int32[Array, ""], Bool[Array, ""]]
    ) -> tuple[tuple[UInt32[Array, ""], Int32[Array, ""]], Bool[Array, ""]]:
        (rank, left), (place, is_among) = carry, cell
        below = table[place, left]
        is_chosen = is_among & (left > 0) & (rank >= below)
        return (jnp.where(is_chosen, rank - below, rank), left - is_chosen), is_chosen

    # From the last cell down.
    chosen: Array = jax.lax.scan(choose, (rank, count), (_places(among), among), reverse=True)[1]
    return chosen


def _places(among: Bool[Array, "N"]) -> Int32[Array, "N"]:
    """How many of the cells `among` come before each of them; 0 elsewhere."""
    return jnp.where(among, _counts(among) - 1, 0)


def _counts(cells: Bool[Array, "N"]) -> Int32[Array, "N"]:
    """How many of the cells come before each one, itself included."""
    # A product of matrices in a batch, which is many times faster than a sum that runs.
    return (cells.astype(jnp.float32) @ jnp.triu(jnp.ones((len(cells), len(cells)), jnp.float32))).astype(jnp.int32)


def binomials(size: int, most: int) -> UInt32[np.ndarray, "N most_and_one"]:
    """C(n, k), the number of sets of k of n cells, for n below `size` and k up to `most`."""
    return np.array([[math.comb(n, k) for k in range(most + 1)] for n in range(size)], np.uint32)
