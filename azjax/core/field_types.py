"""Whether values have the types that the fields of a dataclass are declared with."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any

from azjax.core.errors import InputError

# What a field of each type may be, and how people call that.
_ALLOWED: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    float: ((int, float), "a number"),
    int: ((int,), "a whole number"),
    str: ((str,), "a text"),
}


def check_field_types(kind: type, values: Mapping[str, Any]) -> None:
    """Refuses values of the fields of `kind`, a dataclass, that are of other types, as those of a file may be.

    Truth values, numbers and texts are checked; fields of other types, and names that `kind` does not have, are not.

    Raises:
      InputError: a number, a text or a truth value is needed and something else was got.
    """
    for field in dataclasses.fields(kind):
        declared, *others = field.type.__args__ if isinstance(field.type, types.UnionType) else (field.type,)
        if field.name not in values or declared not in _ALLOWED:
            continue
        value, (allowed, name) = values[field.name], _ALLOWED[declared]
        if value is None and types.NoneType in others:
            continue
        if not isinstance(value, allowed) or (isinstance(value, bool) and declared is not bool):
            raise InputError(f"{field.name} must be {name}, got {value!r}")
