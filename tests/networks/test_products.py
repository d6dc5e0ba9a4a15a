"""The convolution beside that of the library, and the product in bfloat16 beside NumPy's of rounded numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.networks.products import mixed_product, same_convolution


def _library(planes, kernel):
    return jax.lax.conv_general_dilated(planes, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _operands(size, dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(size), 3)
    shapes = (5, 6, 7, 4), (size, size, 4, 3), (5, 6, 7, 3)
    return [jax.random.normal(key, shape).astype(dtype) for key, shape in zip(keys, shapes, strict=True)]


def test_a_convolution_by_hand():
    planes = jnp.arange(9.0).reshape(1, 3, 3, 1)
    # The neighbour on the right, and nothing beyond the edge.
    kernel = jnp.zeros((3, 3, 1, 1)).at[1, 2].set(1)
    assert same_convolution(planes, kernel)[0, :, :, 0].tolist() == [[1, 2, 0], [4, 5, 0], [7, 8, 0]]


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("looped", [False, True], ids=["alone", "in a loop"])
def test_a_convolution_and_its_gradients_equal_those_of_the_library(size, looped):
    planes, kernel, gradient = _operands(size)

    def results(convolve):
        value, back = jax.vjp(convolve, planes, kernel)
        return value, *back(gradient)

    def ours():
        if not looped:
            return results(same_convolution)
        return jax.tree.map(lambda leaf: leaf[0], jax.lax.map(lambda _: results(same_convolution), jnp.arange(2)))

    for own, library in zip(jax.jit(ours)(), jax.jit(lambda: results(_library))(), strict=True):
        np.testing.assert_allclose(own, library, rtol=1e-4, atol=1e-4)


def _large(rows, columns, batch=128, channels=64):
    keys = jax.random.split(jax.random.key(rows), 3)
    shapes = (batch, rows, columns, channels), (3, 3, channels, 64), (batch, rows, columns, 64)
    planes, kernel, gradient = (jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True))
    return planes, kernel / 24, gradient


# Boards that tiles of two squares fill, and such that they do not.
@pytest.mark.slow_except("6-7")
@pytest.mark.parametrize(("rows", "columns"), [(6, 6), (6, 7), (7, 7), (9, 4)])
def test_a_large_convolution_and_its_gradients_equal_those_of_the_library(rows, columns):
    planes, kernel, gradient = _large(rows, columns)

    def results(convolve):
        value, back = jax.vjp(convolve, planes, kernel)
        return value, *back(gradient)

    plain = jax.jit(lambda: results(_library))()
    for own, library in zip(jax.jit(lambda: results(same_convolution))(), plain, strict=True):
        np.testing.assert_allclose(own, library, rtol=1e-4, atol=1e-5 * np.abs(library).max())


def test_a_large_convolution_in_bfloat16_and_its_gradients_equal_those_of_rounded_numbers_within_its_precision():
    operands = [leaf.astype(jnp.bfloat16) for leaf in _large(6, 7)]

    def results(convolve, planes, kernel, gradient):
        value, back = jax.vjp(convolve, planes, kernel)
        return value, *back(gradient)

    exact = jax.jit(functools.partial(results, _library))(*(leaf.astype(jnp.float32) for leaf in operands))
    for own, library in zip(jax.jit(functools.partial(results, same_convolution))(*operands), exact, strict=True):
        # Half of the distance of neighbours in bfloat16.
        np.testing.assert_allclose(own.astype(jnp.float32), library, rtol=2**-8, atol=1e-4 * np.abs(library).max())


def _num_convolutions(platform, planes, kernel):
    traced = jax.jit(lambda planes, kernel: same_convolution(planes, kernel)).trace(planes, kernel)
    return traced.lower(lowering_platforms=(platform,)).as_text().count("stablehlo.convolution")


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_a_large_convolution_is_matrix_products_on_cpu_alone(dtype):
    planes, kernel = (leaf.astype(dtype) for leaf in _large(6, 7)[:2])
    assert _num_convolutions("cpu", planes, kernel) == 0
    assert _num_convolutions("cuda", planes, kernel) == 1


@pytest.mark.parametrize(
    "sizes", [(5, 7), (6, 7, 64), (6, 7, 160), (6, 7, 128, 63)], ids=["board", "batch", "chunk", "channels"]
)
def test_a_small_or_odd_convolution_stays_one_on_cpu(sizes):
    planes, kernel, _ = _large(*sizes)
    assert _num_convolutions("cpu", planes, kernel) == 1


def test_gradients_of_a_convolution_keep_its_dtype():
    planes, kernel, gradient = _operands(3, jnp.bfloat16)
    value, back = jax.vjp(same_convolution, planes, kernel)
    assert {leaf.dtype for leaf in (value, *back(gradient))} == {jnp.dtype(jnp.bfloat16)}


def test_in_a_loop_on_cpu_all_convolutions_are_plain():
    """XLA's CPU backend is fast with the layout batch, rows, columns, planes."""
    planes, kernel, _ = _operands(3)

    def step(carry, _):
        value, back = jax.vjp(same_convolution, *carry)
        return tuple(old - new for old, new in zip(carry, back(value), strict=True)), None

    looped = jax.jit(lambda *carry: jax.lax.scan(step, carry, None, length=3)[0])
    text = looped.lower(planes, kernel).compile().as_text()
    convolutions = [line for line in text.splitlines() if " convolution(" in line]
    assert len(convolutions) == 2  # the gradient of the kernel is matrix products
    assert all("dim_labels=b01f_01io->b01f" in line for line in convolutions)


