"""Connect Four: discs behind a board with holes."""

import numpy as np

from azjax.games.connect_four import ConnectFour
from azjax.games.pictures import draw_board
from azjax.games.placement import StonesState
from azjax.games.protocols import action_to_text
from azjax.render.boards.mnk import winning_lines
from azjax.render.drawing import (
    SQUARE,
    Colors,
    Policy,
    Sheet,
    center,
    circle,
    likely_actions,
    path,
    percentage,
    squares,
)
from azjax.render.squares import describe

_COLORS: Colors = {
    "front": ("#3a4fb0", "#34479f"),
    "front-edge": ("#2c3d92", "#4459b8"),
    "hole": ("#e9ebf5", "#15171c"),
    "hole-edge": ("#2c3d92", "#26367f"),
    "first": ("#e23b40", "#e5484d"),
    "first-edge": ("#a81f2a", "#a8222c"),
    "second": ("#ffcf33", "#ffd23f"),
    "second-edge": ("#cf9400", "#c98f00"),
    "last": ("#5fe0c8", "#5fe0c8"),
    "win": ("#ffffff", "#ffffff"),
    "win-edge": ("#1d2a66", "#1d2a66"),
}
_RADIUS = 40


@draw_board.register
def draw_connect_four(game: ConnectFour, state: StonesState, policy: Policy | None, last_action: int | None) -> str:
    """The picture of a Connect Four position."""
    board, in_a_row = game.owners(state), game.in_a_row
    rows, columns = board.shape
    likely = likely_actions(game, policy, columns)
    top = (rows - np.count_nonzero(board, axis=0)).tolist()  # the row of the topmost disc
    sheet = Sheet("azjax-discs", rows, columns, _COLORS)
    sheet.add("board", sheet.ground(fill="hole"))
    hole = f"a{_RADIUS} {_RADIUS} 0 1 0 {2 * _RADIUS} 0a{_RADIUS} {_RADIUS} 0 1 0-{2 * _RADIUS} 0z"
    holes = "".join(f"M{SQUARE * column + 10} {SQUARE * row + 50}{hole}" for row, column in np.ndindex(board.shape))
    across, down = SQUARE * columns - 20, SQUARE * rows - 20
    corner = "a20 20 0 0 1"
    front = f"M10-10h{across}{corner} 20 20v{down}{corner}-20 20h-{across}{corner}-20-20v-{down}{corner} 20-20z"
    sheet.add("signs", path(front + holes, fill="front", fill_rule="evenodd", stroke="front-edge", stroke_width=4))
    for action, probability in likely:
        at = center(top[action] - 1, action)
        sheet.add("marks", circle(*at, _RADIUS + 1, fill="policy", fill_opacity=0.2 + 0.5 * probability / likely[0][1]))
        sheet.add("signs", percentage(*at, probability, 25, fill="ink"))
    for row, column in squares(board > 0):
        color = "first" if board[row, column] == 1 else "second"
        disc = circle(0, 0, _RADIUS + 2, fill=color)
        # The size of the inner ring tells the players apart without color.
        inner = circle(0, 0, 24 if color == "first" else 12, fill="none", stroke=f"{color}-edge", stroke_width=5)
        sheet.piece(row, column, disc, inner, falls=True)
    if last_action is not None and top[last_action] < rows:
        at = center(top[last_action], last_action)
        sheet.add("signs", circle(*at, _RADIUS + 1, fill="none", stroke="last", stroke_width=7))
    if state.terminated:
        for start, end in winning_lines(board, in_a_row):
            sheet.strike(start, end)
    sheet.coordinates([game.action_number(column) for column in range(columns)], rows=False)
    last_move = None if last_action is None else action_to_text(game, state, last_action)
    return sheet.document(game, state, *describe(game, board), likely=likely, last_move=last_move)
