"""Digits of numbers, against Python's integers."""

import jax.numpy as jnp
import pytest

from azjax.core.digits import digits_of_number, number_of_digits


def test_the_lowest_digit_comes_first():
    assert int(number_of_digits(jnp.array([1, 2, 0, 1]), 3)) == 1 + 2 * 3 + 27
    assert digits_of_number(jnp.uint32(34), 3, 4).tolist() == [1, 2, 0, 1]


@pytest.mark.parametrize(("base", "count"), [(2, 32), (3, 20), (5, 13), (63, 5), (255, 4)])
def test_the_largest_number_of_32_bits_goes_there_and_back(base, count):
    largest = base**count - 1
    assert largest < 2**32
    digits = digits_of_number(jnp.uint32(largest), base, count)
    assert digits.tolist() == [base - 1] * count
    assert int(number_of_digits(digits, base)) == largest
