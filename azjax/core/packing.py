"""Batches of any pytree as one array of words, so that a tree stores or reads a state in one access.

Axis letters: `B` batch, `W` words of a packed state.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree, Shaped, UInt32

from azjax.core.errors import InputError

_WORD = 4  # bytes


@dataclasses.dataclass(frozen=True)
class Packing:
    """How states of one structure lie in uint32 words. Hashable, so that it can be static.

    Leaves follow one another, each from a new word on; a leaf of one number narrower than a word is widened to a word.

    Attributes:
      structure: of the pytree.
      leaves: shape (without the batch) and dtype of each leaf.
    """

    structure: jax.tree_util.PyTreeDef
    leaves: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]

    @classmethod
    def of(cls, states: PyTree) -> "Packing":
        """The packing of a batch of states, every leaf [B, ...]."""
        leaves, structure = jax.tree.flatten(states)
        return cls(structure, tuple((leaf.shape[1:], jnp.dtype(leaf.dtype)) for leaf in leaves))

    @classmethod
    def of_state(cls, state: PyTree) -> "Packing":
        """The packing of states like this one: a pytree of arrays, or of their shapes (`jax.eval_shape`)."""
        leaves, structure = jax.tree.flatten(state)
        return cls(structure, tuple((leaf.shape, jnp.dtype(leaf.dtype)) for leaf in leaves))

    @property
    def num_words(self) -> int:
        """W."""
        return sum(_num_words(shape, dtype) for shape, dtype in self.leaves)

    def pack(self, states: PyTree) -> UInt32[Array, "B W"]:
        """The words of a batch of states, every leaf [B, ...].

        Raises:
          InputError: other leaves, or one of another shape or dtype; its words would be read as those of others.
        """
        named = jax.tree_util.tree_leaves_with_path(states)
        if len(named) != len(self.leaves):
            raise InputError(
                f"the states have {len(self.leaves)} leaves at the root of a search and {len(named)} after a step: are "
                "they of another game?"
            )
        for (path, leaf), wanted in zip(named, self.leaves, strict=True):
            if (got := (leaf.shape[1:], jnp.dtype(leaf.dtype))) != wanted:
                shown = " and ".join(f"{dtype} {list(shape)}" for shape, dtype in (wanted, got))
                raise InputError(
                    f"the leaf {jax.tree_util.keystr(path)} of the states is {shown}: it needs one type at the root of "
                    "a search and after every step"
                )
        columns = [_to_words(leaf) for leaf in jax.tree.leaves(states)]
        return jnp.concatenate(columns, axis=1) if columns else jnp.zeros((0, 0), jnp.uint32)

    def unpack(self, words: UInt32[Array | np.ndarray, "... W"]) -> PyTree:
        """The states of these words, every leaf [..., *its own shape]."""
        leaves, begin = [], 0
        for shape, dtype in self.leaves:
            end = begin + _num_words(shape, dtype)
            leaves.append(_from_words(words[..., begin:end], shape, dtype))
            begin = end
        return jax.tree.unflatten(self.structure, leaves)


def _num_words(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return -(-math.prod(shape) * dtype.itemsize // _WORD)


def _to_words(leaf: Shaped[Array, "B ..."]) -> UInt32[Array, "B W"]:
    batch, dtype = leaf.shape[0], leaf.dtype
    flat = leaf.reshape(batch, -1)
    if dtype == jnp.bool_:
        flat = flat.astype(jnp.uint8)
    if dtype.itemsize < _WORD:
        # As integers: XLA may change the bits of narrow floats that it moves.
        flat = jax.lax.bitcast_convert_type(flat, _unsigned(flat.dtype))
        if flat.shape[1] == 1:
            return flat.astype(jnp.uint32)
        each = _WORD // dtype.itemsize
        padded = jnp.pad(flat, ((0, 0), (0, -flat.shape[1] % each)))
        return jax.lax.bitcast_convert_type(padded.reshape(batch, -1, each), jnp.uint32)
    return jax.lax.bitcast_convert_type(flat, jnp.uint32).reshape(batch, -1)


def _from_words(
    words: UInt32[Array | np.ndarray, "... W"], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Shaped[Array, "..."]:
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


def _unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return jnp.dtype(f"uint{8 * dtype.itemsize}")
