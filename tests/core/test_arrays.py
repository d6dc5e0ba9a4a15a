"""Sums over slots go in the order of the slots, whether they are unrolled or loop."""

import jax
import numpy as np
import pytest

from azjax.core.arrays import sum_over_slots


@pytest.mark.parametrize("num_slots", [1, 96, 128, 129, 1176])
def test_slots_are_added_in_their_order_for_every_batch(num_slots):
    values = np.asarray(jax.random.uniform(jax.random.key(0), (num_slots, 7)))
    expected = values[0]
    for row in values[1:]:
        expected = expected + row
    np.testing.assert_array_equal(jax.jit(sum_over_slots)(values), expected)
    np.testing.assert_array_equal(jax.jit(sum_over_slots)(values[:, :1]), expected[:1])
