import math

import jax
import jax.numpy as jnp
import numpy as np
import optax.contrib
import pytest

from azjax.training.muon import muon

PARAMS = {
    "dense": {"kernel": jnp.zeros((24, 16)), "bias": jnp.zeros(16)},
    "convolution": {"kernel": jnp.zeros((3, 3, 8, 32))},
    "equivariant": {"kernel_0": jnp.zeros((16, 16))},
    "table": {"squares": jnp.zeros((9, 16))},
}


def _gradient(number):
    key = jax.random.key(number)
    return jax.tree.map(lambda leaf: jax.random.normal(jax.random.fold_in(key, leaf.size), leaf.shape), PARAMS)


def _updates(optimizer, gradients):
    """The last update."""

    @jax.jit
    def update(gradient, state):
        return optimizer.update(gradient, state, PARAMS)

    state = optimizer.init(PARAMS)
    for gradient in gradients:
        updates, state = update(gradient, state)
    return updates


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.06)])
def test_updates_are_those_of_optax(precision, tolerance):
    """With every matrix named to Optax, a convolution as one of 72 rows; what is none has Adam's updates to the bit."""
    matrix = optax.contrib.MuonDimensionNumbers(0, 1)
    matrices = {
        "dense": {"kernel": matrix, "bias": None},
        "convolution": {"kernel": optax.contrib.MuonDimensionNumbers((0, 1, 2), 3)},
        "equivariant": {"kernel_0": matrix},
        "table": {"squares": None},
    }
    theirs = optax.contrib.muon(1e-2, consistent_rms=0.2, muon_weight_dimension_numbers=matrices)
    gradients = [_gradient(number) for number in range(3)]
    ours, expected = _updates(muon(1e-2, precision), gradients), _updates(theirs, gradients)
    for layer, name in (("dense", "kernel"), ("convolution", "kernel"), ("equivariant", "kernel_0")):
        scale = np.abs(expected[layer][name]).max()
        np.testing.assert_allclose(ours[layer][name], expected[layer][name], atol=tolerance * scale)
    np.testing.assert_array_equal(ours["dense"]["bias"], expected["dense"]["bias"])
    np.testing.assert_array_equal(ours["table"]["squares"], expected["table"]["squares"])


def test_updates_of_matrices_are_orthogonal_at_the_scale_of_liu_and_others():
    """Newton-Schulz takes singular values to about 1; the scale is 0.2 * sqrt(the longer side)."""
    updates = _updates(muon(1e-2, "float32"), [_gradient(0)])
    for layer, name in (("dense", "kernel"), ("convolution", "kernel"), ("equivariant", "kernel_0")):
        matrix = np.asarray(updates[layer][name]).reshape(-1, updates[layer][name].shape[-1])
        singular = np.linalg.svd(matrix, compute_uv=False) / (1e-2 * 0.2 * math.sqrt(max(matrix.shape)))
        assert singular[0] == pytest.approx(1, abs=0.35)
    # Adam's first step with Nesterov's momentum: 0.9 * 0.1 / (1 - 0.9^2) + 0.1 / (1 - 0.9).
    assert np.abs(updates["dense"]["bias"]).max() == pytest.approx(1.4737e-2, rel=1e-3)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("size", [0, 1.78e-26, 3.16e-26, 1e-9])
def test_gradients_as_small_as_those_of_unused_weights_move_them_as_little(size, precision):
    """The squares of some are no float32 number, so that their norm is 0 or inexact."""
    gradient = jax.tree.map(lambda leaf: leaf * size, _gradient(0))
    updates = _updates(muon(1e-2, precision), [gradient, gradient])
    for name in ("dense", "convolution"):
        update = np.asarray(updates[name]["kernel"])
        assert np.isfinite(update).all()
        assert np.abs(update).max() < 1e-2
