"""Operations on uint32 words: counting and finding bits, scaling random bits, and the hash of positions."""

import itertools
from collections.abc import Iterable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from azjax.core.xla import materialize

WORD = 32
"""Bits of a word."""

Word: TypeAlias = UInt32[Array | np.ndarray | np.uint32, "..."]
"""A word, or an array of words. Constants are NumPy scalars; on the host, states have NumPy leaves."""


def count_bits(word: Word) -> Int32[Array, "..."]:
    """The number of set bits of each word."""
    return jax.lax.population_count(word).astype(jnp.int32)


def nth_bit(word: Word, n: Int32[Array, "..."]) -> Int32[Array, "..."]:
    """The number of the n-th lowest set bit (from 0) of a word that has more than n."""
    index = jnp.zeros_like(n)
    for width in (16, 8, 4, 2, 1):
        lower = word & np.uint32((1 << width) - 1)
        in_lower = count_bits(lower)
        beyond = n >= in_lower
        word = jnp.where(beyond, word >> np.uint32(width), lower)
        n = jnp.where(beyond, n - in_lower, n)
        index = index + jnp.where(beyond, width, 0)
    return index


def compact(mask: Bool[Array, "A"], size: int) -> tuple[Int32[Array, "{size}"], Bool[Array, "{size}"]]:
    """The indices of the true elements of `mask`, at most `size`, ascending.

    Returns:
      indices: 0 beyond the last true element.
      valid: which of them are indices of true elements.
    """
    rows = -(-len(mask) // WORD)
    squares = jnp.pad(mask, (0, rows * WORD - len(mask))).reshape(rows, WORD)
    weights = np.uint32(1) << np.arange(WORD, dtype=np.uint32)[None]
    words = jnp.sum(jnp.where(squares, weights, np.uint32(0)), axis=1, dtype=jnp.uint32)
    count = count_bits(words)
    # Not `cumsum`, which does not fit in a kernel.
    *begins, total = itertools.accumulate((count[row] for row in range(rows)), initial=jnp.int32(0))
    words, begin, total = materialize((words, jnp.stack(begins), total))
    # The k-th element is in the last word that begins with it or before.
    k = jnp.arange(size, dtype=jnp.int32)
    word = jnp.sum(begin[:, None] <= k[None], axis=0, dtype=jnp.int32) - 1
    (word,) = materialize((word,))
    number = word * WORD + nth_bit(words[word], k - begin[word])
    valid = k < total
    return materialize((jnp.where(valid, number, 0), valid))


def scale_bits(bits: UInt32[Array, ""], limit: Int32[Array, ""]) -> Int32[Array, ""]:
    """floor(bits * limit / 2^32), for a limit below 2^16: random bits become an integer in 0..limit-1."""
    factor = limit.astype(jnp.uint32)
    low: Array = (bits & jnp.uint32(0xFFFF)) * factor
    high: Array = (bits >> 16) * factor
    return (high + (low >> 16) >> 16).astype(jnp.int32)


def hash_words(words: Iterable[Word]) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """A 64-bit hash of a sequence of words, as two halves.

    Each half is a chain of bijections with a word mixed in at each link; the two chains are independent.
    """
    high, low = jnp.uint32(0x9E3779B9), jnp.uint32(0x7F4A7C15)
    for word in words:
        high = mix(high ^ word, (16, 13, 16), (0x85EBCA6B, 0xC2B2AE35))
        low = mix(low + word)
    return high, low


def mix(
    words: UInt32[Array, "..."],
    shifts: tuple[int, int, int] = (16, 15, 16),
    factors: tuple[int, int] = (0x7FEB352D, 0x846CA68B),
) -> UInt32[Array, "..."]:
    """A bijection of the words that spreads every bit over the whole word: shifted xors and odd factors."""
    for distance, factor in zip(shifts, (*factors, 1), strict=True):
        words = (words ^ (words >> np.uint32(distance))) * np.uint32(factor)
    return words
