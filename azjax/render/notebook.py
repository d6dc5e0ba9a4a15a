"""What notebooks show of states and searches: pictures in place of arrays."""

import html
from typing import Any

import jax
import numpy as np

from azjax.core import display
from azjax.core.pytree import is_concrete
from azjax.games.game import Game
from azjax.render.picture import fitted, has_picture, svg
from azjax.render.search_table import search_to_html
from azjax.search import SearchResult

_MOST_SHOWN = 6  # positions of a batch


def show(value: Any) -> dict[str, str]:
    """By MIME type: a search as a table with its tree, a state that knows its game as its picture, nothing else."""
    if isinstance(value, SearchResult):
        shown = search_to_html(value)
        return {} if shown is None else {"text/html": shown}
    game = getattr(value, "game", None)
    if not isinstance(game, Game) or not has_picture(game):
        return {}
    shape = _batch_shape(value)
    if shape == ():
        return {"image/svg+xml": svg(game, value)}
    if shape is None or len(shape) != 1:
        return {}
    count = min(shape[0], _MOST_SHOWN)
    pictures = (svg(game, jax.tree.map(lambda leaf: leaf[row], value)) for row in range(count))
    boards = "".join(f'<div style="flex:0 1 15rem">{fitted(picture)}</div>' for picture in pictures)
    caption = f"{count} of {shape[0]:,} positions of {html.escape(game.name)}"
    return {"text/html": f'<div>{caption}</div><div style="display:flex;flex-wrap:wrap;gap:.6rem">{boards}</div>'}


def _batch_shape(state: Any) -> tuple[int, ...] | None:
    """The leading axes of every leaf; None of what is no position: a traced state, shapes alone, a mean."""
    terminated: Any = getattr(state, "terminated", None)
    is_position = is_concrete(state) and terminated is not None and np.issubdtype(terminated.dtype, bool)
    return terminated.shape if is_position else None


display.set_renderer(show)
