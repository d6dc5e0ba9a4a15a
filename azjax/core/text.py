"""Numbers that people write."""

import re

_MOST_DIGITS = 18  # Python refuses thousands of digits with an error of its own


def whole_number(text: str) -> int | None:
    """The number that `text` is; None unless it is one to 18 digits alone."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def seconds_of(text: str) -> float | None:
    """The seconds in a text such as `1s` or `0.5s`; None for other texts."""
    number = re.fullmatch(rf"([0-9]{{1,{_MOST_DIGITS}}}(?:\.[0-9]{{1,{_MOST_DIGITS}}})?)s", text)
    return float(number[1]) if number else None
