"""A convolution whose gradient is fast on CPU inside loops too, as a learning step is one.

Of a convolution's two gradients XLA's CPU backend knows the fast form, that of a plain convolution, only outside of
loops; inside it takes nested scalar loops, 20 times slower. Here both are written as plain convolutions.

Axis letters: `B` batch, `R` rows, `C` columns, `I` planes in, `O` planes out, `S` size of the kernel.
"""

import chex
import jax
import jax.numpy as jnp

_NAMES = ("NHWC", "HWIO", "NHWC")


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
    return jax.lax.platform_dependent(*saved, gradient, cpu=_as_convolutions, default=_as_derived)


def _as_convolutions(planes: chex.Array, kernel: chex.Array, gradient: chex.Array) -> tuple[chex.Array, chex.Array]:
    of_planes = _convolve(gradient, jnp.swapaxes(kernel[::-1, ::-1], 2, 3))
    around = len(kernel) // 2
    # I as the batch, B as the planes, and the gradient [R, C, B, O] as a kernel as large as the board.
    of_kernel = jax.lax.conv_general_dilated(
        jnp.transpose(planes, (3, 1, 2, 0)),
        jnp.transpose(gradient, (1, 2, 0, 3)),
        (1, 1),
        [(around, around)] * 2,
        dimension_numbers=_NAMES,
    )
    return of_planes, jnp.transpose(of_kernel, (1, 2, 0, 3))


def _as_derived(planes: chex.Array, kernel: chex.Array, gradient: chex.Array) -> tuple[chex.Array, chex.Array]:
    return jax.vjp(_convolve, planes, kernel)[1](gradient)


same_convolution.defvjp(_forward, _backward)
