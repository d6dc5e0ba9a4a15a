"""Reading and writing the arrays of a tree, and what XLA needs so that it does both in place.

Inside a simulation every array is one run of numbers: XLA copies an array that is written in two shapes. Node n of
tree b stands at place n * B + b. Axis letters: see `tree.py`; `R` any number of places.
"""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp


def places(node: chex.Array, batch: int) -> chex.Array:
    """int32 [B]: the places of `node` [B], one in each tree."""
    return node * batch + jnp.arange(batch, dtype=jnp.int32)


def tree_of(place: chex.Array, batch: int) -> chex.Array:
    """int32 [R]: which tree each place is in."""
    # Unsigned: a signed remainder costs several operations more.
    return (place.astype(jnp.uint32) % jnp.uint32(batch)).astype(jnp.int32)


def read(run: chex.Array, place: chex.Array, width: int | None = None) -> chex.Array:
    """[R]: the numbers of `run` at places [R], which must be in range; [R, width] where that many make up a place."""
    if width == 0:
        return jnp.zeros((len(place), 0), run.dtype)
    rows = run if width is None else run.reshape(-1, width)
    return rows.at[place].get(mode="promise_in_bounds", wrap_negative_indices=False)


def add(run: chex.Array, place: chex.Array, values: chex.Array, unique: bool = True) -> chex.Array:
    """`run` with values [R] added at places [R], all different if `unique`; a place beyond the last drops its value."""
    return run.at[place].add(values, mode="drop", unique_indices=unique, wrap_negative_indices=False)


def put(run: chex.Array, place: chex.Array, values: chex.Array, unique: bool = True) -> chex.Array:
    """`run` with values [R] at places [R], equal ones where places are; a place beyond the last drops its value."""
    return run.at[place].set(values, mode="drop", unique_indices=unique, wrap_negative_indices=False)


def largest(run: chex.Array, place: chex.Array, values: chex.Array, unique: bool = True) -> chex.Array:
    """`run` with values [R] at places [R] where they are larger; a place beyond the last drops its value."""
    return run.at[place].max(values, mode="drop", unique_indices=unique, wrap_negative_indices=False)


def smallest(run: chex.Array, place: chex.Array, values: chex.Array, unique: bool = True) -> chex.Array:
    """`run` with values [R] at places [R] where they are smaller; a place beyond the last drops its value."""
    return run.at[place].min(values, mode="drop", unique_indices=unique, wrap_negative_indices=False)


def write_rows(run: chex.Array, rows: chex.Array, index: chex.Array, count: int = 1) -> chex.Array:
    """`run` with so many `rows` side by side, in an array of any shape, from the row of that index on.

    They are in range: a check would read the old ones.
    """
    flat = rows.reshape(-1).astype(run.dtype)
    return jax.lax.dynamic_update_slice_in_dim(run, flat, index * (rows.size // count), axis=0)


def read_row(run: chex.Array, index: chex.Array, width: int) -> chex.Array:
    """[width]: the row of that index, which is in range."""
    return jax.lax.dynamic_slice_in_dim(run, index * width, width)


def apart(function: Callable[[Any], Any], operand: Any, node: chex.Array) -> Any:
    """`function(operand)`, the operand being computed once and laid out as it stands.

    XLA's CPU fusion would compute it again for every element that reads it. Nothing is fused through a branch that
    depends on the `node` which a simulation makes: it is never the root, but the compiler does not know.
    """

    def branch(operand: Any) -> Any:
        def nothing(operand: Any) -> Any:
            return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(function, operand))

        return jax.lax.cond(node > 0, function, nothing, operand)

    def barrier(operand: Any) -> Any:
        return function(jax.lax.optimization_barrier(operand))

    return jax.lax.platform_dependent(operand, cpu=branch, default=barrier)


def laid_out(rows: chex.Array, node: chex.Array) -> chex.Array:
    """`rows` side by side in one run, for `write_rows`.

    Where they are transposed on the way, that is done apart: fused with the writing it takes twice the time.
    """
    return apart(lambda rows: rows.reshape(-1), rows, node)


def ordered_bits(values: chex.Array) -> chex.Array:
    """float32 to int32 in the same order (-0 below +0).

    On CPU, XLA's code for an integer maximum is six times faster than that for a float one.
    """
    return _turn_negative(jax.lax.bitcast_convert_type(values, jnp.int32))


def highest(values: chex.Array) -> chex.Array:
    """float32 [1, R]: the maximum of [K, R] over K."""
    bits = _turn_negative(jnp.max(ordered_bits(values), axis=0, keepdims=True))
    return jax.lax.bitcast_convert_type(bits, jnp.float32)


def _turn_negative(bits: chex.Array) -> chex.Array:
    # A float's bits are in the floats' order, once the lower ones of negative numbers are turned over.
    return jnp.where(bits < 0, bits ^ jnp.int32(0x7FFFFFFF), bits)
