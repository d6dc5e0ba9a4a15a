"""JSON of files and messages that anybody may have written."""

import json
from typing import Any

_LARGEST = 2**63


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text, in which NaN and Infinity are numbers too.

    Raises:
      ValueError: the text is no JSON, not UTF-8, nested too deeply, or has a whole number of 2^63 or more.
    """
    try:
        text = text.decode() if isinstance(text, bytes) else text
        return json.loads(text, parse_int=_whole_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _whole_number(digits: str) -> int:
    number = int(digits) if len(digits) < 25 else _LARGEST
    if abs(number) >= _LARGEST:
        raise ValueError(f"the number {digits[:25]}... is too large")
    return number
