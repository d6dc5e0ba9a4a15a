"""Numbers that people write."""

import pytest

from azjax.core.text import seconds_of, whole_number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_digits_are_a_number(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e3", " 1", "²", "٣", "9" * 19, "9" * 5000])
def test_other_texts_are_none(text):
    assert whole_number(text) is None


@pytest.mark.parametrize(("text", "seconds"), [("1s", 1.0), ("0.25s", 0.25), ("010s", 10.0)])
def test_seconds_end_in_s(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "1", "1 s", "-1s", "1.s", ".5s", "1e3s", "1s\n", "٣s", "1" * 19 + "s"])
def test_other_texts_have_no_seconds(text):
    assert seconds_of(text) is None
