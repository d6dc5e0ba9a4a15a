"""Reads and in-place writes of large flat arrays, and reductions over slots.

XLA copies an array that is written in two shapes, and so these arrays have one axis. Axis letters: `K` slots, `R`
numbers or rows that are read or written at once.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, Shaped

TINY = float(np.finfo(np.float32).tiny)
"""The smallest normal number of float32."""

_LARGEST_UNROLLED_SUM = 128  # rows: without a loop a sum is one operation, but many rows take long to compile


def read(flat: Shaped[Array, "size"], index: Int32[Array, "..."], width: int | None = None) -> Shaped[Array, "..."]:
    """The numbers of `flat` at `index`, or its rows of `width` numbers. Indices must be in range."""
    if width == 0:
        return jnp.zeros((len(index), 0), flat.dtype)
    rows = jnp.asarray(flat if width is None else flat.reshape(-1, width))  # of trees that were copied to the host
    return rows.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def add(
    flat: Shaped[Array, "size"], index: Int32[Array, "R"], values: Shaped[Array, "R ..."], unique: bool = True
) -> Shaped[Array, "size"]:
    """Adds `values` at `index`, W numbers in a row where they are [R, W].

    Those whose index is beyond the end are dropped. `unique`: no index occurs twice.
    """
    return _update(flat, index, values, unique, jax.lax.add, "add")


def put(
    flat: Shaped[Array, "size"], index: Int32[Array, "R"], values: Shaped[Array, "R ..."], unique: bool = True
) -> Shaped[Array, "size"]:
    """Writes `values` at `index`; see `add`. Equal indices must have equal values."""
    return _update(flat, index, values, unique, lambda old, new: new, "set")


def put_max(
    flat: Shaped[Array, "size"], index: Int32[Array, "R"], values: Shaped[Array, "R"], unique: bool = True
) -> Shaped[Array, "size"]:
    """Writes those of `values` that are larger than the numbers at `index`; see `add`."""
    return _update(flat, index, values, unique, jax.lax.max, "max")


def put_min(
    flat: Shaped[Array, "size"], index: Int32[Array, "R"], values: Shaped[Array, "R"], unique: bool = True
) -> Shaped[Array, "size"]:
    """Writes those of `values` that are smaller than the numbers at `index`; see `add`."""
    return _update(flat, index, values, unique, jax.lax.min, "min")


def _update(
    flat: Shaped[Array, "size"],
    index: Int32[Array, "R"],
    values: Shaped[Array, "R ..."],
    unique: bool,
    combine: Callable[[Array, Array], Array],
    method: str,
) -> Shaped[Array, "size"]:
    rows = values.reshape(len(index), -1).astype(flat.dtype)
    width = rows.shape[1]

    def one_by_one(flat: Array, index: Array, rows: Array) -> Any:
        # A scatter cannot be part of a larger kernel; see `one_kernel`.
        def write(row: Array, flat: Array) -> Any:
            at = jnp.minimum(index[row], flat.size - width)
            old = jax.lax.dynamic_slice_in_dim(flat, at, width)
            new = jnp.where(index[row] < flat.size, combine(old, rows[row]), old)
            return jax.lax.dynamic_update_slice_in_dim(flat, new, at, axis=0)

        return jax.lax.fori_loop(0, len(index), write, flat)

    def scatter(flat: Array, index: Array, rows: Array) -> Any:
        cells = index[:, None] + jnp.arange(width, dtype=jnp.int32)[None]
        write = getattr(flat.at[cells], method)
        return write(rows, mode="drop", unique_indices=unique, wrap_negative_indices=False)

    written: Array = jax.lax.platform_dependent(flat, index, rows, cpu=one_by_one, default=scatter)
    return written


def write_rows(
    flat: Shaped[Array, "size"], rows: Shaped[Array, "..."], index: Int32[Array, ""], count: int = 1
) -> Shaped[Array, "size"]:
    """Writes `count` rows, an array of any shape, from row number `index` on. They must be in range."""
    values = rows.reshape(-1).astype(flat.dtype)
    return jax.lax.dynamic_update_slice_in_dim(flat, values, index * (rows.size // count), axis=0)


def read_row(flat: Shaped[Array, "size"], index: Int32[Array, ""], width: int) -> Shaped[Array, "{width}"]:
    """Row number `index`, of `width` numbers. It must be in range."""
    return jax.lax.dynamic_slice_in_dim(flat, index * width, width)


def max_over_slots(values: Float32[Array, "K R"]) -> Float32[Array, "1 R"]:
    """The maximum over the first axis.

    It is computed on integers in the order of the floats, with -0 below +0: on CPU XLA is six times faster there.
    """
    bits = _flip_negative(jax.lax.bitcast_convert_type(values, jnp.int32))
    largest = _flip_negative(jnp.max(bits, axis=0, keepdims=True))
    return jax.lax.bitcast_convert_type(largest, jnp.float32)


def argmax_over_slots(values: Float32[Array, "K R"]) -> Int32[Array, "R"]:
    """The lowest index of the maximum over the first axis: two plain reductions, part of a larger kernel."""
    slots = jnp.arange(len(values), dtype=jnp.int32)[:, None]
    return jnp.min(jnp.where(values == max_over_slots(values), slots, len(values) - 1), axis=0)


def sum_over_slots(values: Float32[Array, "K R"]) -> Float32[Array, "R"]:
    """The sum over the first axis, in its order: the same for every R, and part of a larger kernel."""
    if len(values) <= _LARGEST_UNROLLED_SUM:
        return functools.reduce(jnp.add, [values[slot] for slot in range(len(values))])

    def add_row(slot: Int32[Array, ""], total: Float32[Array, "R"]) -> Any:
        return total + jax.lax.dynamic_index_in_dim(values, slot, keepdims=False)

    total: Array = jax.lax.fori_loop(1, len(values), add_row, values[0])
    return total


def _flip_negative(bits: Int32[Array, "..."]) -> Int32[Array, "..."]:
    # The bits of floats have the floats' order once the lower 31 bits of negative ones are flipped.
    return jnp.where(bits < 0, bits ^ jnp.int32(0x7FFFFFFF), bits)
