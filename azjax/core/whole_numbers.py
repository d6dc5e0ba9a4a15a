"""Options that are whole numbers of a few values."""

import operator
from collections.abc import Sequence
from typing import Any

from azjax.core.errors import InputError


def whole(value: Any) -> int | None:
    """The whole number that a value is, such as one of NumPy; None for all else, truth values included."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def set_whole(options: Any, kind: str, field: str, allowed: Sequence[int], where: str = "") -> None:
    """Checks a field of a frozen dataclass, and makes it a number of Python, which JSON can hold.

    Args:
      options: the dataclass.
      kind: what the message calls it.
      field: its name.
      allowed: the numbers; a range is told by its ends.
      where: what the message adds to them.

    Raises:
      InputError: no whole number, or one that is not allowed.
    """
    value = getattr(options, field)
    number = whole(value)
    if number is None or number not in allowed:
        *others, last = allowed
        choices = f"{allowed[0]}..{last}" if isinstance(allowed, range) else f"{', '.join(map(str, others))} or {last}"
        raise InputError(f"{kind}: {field} must be {choices}{where}, got {value!r}")
    object.__setattr__(options, field, number)
