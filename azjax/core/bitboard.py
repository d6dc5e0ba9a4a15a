"""Sets of squares as bits, for boards of any size: a `Bits` is a tuple of uint32 words, the lowest bits first.

Each word is an array of its own, so that a batch of boards is a few contiguous vectors and every operation here is
plain arithmetic on them. Rules number a square `row * stride + column` with a stride of one more than the columns:
the spare bit at the end of each row is never set, so that no shift wraps around an edge.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int32

from azjax.core.bits import WORD, Word, nth_bit

Bits: TypeAlias = tuple[Word, ...]
Condition: TypeAlias = Bool[Array | np.ndarray | np.bool_, "..."]


def num_words(num_bits: int) -> int:
    """The number of words that hold this many bits."""
    return -(-num_bits // WORD)


def constant(bits: Iterable[int], words: int) -> Bits:
    """The set of these bit numbers, as NumPy constants."""
    total = sum(1 << bit for bit in set(map(int, bits)))  # an integer of NumPy has 64 bits at most
    return tuple(np.uint32(total >> (WORD * word) & 0xFFFFFFFF) for word in range(words))


def empty(words: int) -> Bits:
    """The empty set."""
    return tuple(jnp.uint32(0) for _ in range(words))


def single(bit: Int32[Array, "..."], words: int) -> Bits:
    """The set of one bit; empty if the words have no such bit."""
    one = jnp.uint32(1) << (bit & (WORD - 1)).astype(jnp.uint32)
    return tuple(jnp.where(bit >> 5 == word, one, jnp.uint32(0)) for word in range(words))


def below(bit: Int32[Array, "..."], words: int) -> Bits:
    """All bits with lower numbers than `bit`, which may be out of range."""
    masks = []
    for word in range(words):
        count = bit - WORD * word
        ones = (jnp.uint32(1) << jnp.clip(count, 0, WORD - 1).astype(jnp.uint32)) - jnp.uint32(1)
        masks.append(jnp.where(count >= WORD, jnp.uint32(0xFFFFFFFF), ones))
    return tuple(masks)


def union(*sets: Bits) -> Bits:
    """The squares that are in at least one of the sets."""
    return tuple(_reduce_or(words) for words in zip(*sets, strict=True))


def both(left: Bits, right: Bits) -> Bits:
    """The intersection."""
    return tuple(a & b for a, b in zip(left, right, strict=True))


def without(left: Bits, right: Bits) -> Bits:
    """The squares of the first set that are not in the second."""
    return tuple(a & ~b for a, b in zip(left, right, strict=True))


def toggle(left: Bits, right: Bits) -> Bits:
    """The squares that are in exactly one of the two sets."""
    return tuple(a ^ b for a, b in zip(left, right, strict=True))


def choose(condition: Condition, left: Bits, right: Bits) -> Bits:
    """`left` where the condition holds, `right` elsewhere."""
    return tuple(jnp.where(condition, a, b) for a, b in zip(left, right, strict=True))


def only_if(condition: Condition, bits: Bits) -> Bits:
    """`bits` where the condition holds, the empty set elsewhere."""
    return tuple(jnp.where(condition, word, jnp.uint32(0)) for word in bits)


def shift(bits: Bits, distance: int) -> Bits:
    """Every bit moved up by `distance`, or down if it is negative; bits that leave the words are lost."""
    skip, rest = divmod(distance, WORD)
    zero = jnp.zeros_like(bits[0])

    def word_at(index: int) -> Word:
        return bits[index] if 0 <= index < len(bits) else zero

    shifted = []
    for word in range(len(bits)):
        upper, lower = word_at(word - skip), word_at(word - skip - 1)
        if rest == 0:
            shifted.append(upper)
        else:
            shifted.append((upper << np.uint32(rest)) | (lower >> np.uint32(WORD - rest)))
    return tuple(shifted)


def slide(pieces: Bits, free: Bits, step: int, longest: int) -> Bits:
    """The free squares that some piece reaches by `step` repeated up to `longest` times over free squares."""
    reached, path, reach = pieces, free, 0
    # Kogge-Stone: each turn doubles the reach, the last one as far as is left. Squares of `path` end runs of reach + 1.
    while True:
        distance = min(reach + 1, longest - reach)
        reached = union(reached, both(path, shift(reached, step * distance)))
        reach += distance
        if reach == longest:
            return without(reached, pieces)
        path = both(path, shift(path, step * distance))


def any_of(bits: Bits) -> Bool[Array, "..."]:
    """Whether the set has a square."""
    return jnp.asarray(_reduce_or(bits) != 0)  # the words of a position may be NumPy's


def has(bits: Bits, bit: Int[Array | np.ndarray, "..."]) -> Bool[Array, "..."]:
    """Whether the set has the bits of these numbers; False for numbers out of range."""
    word = jnp.zeros(jnp.shape(bit), jnp.uint32)
    for index, candidate in enumerate(bits):
        word = jnp.where(bit >> 5 == index, candidate, word)
    lowest: Array = (word >> (bit & (WORD - 1)).astype(np.uint32)) & jnp.uint32(1)
    return lowest == 1


def count(bits: Bits) -> Int32[Array, "..."]:
    """The number of squares."""
    total = jax.lax.population_count(bits[0])
    for word in bits[1:]:
        total = total + jax.lax.population_count(word)
    return total.astype(jnp.int32)


def nth(bits: Bits, n: Int32[Array, "..."]) -> Int32[Array, "..."]:
    """The number of the n-th lowest bit (from 0) of a set that has more than n."""
    word, base, skipped, passed = bits[0], jnp.zeros_like(n), jnp.zeros_like(n), jnp.int32(0)
    for number in range(1, len(bits)):
        passed = passed + count(bits[number - 1 : number])
        beyond = n >= passed
        word = jnp.where(beyond, bits[number], word)
        base = jnp.where(beyond, WORD * number, base)
        skipped = jnp.where(beyond, passed, skipped)
    return base + nth_bit(word, n - skipped)


def pop_lowest(bits: Bits) -> tuple[Int32[Array, "..."], Bits]:
    """The number of the lowest bit, and the set without it; 0 and the empty set of an empty set."""
    number, rest, looking = jnp.int32(0), [], jnp.bool_(True)
    for index, word in enumerate(bits):
        here = looking & (word != 0)
        trailing = jax.lax.population_count(~word & (word - np.uint32(1))).astype(jnp.int32)
        number = jnp.where(here, trailing + WORD * index, number)
        rest.append(jnp.where(here, word & (word - np.uint32(1)), word))
        looking &= ~here
    return number, tuple(rest)


def unpack(sets: Sequence[Bits], bit_numbers: Int[np.ndarray, "squares"]) -> Bool[Array, "squares {len(sets)}"]:
    """Which of these bits each set has."""
    number = np.arange(len(sets))
    shifts = (bit_numbers % WORD).astype(np.uint32)[:, None]
    word_of = (bit_numbers // WORD)[:, None]
    chosen = jnp.zeros((len(bit_numbers), len(sets)), jnp.uint32)
    for index in range(len(sets[0])):
        # Selects instead of a stack, whose elements XLA would compute one by one.
        words = jnp.zeros(len(sets), jnp.uint32)
        for column, bits in enumerate(sets):
            words = jnp.where(number == column, bits[index], words)
        chosen = jnp.where(word_of == index, words[None], chosen)
    return (chosen >> shifts) & np.uint32(1) == 1


def pack(squares: Bool[Array | np.ndarray, "..."], bit_numbers: Int[np.ndarray, "..."], words: int) -> Bits:
    """The set of the bits of the true squares; `squares` and `bit_numbers` have as many elements."""
    weights = (np.uint32(1) << (bit_numbers.ravel() % WORD).astype(np.uint32)).astype(np.uint32)
    values = jnp.where(jnp.asarray(squares).reshape(-1), weights, np.uint32(0))
    word = bit_numbers.ravel() // WORD
    return tuple(jnp.sum(jnp.where(word == w, values, np.uint32(0)), dtype=jnp.uint32) for w in range(words))


def _reduce_or(words: Sequence[Word]) -> Word:
    first, *others = words
    for word in others:
        first = first | word
    return first
