"""A packed state comes back bit for bit."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.core.packing import Packing

BATCH = 3
SHAPES = [(), (1,), (2,), (3,), (4,), (5,), (2, 3), (2, 0)]
DTYPES = [jnp.bool_, jnp.int8, jnp.uint8, jnp.int16, jnp.uint16, jnp.bfloat16, jnp.float16]
WORDS = [jnp.int32, jnp.uint32, jnp.float32]
FLOATS = [
    # -0, infinities, NaNs with a sign or a payload (which XLA does not keep in bfloat16), the least number.
    (jnp.float32, np.uint32, [0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7FC12345, 1]),
    (jnp.bfloat16, np.uint16, [0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 1]),
    (jnp.float16, np.uint16, [0x8000, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7E11, 1]),
]


def random_leaf(generator, shape, dtype):
    """Random bits [BATCH, *shape] of a type; those of a bool are 0 or 1, those of a bfloat16 no NaN."""
    dtype = jnp.dtype(dtype)
    shape = (BATCH, *shape)
    if dtype == jnp.bool_:
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype == jnp.bfloat16:
        return generator.normal(0, 100, shape).astype(dtype)
    return np.frombuffer(generator.bytes(math.prod(shape) * dtype.itemsize), dtype).reshape(shape)


def bits_of(leaf):
    leaf = np.ascontiguousarray(leaf)
    return leaf.reshape(-1).view(np.uint8)


def assert_same_bits(got, expected):
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_array_equal(bits_of(one), bits_of(other))


def assert_comes_back(states):
    """Through words [B, W]; and, stacked as in a tree, through [N, B, W]."""
    packing = Packing.of(states)

    @jax.jit
    def there_and_back(states):
        words = packing.pack(states)
        return words, packing.unpack(words), packing.unpack(jnp.stack([words, words]))

    words, back, twice = jax.device_get(there_and_back(states))
    assert words.dtype == np.uint32
    assert words.shape == (BATCH, packing.num_words)
    assert_same_bits(back, states)
    assert_same_bits(twice, jax.tree.map(lambda leaf: np.stack([leaf, leaf]), states))


@pytest.mark.parametrize("dtype", [*DTYPES, *WORDS], ids=lambda dtype: jnp.dtype(dtype).name)
def test_leaves_of_any_shape_come_back_bit_for_bit(dtype):
    generator = np.random.default_rng(0)
    assert_comes_back([random_leaf(generator, shape, dtype) for shape in SHAPES])


def test_leaves_of_all_types_side_by_side_come_back():
    generator = np.random.default_rng(1)
    states = {jnp.dtype(dtype).name: random_leaf(generator, (5,), dtype) for dtype in [*DTYPES, *WORDS]}
    assert_comes_back({"scalars": tuple(leaf[:, 0] for leaf in states.values()), **states})


@pytest.mark.parametrize(("dtype", "integer", "patterns"), FLOATS, ids=lambda value: getattr(value, "__name__", ""))
def test_no_bit_of_a_float_changes(dtype, integer, patterns):
    row = np.array(patterns, integer).view(jnp.dtype(dtype))
    rows = np.stack([np.roll(row, shift) for shift in range(BATCH)])
    assert_comes_back({"array": rows, "scalar": rows[:, 0]})


def test_narrow_numbers_share_a_word():
    leaves = {"bools": np.zeros((BATCH, 9), np.bool_), "short": np.zeros((BATCH, 3), np.int16), "lone": np.ones(BATCH)}
    leaves["lone"] = leaves["lone"].astype(np.int8)
    assert Packing.of(leaves).num_words == 3 + 2 + 1


def test_a_state_without_leaves_has_no_words():
    packing = Packing.of({"past": None})
    assert packing.num_words == 0
    assert packing.unpack(packing.pack({"past": None})) == {"past": None}


def test_packings_of_equal_structure_are_equal():
    one, other = (Packing.of((np.zeros((batch, 4), np.int8),)) for batch in (2, 3))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Packing.of((np.zeros((2, 4), np.uint8),))


def test_the_packing_of_one_state_is_that_of_a_batch():
    states = {"cells": np.zeros((BATCH, 5), np.int8), "turn": np.zeros(BATCH, np.int32)}
    state = jax.tree.map(lambda leaf: leaf[0], states)
    assert Packing.of_state(state) == Packing.of_state(jax.eval_shape(lambda: state)) == Packing.of(states)
