"""Positions on the pages of reports."""

import html
from typing import Any

from azjax.games.game import AnyGame, State
from azjax.games.protocols import TextGame
from azjax.render import has_picture, svg


def board(game: AnyGame, state: State, **marks: Any) -> str:
    """The picture of a position as SVG; for a game without pictures its text, if it has one.

    Args:
      game: the game.
      state: one position.
      **marks: of `azjax.render.svg`.
    """
    if has_picture(game):
        return svg(game, state, **marks)
    return f"<pre>{html.escape(game.draw(state))}</pre>" if isinstance(game, TextGame) else ""
