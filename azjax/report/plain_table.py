"""A table for terminals that prints every text as it is given."""

from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text


class PlainTable(Table):
    """A table of rich in which no text is markup or emoji: the name `uct:100: won` has a `:100:` that rich replaces."""

    def __init__(self, title: str, **options: Any) -> None:
        super().__init__(title=Text(title, "table.title"), title_justify="left", **options)

    def add_column(self, header: RenderableType = "", *arguments: Any, **options: Any) -> None:
        super().add_column(_as_given(header), *arguments, **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*map(_as_given, cells), **options)


def _as_given(text: Any) -> Any:
    return Text(text) if isinstance(text, str) else text
