"""Sets of squares as bits, for boards of any size: a `Bits` is a tuple of uint32 words, the lowest bits first.

Each word is an array of its own, so that a batch of boards is a few contiguous vectors and every operation here is
plain arithmetic on them. Rules number a square `row * stride + column` with a stride of one more than the columns:
the spare bit at the end of each row is never set, so that nothing wraps around an edge when it is shifted.
"""

from collections.abc import Iterable, Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.xla import materialize

WORD = 32
Bits = tuple[chex.Array, ...]


def num_words(num_bits: int) -> int:
    """Words that hold so many bits."""
    return -(-num_bits // WORD)


def constant(bits: Iterable[int], words: int) -> tuple[np.uint32, ...]:
    """The set of these bit numbers, known when the rules are built."""
    total = sum(1 << bit for bit in set(bits))
    return tuple(np.uint32(total >> (WORD * word) & 0xFFFFFFFF) for word in range(words))


def empty(words: int) -> Bits:
    """No squares."""
    return tuple(jnp.uint32(0) for _ in range(words))


def single(bit: chex.Array, words: int) -> Bits:
    """The set of one bit, number int32 []."""
    one = jnp.uint32(1) << (bit & (WORD - 1)).astype(jnp.uint32)
    return tuple(jnp.where(bit >> 5 == word, one, jnp.uint32(0)) for word in range(words))


def below(bit: chex.Array, words: int) -> Bits:
    """All bits with lower numbers than int32 [] `bit`, which may be anything."""
    masks = []
    for word in range(words):
        count = bit - WORD * word
        ones = (jnp.uint32(1) << jnp.clip(count, 0, WORD - 1).astype(jnp.uint32)) - jnp.uint32(1)
        masks.append(jnp.where(count >= WORD, jnp.uint32(0xFFFFFFFF), ones))
    return tuple(masks)


def union(*sets: Bits) -> Bits:
    """Squares of any of the sets."""
    return tuple(_reduce_or(words) for words in zip(*sets, strict=True))


def both(left: Bits, right: Bits) -> Bits:
    """Squares of the one and the other."""
    return tuple(a & b for a, b in zip(left, right, strict=True))


def without(left: Bits, right: Bits) -> Bits:
    """Squares of the first set that are not in the second."""
    return tuple(a & ~b for a, b in zip(left, right, strict=True))


def toggle(left: Bits, right: Bits) -> Bits:
    """Squares of exactly one of the two sets."""
    return tuple(a ^ b for a, b in zip(left, right, strict=True))


def choose(condition: chex.Array, left: Bits, right: Bits) -> Bits:
    """`left` where the condition, bool [], holds; otherwise `right`."""
    return tuple(jnp.where(condition, a, b) for a, b in zip(left, right, strict=True))


def only_if(condition: chex.Array, bits: Bits) -> Bits:
    """`bits` where the condition holds; otherwise none."""
    return tuple(jnp.where(condition, word, jnp.uint32(0)) for word in bits)


def shift(bits: Bits, distance: int) -> Bits:
    """Every bit moved up by `distance` places, or down where it is negative; what leaves the words is lost."""
    skip, rest = divmod(distance, WORD)
    zero = jnp.zeros_like(bits[0])

    def word_at(index: int) -> chex.Array:
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
    reached, way, distance = pieces, free, 1
    # Kogge-Stone: twice the distance at each turn.
    while True:
        reached = union(reached, both(way, shift(reached, step * distance)))
        if 2 * distance > longest:
            return without(reached, pieces)
        way = both(way, shift(way, step * distance))
        distance *= 2


def any_of(bits: Bits) -> chex.Array:
    """bool []: there is a square in the set."""
    return _reduce_or(bits) != 0


def has(bits: Bits, bit: chex.Array) -> chex.Array:
    """bool [...]: the set holds the bits of these numbers, int32 [...]; False for numbers out of range."""
    word = jnp.zeros(jnp.shape(bit), jnp.uint32)
    for index, candidate in enumerate(bits):
        word = jnp.where(bit >> 5 == index, candidate, word)
    return (word >> (bit & (WORD - 1)).astype(np.uint32)) & jnp.uint32(1) == 1


def count(bits: Bits) -> chex.Array:
    """int32 []: how many squares."""
    total = jax.lax.population_count(bits[0])
    for word in bits[1:]:
        total = total + jax.lax.population_count(word)
    return total.astype(jnp.int32)


def nth_bit(word: chex.Array, n: chex.Array) -> chex.Array:
    """int32 [...]: the number of the n-th lowest set bit (n int32 [...] from 0) of a uint32 word that has so many."""
    place = jnp.zeros_like(n)
    for width in (16, 8, 4, 2, 1):
        lower = word & np.uint32((1 << width) - 1)
        in_lower = jax.lax.population_count(lower).astype(jnp.int32)
        beyond = n >= in_lower
        word = jnp.where(beyond, word >> np.uint32(width), lower)
        n = jnp.where(beyond, n - in_lower, n)
        place = place + jnp.where(beyond, width, 0)
    return place


def nth(bits: Bits, n: chex.Array) -> chex.Array:
    """int32 [...]: the number of the n-th lowest bit (n int32 [...] from 0) of a set that has so many."""
    word, base, skipped, passed = bits[0], jnp.zeros_like(n), jnp.zeros_like(n), jnp.int32(0)
    for number in range(1, len(bits)):
        passed = passed + count(bits[number - 1 : number])
        beyond = n >= passed
        word = jnp.where(beyond, bits[number], word)
        base = jnp.where(beyond, WORD * number, base)
        skipped = jnp.where(beyond, passed, skipped)
    return base + nth_bit(word, n - skipped)


def unpack(sets: Sequence[Bits], bit_numbers: np.ndarray) -> chex.Array:
    """bool [len(bit_numbers), len(sets)]: which of these bits, int [squares], each set holds."""
    number = np.arange(len(sets))
    shifts = (bit_numbers % WORD).astype(np.uint32)[:, None]
    word_of = (bit_numbers // WORD)[:, None]
    chosen = jnp.zeros((len(bit_numbers), len(sets)), jnp.uint32)
    for place in range(len(sets[0])):
        # Selects and not a stack, the elements of which XLA would compute one by one.
        words = jnp.zeros(len(sets), jnp.uint32)
        for column, bits in enumerate(sets):
            words = jnp.where(number == column, bits[place], words)
        chosen = jnp.where(word_of == place, words[None], chosen)
    return (chosen >> shifts) & np.uint32(1) == 1


def pack(squares: chex.Array, bit_numbers: np.ndarray, words: int) -> Bits:
    """The set of the bits where `squares`, bool of the shape of `bit_numbers`, is True."""
    weights = (np.uint32(1) << (bit_numbers.ravel() % WORD).astype(np.uint32)).astype(np.uint32)
    values = jnp.where(jnp.asarray(squares).reshape(-1), weights, np.uint32(0))
    word = bit_numbers.ravel() // WORD
    return tuple(jnp.sum(jnp.where(word == w, values, np.uint32(0)), dtype=jnp.uint32) for w in range(words))


def compact(mask: chex.Array, size: int) -> tuple[chex.Array, chex.Array]:
    """The numbers of the set elements of bool [A], of which there are at most `size`: int32 [size], bool [size]."""
    rows = -(-len(mask) // WORD)
    squares = jnp.pad(mask, (0, rows * WORD - len(mask))).reshape(rows, WORD)
    weights = np.uint32(1) << np.arange(WORD, dtype=np.uint32)[None]
    words = jnp.sum(jnp.where(squares, weights, np.uint32(0)), axis=1, dtype=jnp.uint32)
    count = jax.lax.population_count(words).astype(jnp.int32)
    words, begin, total = materialize((words, jnp.cumsum(count) - count, jnp.sum(count)))
    # The k-th element is in the last word that begins with it or before.
    k = jnp.arange(size, dtype=jnp.int32)
    word = jnp.sum(begin[:, None] <= k[None], axis=0, dtype=jnp.int32) - 1
    (word,) = materialize((word,))
    number = word * WORD + nth_bit(words[word], k - begin[word])
    valid = k < total
    return materialize((jnp.where(valid, number, 0), valid))


def hash_words(words: Iterable[chex.Array]) -> tuple[chex.Array, chex.Array]:
    """Two uint32 halves of a 64-bit hash of uint32 words.

    Two independent chains of mixing bijections, one word a link.
    """
    high, low = jnp.uint32(0x9E3779B9), jnp.uint32(0x7F4A7C15)
    for word in words:
        high = mix(high ^ word, (16, 13, 16), (0x85EBCA6B, 0xC2B2AE35))
        low = mix(low + word, (16, 15, 16), (0x7FEB352D, 0x846CA68B))
    return high, low


def mix(x: chex.Array, shifts: tuple[int, int, int], factors: tuple[int, int]) -> chex.Array:
    """Spreads every bit of uint32 x over the word; shifted xors and odd factors are bijections."""
    for places, factor in zip(shifts, (*factors, 1), strict=True):
        x = (x ^ (x >> np.uint32(places))) * np.uint32(factor)
    return x


def _reduce_or(words: Iterable[chex.Array]) -> chex.Array:
    first, *others = words
    for word in others:
        first = first | word
    return first