def test_accelerators_use_the_derived_gradient_of_a_convolution():
    planes, kernel, gradient = _operands(3)

    def gradients(planes, kernel):
        return jax.vjp(same_convolution, planes, kernel)[1](gradient)

    traced = jax.jit(gradients).trace(planes, kernel)
    transposed = "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]"
    assert transposed in traced.lower(lowering_platforms=("cuda",)).as_text()
    assert transposed not in traced.lower(lowering_platforms=("cpu",)).as_text()


def rounded(numbers):
    return np.asarray(jnp.asarray(numbers, jnp.bfloat16), np.float64)


# Batches that divide into eight parts, into fewer, and not at all.
@pytest.mark.parametrize("batch", [16, 12, 7, 1])
def test_the_product_and_its_gradients_are_those_of_rounded_numbers(batch):
    rng = np.random.default_rng(batch)
    features, kernel, weights = (rng.normal(size=shape) for shape in ((batch, 5), (5, 3), (batch, 3)))
    weights = weights.astype(np.float32)

    @jax.jit
    def loss(features, kernel):
        return jnp.sum(mixed_product(features, kernel) * weights), mixed_product(features, kernel)

    arguments = jnp.float32(features), jnp.float32(kernel)
    (features_gradient, kernel_gradient), product = jax.grad(loss, (0, 1), has_aux=True)(*arguments)
    assert product.dtype == features_gradient.dtype == kernel_gradient.dtype == jnp.float32
    np.testing.assert_allclose(product, rounded(features) @ rounded(kernel), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(features_gradient, rounded(weights) @ rounded(kernel).T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(kernel_gradient, rounded(features).T @ rounded(weights), rtol=1e-5, atol=1e-5)


def test_gradients_under_vmap_equal_those_one_by_one():
    features, kernels = (jax.random.normal(jax.random.key(seed), (3, 8, 8)) for seed in (0, 1))
    gradient = jax.grad(lambda kernel, features: jnp.sum(jnp.tanh(mixed_product(features, kernel))))
    together = jax.jit(jax.vmap(gradient))(kernels, features)
    alone = jnp.stack([jax.jit(gradient)(*pair) for pair in zip(kernels, features, strict=True)])
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)
