"""Tafl: discs on a wooden board with a castle and four corners; arrows show moves."""

import numpy as np
from jaxtyping import Bool

from azjax.games.pictures import draw_board
from azjax.games.protocols import action_to_text, square_name
from azjax.games.tafl import Tafl
from azjax.games.tafl_rules import TaflState
from azjax.render.drawing import (
    Colors,
    Policy,
    Sheet,
    center,
    circle,
    likely_actions,
    line,
    path,
    squares,
    tile,
)

_COLORS: Colors = {
    "wood": ("#e8d5b2", "#8b7150"),
    "wood-edge": ("#b99a66", "#5c4a30"),
    "castle": ("#d0b283", "#705837"),
    "first": ("#3a2f2b", "#211b19"),
    "first-edge": ("#1c1513", "#0d0a09"),
    "second": ("#fffaf0", "#f6eedd"),
    "second-edge": ("#8b6f47", "#57431f"),
    "crown": ("#b3262e", "#b3262e"),
    "last": ("#2a9d8f", "#1fd1b8"),
    "policy": ("#6a2fc0", "#d9bcff"),
    "on-policy": ("#ffffff", "#3d1482"),
}
_ATTACKER, _DEFENDER, _KING = 1, 2, 3
_NAMES = {_ATTACKER: "Attackers", _DEFENDER: "Defenders", _KING: "King"}
_BADGES = 3


@draw_board.register
def draw_tafl(game: Tafl, state: TaflState, policy: Policy | None, last_action: int | None) -> str:
    """The picture of a tafl position."""
    cells = np.asarray(game.cells(state)).reshape(game.size, game.size)
    size = len(cells)
    likely = likely_actions(game, policy, 6)
    sheet = Sheet("azjax-tafl", size, size, _COLORS)
    _board(sheet, game.grid.closed_squares[0])
    if last_action is not None:
        start, end = (divmod(square, size) for square in game.action_squares(state, last_action))
        sheet.add("marks", tile(*start, 6, rx=10, fill="none", stroke="last", stroke_width=5, stroke_dasharray="14 10"))
        sheet.add("marks", tile(*end, 3, rx=10, fill="last", fill_opacity=0.55))
    for row, column in squares(cells > 0):
        sheet.piece(row, column, *_piece(int(cells[row, column])))
    moves = []
    for action, probability in likely:
        start, end = (divmod(square, size) for square in game.action_squares(state, action))
        moves.append((start, end, probability))
    sheet.arrows(moves, badges=_BADGES)
    sheet.coordinates()
    names = {piece: [square_name(size, *square) for square in squares(cells == piece)] for piece in _NAMES}
    details = [f"{_NAMES[piece]} on {', '.join(on)}" for piece, on in names.items() if on]
    last_move = None if last_action is None else action_to_text(game, state, last_action)
    return sheet.document(game, state, *details, likely=likely, last_move=last_move)


def _board(sheet: Sheet, special: Bool[np.ndarray, "size size"]) -> None:
    size = sheet.rows
    sheet.add("board", sheet.ground(fill="wood", stroke="wood-edge"))
    for number in range(1, size):
        for ends in (((0, 100 * number), (100 * size, 100 * number)), ((100 * number, 0), (100 * number, 100 * size))):
            sheet.add("board", line(*ends, stroke="wood-edge", stroke_width=2, stroke_opacity=0.7))
    for row, column in squares(special):
        x, y = center(row, column)
        sheet.add("board", tile(row, column, 5, rx=8, fill="castle"))
        # A knot of two crossing loops.
        knot = f"M{x:.0f} {y - 34:.0f}l34 34-34 34-34-34zM{x - 24:.0f} {y - 24:.0f}h48v48h-48z"
        sheet.add("board", path(knot, fill="none", stroke="wood-edge", stroke_width=5, stroke_linejoin="round"))


def _piece(piece: int) -> list[str]:
    if piece == _KING:
        crown = "M-22 15V-14L-11-2 0-20 11-2 22-14V15Z"
        disc = circle(0, 0, 39, fill="second", stroke="crown", stroke_width=5)
        return [disc, path(crown, fill="crown", stroke="crown", stroke_width=4, stroke_linejoin="round")]
    color = "first" if piece == _ATTACKER else "second"
    rim = circle(0, 0, 22, fill="none", stroke=f"{color}-edge", stroke_width=3, stroke_opacity=0.5)
    return [circle(0, 0, 35, fill=color, stroke=f"{color}-edge", stroke_width=4), rim]
