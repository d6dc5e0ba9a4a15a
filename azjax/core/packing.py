"""Any batch of pytrees as one array of words, so that a tree stores or reads a position in one go."""

import dataclasses
import math
from typing import Any

import chex
import jax
import jax.numpy as jnp

_WORD = 4  # bytes


@dataclasses.dataclass(frozen=True)
class Packing:
    """How states of one structure lie in uint32 words. Hashable, so that it can be static.

    Attributes:
      structure: of the pytree.
      leaves: shape (without the batch) and dtype of each leaf.
    """

    structure: Any
    leaves: tuple[tuple[tuple[int, ...], Any], ...]

    @classmethod
    def of(cls, states: Any) -> "Packing":
        """The packing of `states`, every leaf [B, ...]."""
        leaves, structure = jax.tree.flatten(states)
        return cls(structure, tuple((leaf.shape[1:], jnp.dtype(leaf.dtype)) for leaf in leaves))

    @property
    def num_words(self) -> int:
        """W."""
        return sum(_num_words(shape, dtype) for shape, dtype in self.leaves)

    def pack(self, states: Any) -> chex.Array:
        """States, every leaf [B, ...], as uint32 [B, W]."""
        columns = [_to_words(leaf) for leaf in jax.tree.leaves(states)]
        return jnp.concatenate(columns, axis=1) if columns else jnp.zeros((0, 0), jnp.uint32)

    def unpack(self, words: chex.Array) -> Any:
        """uint32 [..., W] as states, every leaf [..., its own shape]."""
        leaves, begin = [], 0
        for shape, dtype in self.leaves:
            end = begin + _num_words(shape, dtype)
            leaves.append(_from_words(words[..., begin:end], shape, dtype))
            begin = end
        return jax.tree.unflatten(self.structure, leaves)


def _num_words(shape: tuple[int, ...], dtype: Any) -> int:
    return -(-math.prod(shape) * dtype.itemsize // _WORD)


def _to_words(leaf: chex.Array) -> chex.Array:
    batch, dtype = leaf.shape[0], leaf.dtype
    flat = leaf.reshape(batch, -1)
    if dtype == jnp.bool_:
        flat = flat.astype(jnp.uint8)
    if dtype.itemsize < _WORD:
        # As whole numbers, of which nothing is lost on the way.
        flat = jax.lax.bitcast_convert_type(flat, _unsigned(flat.dtype))
        # Narrow numbers share a word; a lone one is widened, which costs no padding.
        if flat.shape[1] == 1:
            return flat.astype(jnp.uint32)
        each = _WORD // dtype.itemsize
        padded = jnp.pad(flat, ((0, 0), (0, -flat.shape[1] % each)))
        return jax.lax.bitcast_convert_type(padded.reshape(batch, -1, each), jnp.uint32)
    return jax.lax.bitcast_convert_type(flat, jnp.uint32).reshape(batch, -1)


def _from_words(words: chex.Array, shape: tuple[int, ...], dtype: Any) -> chex.Array:
    lead, size = words.shape[:-1], math.prod(shape)
    stored = jnp.dtype(jnp.uint8) if dtype == jnp.bool_ else dtype
    if dtype.itemsize < _WORD:
        if size == 1:
            flat = jax.lax.bitcast_convert_type(words.astype(_unsigned(stored)), stored)
        else:
            unsigned = jax.lax.bitcast_convert_type(words, _unsigned(stored)).reshape(*lead, -1)[..., :size]
            flat = jax.lax.bitcast_convert_type(unsigned, stored)
    elif dtype.itemsize == _WORD:
        flat = jax.lax.bitcast_convert_type(words, dtype)
    else:
        flat = jax.lax.bitcast_convert_type(words.reshape(*lead, size, -1), dtype)
    return flat.astype(dtype).reshape(*lead, *shape)


def _unsigned(dtype: Any) -> Any:
    return jnp.dtype(f"uint{8 * dtype.itemsize}")
