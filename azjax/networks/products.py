"""A matrix product in bfloat16 and a convolution that are fast on CPU in both directions.

Axis letters: `B` batch, `R` rows, `C` columns, `I` features or channels in, `O` out, `S` kernel size.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32

# A matrix product of bfloat16 numbers.
#
# On processors with matrix units for bfloat16 (AMX), XLA's CPU backend uses them for products of bfloat16 numbers with
# a float32 result that contract the last axis of the left side: four times as fast as float32. It does not for a
# bfloat16 result, nor for the derived gradient of the kernel, which contracts the batch. All three products of a
# learning step have that form here.

_PARTS = 8


@jax.custom_vjp
def mixed_product(features: Float[Array, "B I"], kernel: Float[Array, "I O"]) -> Float32[Array, "B O"]:
    """`features @ kernel`, both rounded to bfloat16, accumulated in float32."""
    return _product(_rounded(features), _rounded(kernel), 1, 0)


def _product_forward(features: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    features, kernel = _rounded(features), _rounded(kernel)
    return _product(features, kernel, 1, 0), (features, kernel)


def _product_backward(saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    features, kernel = saved
    gradient = _rounded(gradient)
    kernel_gradient = jax.lax.platform_dependent(features, gradient, cpu=_over_batch_on_cpu, default=_over_batch)
    return _product(gradient, kernel, 1, 1), kernel_gradient


def _over_batch(left: Float[Array, "B I"], right: Float[Array, "B O"]) -> Float32[Array, "I O"]:
    return _product(left, right, 0, 0)


def _over_batch_on_cpu(left: Float[Array, "B I"], right: Float[Array, "B O"]) -> Float32[Array, "I O"]:
    batch, features = left.shape
    parts = math.gcd(batch, _PARTS)
    # XLA does not fold this transposition into the product, since it is one of three axes.
    transposed = jnp.transpose(left.reshape(parts, batch // parts, features), (2, 0, 1)).reshape(features, batch)
    return _product(transposed, right, 1, 0)


def _rounded(numbers: Array) -> Array:
    return numbers.astype(jnp.bfloat16)


def _product(left: Array, right: Array, left_axis: int, right_axis: int) -> Array:
    dimensions = (((left_axis,), (right_axis,)), ((), ()))
    return jax.lax.dot_general(left, right, dimensions, preferred_element_type=jnp.float32)


mixed_product.defvjp(_product_forward, _product_backward)


# A convolution.
#
# XLA's CPU backend computes the gradients of a convolution fast outside of loops only; inside, as in a learning step,
# it takes nested scalar loops, 20 times slower. Here the gradient of the planes is written as a plain convolution, and
# that of the kernel as matrix products, twice as fast as a convolution with a kernel of the board's size.

_LAYOUT = ("NHWC", "HWIO", "NHWC")
_CHUNK = 64  # positions whose patches fit into the cache


@jax.custom_vjp
def same_convolution(planes: Float[Array, "B R C I"], kernel: Float[Array, "S S I O"]) -> Float[Array, "B R C O"]:
    """The convolution with zeros around the board. S is odd."""
    return _convolve(planes, kernel)


def _convolve(planes: Array, kernel: Array) -> Array:
    padding = len(kernel) // 2
    return jax.lax.conv_general_dilated(planes, kernel, (1, 1), [(padding, padding)] * 2, dimension_numbers=_LAYOUT)


def _convolution_forward(planes: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return _convolve(planes, kernel), (planes, kernel)


def _convolution_backward(saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    gradients: tuple[Array, Array] = jax.lax.platform_dependent(
        *saved, gradient, cpu=_gradients_on_cpu, default=_derived_gradients
    )
    return gradients


def _gradients_on_cpu(planes: Array, kernel: Array, gradient: Array) -> tuple[Array, Array]:
    planes_gradient = _convolve(gradient, jnp.swapaxes(kernel[::-1, ::-1], 2, 3))
    batch, rows, columns, _ = planes.shape
    size, padding = len(kernel), len(kernel) // 2

    def add(total: Array, chunk: tuple[Array, Array]) -> tuple[Array, None]:
        planes, gradient = chunk
        around = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
        padded = jnp.pad(jnp.transpose(planes, (3, 0, 1, 2)), around)
        shifts = [(row, column) for row in range(size) for column in range(size)]
        patches = jnp.stack([padded[:, :, row : row + rows, column : column + columns] for row, column in shifts])
        left = patches.reshape(-1, math.prod(planes.shape[:3]))  # [S * S * I, chunk * R * C]
        return total + (left @ gradient.reshape(left.shape[1], -1)).reshape(kernel.shape), None

    count = batch // math.gcd(batch, _CHUNK)
    chunks = (planes.reshape(count, -1, *planes.shape[1:]), gradient.reshape(count, -1, *gradient.shape[1:]))
    return planes_gradient, jax.lax.scan(add, jnp.zeros_like(kernel), chunks)[0]


def _derived_gradients(planes: Array, kernel: Array, gradient: Array) -> tuple[Array, Array]:
    _, vjp = jax.vjp(_convolve, planes, kernel)
    gradients: tuple[Array, Array] = vjp(gradient)
    return gradients


same_convolution.defvjp(_convolution_forward, _convolution_backward)
