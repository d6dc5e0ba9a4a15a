"""`replace`, which the dataclasses of mctx have."""

from typing import Any, TypeVar

from azjax.core.pytree import replace_fields

_T = TypeVar("_T", bound="Replaceable")


class Replaceable:
    """A dataclass with `replace`."""

    def replace(self: _T, **changes: Any) -> _T:
        """The same with other values for some fields."""
        return replace_fields(self, **changes)
