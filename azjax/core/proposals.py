"""What somebody may have meant who misspelt a word."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The words of a message that propose the closest known word; none if no word is close."""
    close = difflib.get_close_matches(word, known, 1)
    return f" (did you mean {close[0]}?)" if close else ""
