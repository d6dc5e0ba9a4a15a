"""Numbers that people write."""

_MOST_DIGITS = 18  # Python refuses thousands of digits with an error of its own


def whole_number(text: str) -> int | None:
    """The number that `text` is; None unless it is one to 18 digits alone."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None
