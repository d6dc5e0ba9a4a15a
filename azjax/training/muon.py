"""The optimizer Muon, whose products are as fast as those of the network.

It makes the update of each matrix nearly orthogonal, by Newton-Schulz iterations (Jordan et al. 2024, "Muon: An
optimizer for hidden layers in neural networks"). Each takes three products of the size of the weights, and all of them
together can take as long as the gradient. Bfloat16 is exact enough for them, as Jordan et al. found.
"""

from typing import Any

import jax
import jax.numpy as jnp
import optax
import optax.contrib
from jaxtyping import Array, Float32, PyTree

from azjax.networks.layers import Dtype, compute_dtype

_COEFFICIENTS = 3.4445, -4.7750, 2.0315  # of Jordan et al.
_ITERATIONS = 5
_EPSILON = 1e-8  # far above the norms whose squares underflow, so that nearly no gradient remains nearly none


def muon(learning_rate: optax.ScalarOrSchedule, precision: str) -> optax.GradientTransformation:
    """Muon with a root of the mean square of 0.2, as Adam's updates have, so that both take the same learning rates.

    See Liu et al. 2025, "Muon is Scalable for LLM Training", section 2.2. What is no matrix, or not named `kernel...`
    as Flax names the weights of its layers, is left to Adam with Nesterov's momentum.

    Args:
      learning_rate: or a schedule of it.
      precision: of the products, `float32` or `bfloat16`. The momentum is float32.
    """
    # Without iterations of its own, which know no products of bfloat16 numbers with a float32 result.
    scaled_momentum = optax.contrib.muon(
        learning_rate, ns_steps=0, consistent_rms=0.2, muon_weight_dimension_numbers=_matrices
    )
    dtype = compute_dtype(precision)

    def update(
        gradient: optax.Updates, state: optax.OptState, params: optax.Params | None = None
    ) -> tuple[optax.Updates, optax.OptState]:
        updates, state = scaled_momentum.update(gradient, state, params)
        return _orthogonalized(updates, dtype), state

    return optax.GradientTransformation(scaled_momentum.init, update)


def _matrices(params: PyTree) -> PyTree:
    """How each kernel of two axes or more is a matrix: its last axis is that of the outputs. None for the others."""

    def matrix(path: tuple[Any, ...], leaf: Array) -> optax.contrib.MuonDimensionNumbers | None:
        last, is_kernel = leaf.ndim - 1, jax.tree_util.keystr(path[-1:], simple=True).startswith("kernel")
        return optax.contrib.MuonDimensionNumbers(tuple(range(last)), last) if is_kernel and last > 0 else None

    return jax.tree_util.tree_map_with_path(matrix, params)


def _orthogonalized(updates: PyTree, dtype: Dtype) -> PyTree:
    """The updates, those of matrices nearly orthogonal, times the Frobenius norm that they had."""

    def orthogonalized(update: Array, is_matrix: optax.contrib.MuonDimensionNumbers | None) -> Array:
        if is_matrix is None:
            return update
        matrix = update.reshape(-1, update.shape[-1])
        norm: Array = jnp.linalg.norm(matrix)
        direction = matrix / (norm + _EPSILON)
        is_tall = len(matrix) > matrix.shape[1]
        orthogonal = _newton_schulz(direction.T if is_tall else direction, dtype)
        return norm * (orthogonal.T if is_tall else orthogonal).reshape(update.shape)

    return jax.tree.map(orthogonalized, updates, _matrices(updates))


def _newton_schulz(matrix: Float32[Array, "I O"], dtype: Dtype) -> Float32[Array, "I O"]:
    """Takes the singular values to about 1. The matrix has a norm of at most 1, and no more rows than columns."""

    def product(left: Array, right: Array, right_axis: int) -> Array:
        left, right, axes = left.astype(dtype), right.astype(dtype), (((1,), (right_axis,)), ((), ()))
        multiplied: Array = jax.lax.dot_general(left, right, axes, preferred_element_type=jnp.float32)
        return multiplied

    first, third, fifth = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        square = product(matrix, matrix, 1)
        matrix = first * matrix + product(third * square + fifth * product(square, square, 1), matrix, 0)
    return matrix
