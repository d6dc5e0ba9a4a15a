"""Numbers of 32 bits and their digits in any base, the lowest digit first. Axis letter: `D` digits."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Integer, UInt32


def number_of_digits(digits: Integer[Array, "D"], base: int) -> UInt32[Array, ""]:
    """The number with these digits."""
    number: Array = jnp.sum(digits.astype(jnp.uint32) * _powers(base, len(digits)), dtype=jnp.uint32)
    return number


def digits_of_number(number: UInt32[Array, ""], base: int, count: int) -> UInt32[Array, "D"]:
    """The `count` lowest digits of a number."""
    return number // _powers(base, count) % np.uint32(base)


def _powers(base: int, count: int) -> UInt32[np.ndarray, "D"]:
    return np.array([base**place for place in range(count)], np.uint32)
