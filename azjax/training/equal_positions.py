"""Equal positions of a batch, merged into one with the mean of their targets.

Self-play meets the positions near its starts again and again, and they would fill the batches of a small game. Merging
them is part of AlphaZero.jl (Laurent 2021, there over the whole memory). An example here keeps its own targets and
weighs one over the number of its equals: for targets that enter the loss linearly, as in cross-entropies and in the
gradient of squared errors, that is the loss of the mean target.

Axis letters: `B` batch, `S` symmetries, `W` words of a packed state.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, UInt32

from azjax.evaluation.positions import flatten, keys, pack
from azjax.games.game import AnyGame, State


def weights_of_merged(game: AnyGame, states: State, symmetries: bool) -> Float32[Array, "B"]:
    """The weights of a batch of positions, every leaf [B, ...], such that different positions weigh the same.

    Their mean is 1. With `symmetries` positions are equal if a symmetry of the game maps one to the other.
    """
    high, low = _smallest_image(game, states) if symmetries else keys(pack(states))
    weights = 1 / count_equal(high, low).astype(jnp.float32)
    return weights / jnp.mean(weights)


def count_equal(high: UInt32[Array, "B"], low: UInt32[Array, "B"]) -> Int32[Array, "B"]:
    """How many of the 64-bit keys equal each, itself included."""
    # For batches of thousands all pairs are faster than a sort, and need no memory.
    return jnp.sum((high[:, None] == high[None]) & (low[:, None] == low[None]), axis=1, dtype=jnp.int32)


def _smallest_image(game: AnyGame, states: State) -> tuple[UInt32[Array, "B"], UInt32[Array, "B"]]:
    """One key for all images of a position: that whose halves are the smallest."""
    images, permutations = jax.vmap(game.symmetries)(states)
    high, low = (half.reshape(permutations.shape[:2]) for half in keys(pack(flatten(images))))
    smallest = jnp.min(high, axis=1)
    return smallest, jnp.min(jnp.where(high == smallest[:, None], low, jnp.uint32(0xFFFFFFFF)), axis=1)
