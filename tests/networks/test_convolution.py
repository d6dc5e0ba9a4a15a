import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.networks.convolution import same_convolution


def _library(planes, kernel):
    return jax.lax.conv_general_dilated(planes, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _operands(size, dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(size), 3)
    shapes = (5, 6, 7, 4), (size, size, 4, 3), (5, 6, 7, 3)
    return [jax.random.normal(key, shape).astype(dtype) for key, shape in zip(keys, shapes, strict=True)]


def test_a_kernel_by_hand():
    planes = jnp.arange(9.0).reshape(1, 3, 3, 1)
    # The neighbour on the right, and nothing beyond the edge.
    kernel = jnp.zeros((3, 3, 1, 1)).at[1, 2].set(1)
    assert same_convolution(planes, kernel)[0, :, :, 0].tolist() == [[1, 2, 0], [4, 5, 0], [7, 8, 0]]


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("looped", [False, True], ids=["alone", "in a loop"])
def test_value_and_gradients_are_the_library_s(size, looped):
    planes, kernel, gradient = _operands(size)

    def of(convolve):
        value, back = jax.vjp(convolve, planes, kernel)
        return value, *back(gradient)

    def found():
        if not looped:
            return of(same_convolution)
        return jax.tree.map(lambda leaf: leaf[0], jax.lax.map(lambda _: of(same_convolution), jnp.arange(2)))

    for ours, theirs in zip(jax.jit(found)(), jax.jit(lambda: of(_library))(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_gradients_keep_the_dtype():
    planes, kernel, gradient = _operands(3, jnp.bfloat16)
    value, back = jax.vjp(same_convolution, planes, kernel)
    assert {leaf.dtype for leaf in (value, *back(gradient))} == {jnp.dtype(jnp.bfloat16)}


def test_in_a_loop_on_cpu_all_convolutions_are_plain():
    """The form that XLA's CPU backend is fast with: batch, rows, columns, planes, each of them in its place."""
    planes, kernel, _ = _operands(3)

    def step(carry, _):
        value, back = jax.vjp(same_convolution, *carry)
        return tuple(old - new for old, new in zip(carry, back(value), strict=True)), None

    looped = jax.jit(lambda *carry: jax.lax.scan(step, carry, None, length=3)[0])
    text = looped.lower(planes, kernel).compile().as_text()
    convolutions = [line for line in text.splitlines() if " convolution(" in line]
    assert len(convolutions) == 2  # the gradient of the kernel is matrix products
    assert all("dim_labels=b01f_01io->b01f" in line for line in convolutions)


def test_accelerators_derive_the_gradient_themselves():
    planes, kernel, gradient = _operands(3)

    def gradients(planes, kernel):
        return jax.vjp(same_convolution, planes, kernel)[1](gradient)

    traced = jax.jit(gradients).trace(planes, kernel)
    turned = "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]"
    assert turned in traced.lower(lowering_platforms=("cuda",)).as_text()
    assert turned not in traced.lower(lowering_platforms=("cpu",)).as_text()
