"""Counts of move sequences, as the rules of games are tested by.

A count may exceed 64 bits. Many counts are kept as int64 [n, digits], digits of `_DIGIT_BITS` bits, lowest first.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32, Int64

from azjax.core.errors import InputError
from azjax.evaluation.positions import expand_layer, first_layer, unpacked_batches
from azjax.games.game import AnyGame, State
from azjax.games.protocols import RepetitionGame

_DIGIT_BITS = 20


def perft(game: AnyGame, depth: int) -> list[int]:
    """The numbers of sequences of 1, 2, ... `depth` legal actions from the start; a finished game is not extended.

    Raises:
      InputError: negative depth, or a game that draws its start.
    """
    if depth < 0:
        raise InputError(f"depth must not be negative, got {depth}")
    if isinstance(game, RepetitionGame) and depth < game.max_plies:
        game = game.with_max_plies(max(depth, 1))
    layer, ways = first_layer(game), np.ones((1, 1), np.int64)
    counts: list[int] = []
    for ply in range(depth):
        if layer.size == 0:
            return counts + [0] * (depth - ply)
        legal = [np.asarray(_count_legal(game, states))[:size] for size, states in unpacked_batches(game, layer.words)]
        counts.append(total_ways(ways, np.concatenate(legal)))
        if ply + 1 < depth:
            expansion, layer = expand_layer(game, layer)
            ways = ways_to_children(ways, expansion.children, layer.size)
    return counts


def ways_to_children(
    ways: Int64[np.ndarray, "n digits"], children: Int[np.ndarray, "n K"], size: int
) -> Int64[np.ndarray, "size more_digits"]:
    """The ways to `size` positions from the ways to their parents; `children` are indices, or `HOLE`."""
    parents, slots = np.nonzero(children >= 0)
    sums = np.zeros((size, ways.shape[1] + 1), np.int64)
    for digit in range(ways.shape[1]):
        np.add.at(sums[:, digit], children[parents, slots], ways[parents, digit])
        # The carry is small: fewer than 2^42 edges lead to one position.
        sums[:, digit + 1] += sums[:, digit] >> _DIGIT_BITS
        sums[:, digit] &= (1 << _DIGIT_BITS) - 1
    return sums if sums[:, -1].any() else sums[:, :-1]


def total_ways(ways: Int64[np.ndarray, "n digits"], factors: Int[np.ndarray, "n"]) -> int:
    """The sum of the ways, each times its factor."""
    return sum(int(column @ factors.astype(np.int64)) << (_DIGIT_BITS * digit) for digit, column in enumerate(ways.T))


@functools.partial(jax.jit, static_argnums=0)
def _count_legal(game: AnyGame, states: State) -> Int32[Array, "B"]:
    _, valid = jax.vmap(game.legal_slots)(states)
    return jnp.sum(valid, axis=1, dtype=jnp.int32)
