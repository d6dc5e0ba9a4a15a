"""Durations in words."""

import pytest

from azjax.core.progress import duration


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.04, "0 s"),
        (0.4, "0.4 s"),
        (9.96, "10 s"),
        (99.4, "99 s"),
        (100, "2 min"),
        (1500, "25 min"),
        (5990, "100 min"),
        (6000, "1.7 h"),
    ],
)
def test_durations_have_one_digit_to_three(seconds, told):
    assert duration(seconds) == told
