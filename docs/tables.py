"""What the tables of the docs share: the committed results, and Markdown.

`make tables` writes them into the pages, where a comment names the function of each (https://cog.readthedocs.io).
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "experiments" / "results"


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a committed result."""
    return result_of(name)["rows"]


def result_of(name: str) -> Any:
    """A committed result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; columns of numbers are aligned to the right."""
    rows = list(rows)
    numeric = re.compile(r"[\d,.]*%?$")
    right = [all(numeric.match(row[column].partition(" ")[0]) for row in rows) for column in range(len(heads))]
    lines = [heads, ["---:" if to_the_right else "---" for to_the_right in right], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def board_title(name: str) -> str:
    """The board of a row of results, for people."""
    board = name.replace("_", " ").replace("connect four", "Connect Four").replace("swap", "with the swap")
    return board[0].upper() + board[1:]
