"""Chomp: a bar of chocolate, whose poisoned square is marked by a cross."""

import numpy as np

from azjax.games.chomp import Chomp, ChompState
from azjax.games.pictures import draw_board
from azjax.games.protocols import action_to_text, square_name
from azjax.render.drawing import Colors, Policy, Sheet, center, likely_actions, path, percentage, squares, tile

_COLORS: Colors = {
    "taken": ("#efe8dc", "#2b2825"),
    "chocolate": ("#6b4226", "#7a4c2c"),
    "chocolate-edge": ("#4b2c17", "#402413"),
    "light": ("#825432", "#935f3a"),
    "poison": ("#7fb62e", "#98d13a"),
    "first": ("#2b6cb8", "#6aaeff"),
    "first-edge": ("#2b6cb8", "#6aaeff"),
    "second": ("#d2601a", "#ff9d5c"),
    "second-edge": ("#d2601a", "#ff9d5c"),
    "label": ("#ffffff", "#ffffff"),
    "policy": ("#a566ff", "#a566ff"),
}
_SHADES, _BADGES = 10, 5


@draw_board.register
def draw_chomp(game: Chomp, state: ChompState, policy: Policy | None, last_action: int | None) -> str:
    """The picture of a Chomp position."""
    left = np.asarray(state.squares)
    rows, columns = left.shape
    sheet = Sheet("azjax-chomp", rows, columns, _COLORS)
    for row, column in np.ndindex(rows, columns):
        sheet.add("board", tile(row, column, 3, rx=8, fill="taken"))
    for row, column in squares(left):
        sheet.add("board", tile(row, column, 3, rx=8, fill="chocolate", stroke="chocolate-edge", stroke_width=4))
        sheet.add("board", tile(row, column, 20, rx=6, fill="light"))
    if left[-1, 0]:
        x, y = center(rows - 1, 0)
        cross = f"M{x - 18} {y - 18}L{x + 18} {y + 18}M{x + 18} {y - 18}L{x - 18} {y + 18}"
        sheet.add("board", path(cross, stroke="poison", stroke_width=10, stroke_linecap="round"))
    last_move = None
    if last_action is not None:
        last_move = action_to_text(game, state, last_action)
        sheet.mark([divmod(last_action, columns)])
    likely = likely_actions(game, policy, _SHADES)
    for rank, (action, probability) in enumerate(likely):
        row, column = divmod(action, columns)
        opacity = 0.1 + 0.6 * probability / likely[0][1]
        sheet.add("marks", tile(row, column, 3, rx=8, fill="policy", fill_opacity=opacity))
        if rank < _BADGES:
            sheet.add("signs", percentage(*center(row, column), probability, 24, fill="label"))
    sheet.coordinates()
    names = ", ".join(square_name(rows, *square) for square in squares(left))
    return sheet.document(game, state, f"Left: {names or 'nothing'}", likely=likely, last_move=last_move)
