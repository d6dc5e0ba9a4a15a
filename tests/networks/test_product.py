"""The product in bfloat16 and its gradients, beside NumPy's of the rounded numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.networks.product import mixed_product


def rounded(numbers):
    return np.asarray(jnp.asarray(numbers, jnp.bfloat16), np.float64)


# Batches that divide into eight parts, into fewer, and not at all.
@pytest.mark.parametrize("batch", [16, 12, 7, 1])
def test_the_product_and_its_gradients_are_those_of_rounded_numbers(batch):
    rng = np.random.default_rng(batch)
    features, kernel, weights = (rng.normal(size=shape) for shape in ((batch, 5), (5, 3), (batch, 3)))
    weights = weights.astype(np.float32)

    @jax.jit
    def judge(features, kernel):
        return jnp.sum(mixed_product(features, kernel) * weights), mixed_product(features, kernel)

    arguments = jnp.float32(features), jnp.float32(kernel)
    (of_features, of_kernel), product = jax.grad(judge, (0, 1), has_aux=True)(*arguments)
    assert product.dtype == of_features.dtype == of_kernel.dtype == jnp.float32
    np.testing.assert_allclose(product, rounded(features) @ rounded(kernel), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(of_features, rounded(weights) @ rounded(kernel).T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(of_kernel, rounded(features).T @ rounded(weights), rtol=1e-5, atol=1e-5)


def test_networks_side_by_side_are_judged_as_one_by_one():
    features, kernels = (jax.random.normal(jax.random.key(seed), (3, 8, 8)) for seed in (0, 1))
    gradient = jax.grad(lambda kernel, features: jnp.sum(jnp.tanh(mixed_product(features, kernel))))
    together = jax.jit(jax.vmap(gradient))(kernels, features)
    alone = jnp.stack([jax.jit(gradient)(*pair) for pair in zip(kernels, features, strict=True)])
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)
