"""A matrix product of bfloat16 numbers, added up in float32, that is fast on CPU in both directions.

On processors with matrix units for bfloat16 (AMX) XLA's CPU backend reaches them where a product of bfloat16 numbers
has a float32 result and goes over the last axis of its left side: then it is four times as fast as one of float32. With
a bfloat16 result it is not, nor is the derived gradient of the kernel, which goes over the batch. Here all three
products of a learning step have that form.

Axis letters: `B` batch, `I` features in, `O` features out.
"""

import math
from typing import Any

import chex
import jax
import jax.numpy as jnp

_PARTS = 8


@jax.custom_vjp
def mixed_product(features: chex.Array, kernel: chex.Array) -> chex.Array:
    """float32 [B, O]: features [B, I] by kernel [I, O], both float32 and rounded to bfloat16."""
    return _product(_rounded(features), _rounded(kernel), 1, 0)


def _forward(features: chex.Array, kernel: chex.Array) -> tuple[chex.Array, tuple[chex.Array, chex.Array]]:
    features, kernel = _rounded(features), _rounded(kernel)
    return _product(features, kernel, 1, 0), (features, kernel)


def _backward(saved: tuple[chex.Array, chex.Array], gradient: chex.Array) -> tuple[chex.Array, chex.Array]:
    features, kernel = saved
    gradient = _rounded(gradient)
    of_kernel = jax.lax.platform_dependent(features, gradient, cpu=_over_batch_on_cpu, default=_over_batch)
    return _product(gradient, kernel, 1, 1), of_kernel


def _over_batch(left: chex.Array, right: chex.Array) -> chex.Array:
    """float32 [I, O]: [B, I] and [B, O]."""
    return _product(left, right, 0, 0)


def _over_batch_on_cpu(left: chex.Array, right: chex.Array) -> chex.Array:
    batch, features = left.shape
    parts = math.gcd(batch, _PARTS)
    # A transposition that XLA does not fold into the product, since it is one of three axes.
    turned = jnp.transpose(left.reshape(parts, batch // parts, features), (2, 0, 1)).reshape(features, batch)
    return _product(turned, right, 1, 0)


def _rounded(numbers: chex.Array) -> chex.Array:
    return numbers.astype(jnp.bfloat16)


def _product(left: chex.Array, right: chex.Array, left_axis: int, right_axis: int) -> chex.Array:
    dimensions: Any = (((left_axis,), (right_axis,)), ((), ()))
    return jax.lax.dot_general(left, right, dimensions, preferred_element_type=jnp.float32)


mixed_product.defvjp(_forward, _backward)
