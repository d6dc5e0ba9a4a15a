"""Reductions over slots: sums go in the order of the slots, and of equal maxima the first is found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.core.arrays import argmax_over_slots, sum_over_slots


@pytest.mark.parametrize("num_slots", [1, 96, 128, 129, 1176])
def test_slots_are_added_in_their_order_for_every_batch(num_slots):
    values = np.asarray(jax.random.uniform(jax.random.key(0), (num_slots, 7)))
    expected = values[0]
    for row in values[1:]:
        expected = expected + row
    np.testing.assert_array_equal(jax.jit(sum_over_slots)(values), expected)
    np.testing.assert_array_equal(jax.jit(sum_over_slots)(values[:, :1]), expected[:1])


def test_the_first_of_equal_maxima_is_found():
    values = np.float32([[1, -np.inf, -2, -0.5], [3, -np.inf, -1, -0.5], [3, -np.inf, -1, -3]])
    np.testing.assert_array_equal(argmax_over_slots(jnp.asarray(values)), [1, 0, 1, 0])
