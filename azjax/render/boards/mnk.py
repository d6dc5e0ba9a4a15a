"""m,n,k games: crosses and rings on small boards, stones on crossing lines on large ones."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

from azjax.games.mnk import Mnk
from azjax.games.pictures import draw_board
from azjax.games.placement import StonesState
from azjax.games.protocols import action_to_text
from azjax.render.drawing import (
    Attributes,
    Colors,
    Likely,
    Policy,
    Sheet,
    Square,
    center,
    circle,
    likely_actions,
    line,
    path,
    squares,
    text,
)
from azjax.render.squares import describe

_CROSSES: Colors = {
    "square": ("#f1efe9", "#2a2d34"),
    "first": ("#2b6cb8", "#6aaeff"),
    "first-edge": ("#2b6cb8", "#6aaeff"),
    "second": ("#d2601a", "#ff9d5c"),
    "second-edge": ("#d2601a", "#ff9d5c"),
}
_STONES: Colors = {
    "wood": ("#ecc88b", "#9c7846"),
    "wood-edge": ("#cfa765", "#6f5430"),
    "grid": ("#7d5f33", "#4d3a1e"),
    "first": ("#26272b", "#1b1c20"),
    "first-edge": ("#101114", "#0b0c0e"),
    "second": ("#ffffff", "#f4f1ea"),
    "second-edge": ("#9a8a70", "#6b5637"),
    "last": ("#e5484d", "#e5484d"),
    "policy": ("#6a2fc0", "#8a4dff"),
    "on-policy": ("#ffffff", "#ffffff"),
}
_MAX_CROSSES_SIDE = 9  # larger boards have stones
_BADGES = 5


@draw_board.register
def draw_mnk(game: Mnk, state: StonesState, policy: Policy | None, last_action: int | None) -> str:
    """The picture of a position of an m,n,k game."""
    board, in_a_row = game.owners(state), game.in_a_row
    rows, columns = board.shape
    likely = likely_actions(game, policy, 10)
    stones = in_a_row > 4 or max(rows, columns) > _MAX_CROSSES_SIDE
    sheet = Sheet("azjax-stones" if stones else "azjax-crosses", rows, columns, _STONES if stones else _CROSSES)
    (_stones if stones else _crosses)(sheet, board, likely, last_action)
    sheet.coordinates()
    if state.terminated:
        for start, end in winning_lines(board, in_a_row):
            sheet.strike(start, end)
    last_move = None if last_action is None else action_to_text(game, state, last_action)
    return sheet.document(game, state, *describe(game, board), likely=likely, last_move=last_move)


def winning_lines(board: Int[np.ndarray, "rows columns"], in_a_row: int) -> Iterator[tuple[Square, Square]]:
    """The first and last square of each maximal run of at least `in_a_row` equal stones."""
    owner = {square: board[square] for square in squares(board > 0)}
    for row, column in owner:
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            stone, length = owner[row, column], 1
            if owner.get((row - down, column - right)) == stone:
                continue
            while owner.get((row + length * down, column + length * right)) == stone:
                length += 1
            if length >= in_a_row:
                yield (row, column), (row + (length - 1) * down, column + (length - 1) * right)


def _crosses(sheet: Sheet, board: Int[np.ndarray, "rows columns"], likely: Likely, last_action: int | None) -> None:
    columns = sheet.columns
    sheet.tiles()
    sheet.mark([] if last_action is None else [divmod(last_action, columns)])
    sheet.heat([(divmod(action, columns), probability) for action, probability in likely], _BADGES)
    style: Attributes = {"fill": "none", "stroke_width": 13, "stroke_linecap": "round"}
    cross = path("M-25-25 25 25M25-25-25 25", stroke="first", **style)
    ring = circle(0, 0, 27, stroke="second", **style)
    for row, column in squares(board > 0):
        sheet.piece(row, column, cross if board[row, column] == 1 else ring)


def _stones(sheet: Sheet, board: Int[np.ndarray, "rows columns"], likely: Likely, last_action: int | None) -> None:
    rows, columns = board.shape
    sheet.add("board", sheet.ground(fill="wood", stroke="wood-edge"))
    for row in range(rows):
        sheet.add("board", line(center(row, 0), center(row, columns - 1), stroke="grid", stroke_width=2.5))
    for column in range(columns):
        sheet.add("board", line(center(0, column), center(rows - 1, column), stroke="grid", stroke_width=2.5))
    if rows == columns and rows % 2 and rows >= 13:
        for row in (3, rows // 2, rows - 4):
            sheet.add("board", *(circle(*center(row, column), 9, fill="grid") for column in (3, rows // 2, rows - 4)))
    for rank, (action, probability) in enumerate(likely):
        at = center(*divmod(action, columns))
        opacity = 0.55 + 0.45 * probability / likely[0][1]
        sheet.add("marks", circle(*at, 46, fill="policy", fill_opacity=opacity))
        if rank < _BADGES:
            sheet.add("signs", text(*at, f"{100 * probability:.0f}", 44, fill="on-policy", font_weight="600"))
    for row, column in squares(board > 0):
        color = "first" if board[row, column] == 1 else "second"
        sheet.piece(row, column, circle(0, 0, 44, fill=color, stroke=f"{color}-edge", stroke_width=4))
    if last_action is not None:
        sheet.add("signs", circle(*center(*divmod(last_action, columns)), 15, fill="last"))
