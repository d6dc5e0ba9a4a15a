"""A convolution whose gradient is fast on CPU inside loops too, as a learning step is one.

Of a convolution's two gradients XLA's CPU backend knows the fast form, that of a plain convolution, only outside of
loops; inside it takes nested scalar loops, 20 times slower. Here that of the planes is written as a plain convolution,
and that of the kernel as matrix products, which are twice as fast as a convolution with a kernel as large as the board.

Axis letters: `B` batch, `P` positions of it at a time, `R` rows, `C` columns, `I` planes in, `O` planes out, `S` size
of the kernel.
"""

import math

import chex
import jax
import jax.numpy as jnp

_NAMES = ("NHWC", "HWIO", "NHWC")
_CHUNK = 64  # positions whose patches fit into the cache


@jax.custom_vjp
def same_convolution(planes: chex.Array, kernel: chex.Array) -> chex.Array:
    """[B, R, C, O]: planes [B, R, C, I] under a kernel [S, S, I, O], S odd, with zeros around the board."""
    return _convolve(planes, kernel)


def _convolve(planes: chex.Array, kernel: chex.Array) -> chex.Array:
    around = len(kernel) // 2
    return jax.lax.conv_general_dilated(planes, kernel, (1, 1), [(around, around)] * 2, dimension_numbers=_NAMES)


def _forward(planes: chex.Array, kernel: chex.Array) -> tuple[chex.Array, tuple[chex.Array, chex.Array]]:
    return _convolve(planes, kernel), (planes, kernel)


def _backward(saved: tuple[chex.Array, chex.Array], gradient: chex.Array) -> tuple[chex.Array, chex.Array]:
    return jax.lax.platform_dependent(*saved, gradient, cpu=_for_cpu, default=_as_derived)


def _for_cpu(planes: chex.Array, kernel: chex.Array, gradient: chex.Array) -> tuple[chex.Array, chex.Array]:
    of_planes = _convolve(gradient, jnp.swapaxes(kernel[::-1, ::-1], 2, 3))
    batch, rows, columns, _ = planes.shape
    size, around = len(kernel), len(kernel) // 2

    def add(total: chex.Array, chunk: tuple[chex.Array, chex.Array]) -> tuple[chex.Array, None]:
        of_chunk, gradient = chunk
        padded = jnp.pad(jnp.transpose(of_chunk, (3, 0, 1, 2)), [(0, 0), (0, 0), (around, around), (around, around)])
        shifts = [(row, column) for row in range(size) for column in range(size)]
        patches = jnp.stack([padded[:, :, row : row + rows, column : column + columns] for row, column in shifts])
        left = patches.reshape(-1, math.prod(of_chunk.shape[:3]))  # [S * S * I, P * R * C]
        return total + (left @ gradient.reshape(left.shape[1], -1)).reshape(kernel.shape), None

    count = batch // math.gcd(batch, _CHUNK)
    chunks = (planes.reshape(count, -1, *planes.shape[1:]), gradient.reshape(count, -1, *gradient.shape[1:]))
    return of_planes, jax.lax.scan(add, jnp.zeros_like(kernel), chunks)[0]


def _as_derived(planes: chex.Array, kernel: chex.Array, gradient: chex.Array) -> tuple[chex.Array, chex.Array]:
    return jax.vjp(_convolve, planes, kernel)[1](gradient)


same_convolution.defvjp(_forward, _backward)
