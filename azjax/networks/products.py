"""A matrix product in bfloat16 and a convolution that are fast on CPU in both directions.

Axis letters: `B` batch, `R` rows, `C` columns, `I` features or channels in, `O` out, `S` kernel size.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
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
# it takes nested scalar loops, 20 times slower. Here the gradient of the planes is written as a convolution, and that
# of the kernel as matrix products.
#
# Large convolutions with a kernel of 3x3 are matrix products on CPU too. In float32 by Winograd's algorithm F(2x2, 3x3)
# (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks", section 4.1): 16 multiplications for four
# squares instead of 36. It adds more, so that small ones are faster without it, and in bfloat16 its sums are inexact.
# There each column of the board has a product: of the three columns around it, which lie side by side in memory, with
# what their squares add to the three rows around them.

_LAYOUT = ("NHWC", "HWIO", "NHWC")
_CHUNK = 64  # positions that fit into the cache
_LARGE_BATCH, _LARGE_BOARD, _MANY_CHANNELS = 2 * _CHUNK, 36, 64
_KERNEL_TRANSFORM = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)


@jax.custom_vjp
def same_convolution(planes: Float[Array, "B R C I"], kernel: Float[Array, "S S I O"]) -> Float[Array, "B R C O"]:
    """The convolution with zeros around the board. S is odd."""
    return _convolve(planes, kernel)


def _convolve(planes: Array, kernel: Array) -> Array:
    if _is_large(planes, kernel):
        by_products = _winograd if planes.dtype == jnp.float32 else _by_columns
        convolved: Array = jax.lax.platform_dependent(planes, kernel, cpu=by_products, default=_plain)
        return convolved
    return _plain(planes, kernel)


def _plain(planes: Array, kernel: Array) -> Array:
    padding = len(kernel) // 2
    return jax.lax.conv_general_dilated(planes, kernel, (1, 1), [(padding, padding)] * 2, dimension_numbers=_LAYOUT)


def _is_large(planes: Array, kernel: Array) -> bool:
    batch, rows, columns, _ = planes.shape
    return (
        isinstance(batch, int)  # and not symbolic, as in an export
        and planes.dtype in (jnp.float32, jnp.bfloat16)
        and kernel.shape[:2] == (3, 3)
        and min(kernel.shape[2:]) >= _MANY_CHANNELS
        and rows * columns >= _LARGE_BOARD
        and batch >= _LARGE_BATCH
        and batch % _CHUNK == 0
    )


def _winograd(planes: Array, kernel: Array) -> Array:
    kernels = jnp.einsum("ai,bj,ijxy->abxy", _KERNEL_TRANSFORM, _KERNEL_TRANSFORM, kernel)
    chunks = planes.reshape(-1, _CHUNK, *planes.shape[1:])
    convolved: Array = jax.lax.map(lambda chunk: _by_tiles(chunk, kernels), chunks)
    return convolved.reshape(*planes.shape[:3], kernel.shape[3])


def _by_tiles(planes: Float32[Array, "B R C I"], kernels: Float32[Array, "4 4 I O"]) -> Float32[Array, "B R C O"]:
    """The convolution of tiles of 4x4 squares, every two squares, each of which gives 2x2 squares of the result."""
    batch, rows, columns, channels = planes.shape
    down, across = -(-rows // 2), -(-columns // 2)
    around = [(0, 0), (1, 2 * down - rows + 1), (1, 2 * across - columns + 1), (0, 0)]
    padded = jnp.pad(planes, around)
    lines = _into_products(*(padded[:, row : row + 2 * down - 1 : 2] for row in range(4)))
    tiles = [
        _into_products(*(line[:, :, column : column + 2 * across - 1 : 2] for column in range(4))) for line in lines
    ]
    products = [
        [tile.reshape(-1, channels) @ kernel for tile, kernel in zip(*pair, strict=True)]
        for pair in zip(tiles, kernels, strict=True)
    ]
    columns_of_lines = [_out_of_products(*column) for column in zip(*products, strict=True)]
    squares = [
        jnp.stack(_out_of_products(*line), axis=1).reshape(batch, down, 2 * across, -1)
        for line in zip(*columns_of_lines, strict=True)
    ]
    return jnp.stack(squares, axis=2).reshape(batch, 2 * down, 2 * across, -1)[:, :rows, :columns]


def _into_products(first: Array, second: Array, third: Array, fourth: Array) -> tuple[Array, ...]:
    return first - third, second + third, third - second, second - fourth


def _out_of_products(first: Array, second: Array, third: Array, fourth: Array) -> tuple[Array, ...]:
    return first + second + third, second - third - fourth


def _by_columns(planes: Array, kernel: Array) -> Array:
    batch, rows, columns, inputs = planes.shape
    size, _, _, outputs = kernel.shape
    lines = planes.reshape(batch * rows, columns * inputs)
    by_column = jnp.transpose(kernel, (1, 2, 0, 3)).reshape(size * inputs, size * outputs)

    def column(number: int) -> Array:
        on_board, in_kernel = _around(number, columns, size, inputs)
        added = _product(lines[:, on_board], by_column[in_kernel], 1, 0)
        below, here, above = jnp.unstack(added.reshape(batch, rows, size, outputs), axis=2)
        down = jnp.pad(below[:, :-1], [(0, 0), (1, 0), (0, 0)])
        up = jnp.pad(above[:, 1:], [(0, 0), (0, 1), (0, 0)])
        return (down + here + up).astype(planes.dtype)

    return jnp.stack([column(number) for number in range(columns)], axis=2)


def _around(column: int, columns: int, size: int, channels: int) -> tuple[slice, slice]:
    """The channels of the columns around one, as far as they are on the board, in a row of it and of the kernel."""
    half = size // 2
    first, last = max(column - half, 0), min(column + half + 1, columns)
    in_kernel = slice((first - column + half) * channels, (last - column + half) * channels)
    return slice(first * channels, last * channels), in_kernel


def _convolution_forward(planes: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return _convolve(planes, kernel), (planes, kernel)


def _convolution_backward(saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    gradients: tuple[Array, Array] = jax.lax.platform_dependent(
        *saved, gradient, cpu=_gradients_on_cpu, default=_derived_gradients
    )
    return gradients


def _gradients_on_cpu(planes: Array, kernel: Array, gradient: Array) -> tuple[Array, Array]:
    planes_gradient = _convolve(gradient, jnp.swapaxes(kernel[::-1, ::-1], 2, 3))
    batch, rows, columns, inputs = planes.shape
    size, _, _, outputs = kernel.shape
    lines = jnp.transpose(planes.reshape(batch * rows, columns * inputs))
    padded = jnp.pad(gradient, [(0, 0), (size // 2, size // 2), (0, 0), (0, 0)])
    by_column = jnp.zeros((size * inputs, size * outputs), jnp.float32)
    for number in range(columns):
        on_board, in_kernel = _around(number, columns, size, inputs)
        # A square of row r of the kernel adds to the square r - size // 2 rows above it.
        added_to = [padded[:, size - 1 - row : size - 1 - row + rows, number] for row in range(size)]
        right = jnp.concatenate(added_to, axis=-1).reshape(batch * rows, size * outputs)
        by_column = by_column.at[in_kernel].add(_product(lines[on_board], right, 1, 0))
    kernel_gradient = jnp.transpose(by_column.reshape(size, inputs, size, outputs), (2, 0, 1, 3))
    return planes_gradient, kernel_gradient.astype(kernel.dtype)


def _derived_gradients(planes: Array, kernel: Array, gradient: Array) -> tuple[Array, Array]:
    _, vjp = jax.vjp(_plain, planes, kernel)
    gradients: tuple[Array, Array] = vjp(gradient)
    return gradients


same_convolution.defvjp(_convolution_forward, _convolution_backward)
