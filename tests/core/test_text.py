"""Numbers that people write."""

import pytest

from azjax.core.text import whole_number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_digits_are_a_number(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e3", " 1", "²", "٣", "9" * 19, "9" * 5000])
def test_other_texts_are_none(text):
    assert whole_number(text) is None
