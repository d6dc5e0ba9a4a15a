"""Othello: black and white discs on a green board."""

import numpy as np

from azjax.games.othello import Othello, OthelloState
from azjax.games.pictures import draw_board
from azjax.games.protocols import action_to_text
from azjax.render.drawing import Colors, Policy, Sheet, center, circle, likely_actions, percentage, squares, tile
from azjax.render.squares import describe

_COLORS: Colors = {
    "felt": ("#3f8f5b", "#2f6b45"),
    "felt-edge": ("#2c6b42", "#1d4a2f"),
    "first": ("#1f2023", "#131417"),
    "first-edge": ("#000000", "#5b5f66"),
    "second": ("#fbfaf6", "#efece4"),
    "second-edge": ("#b9b3a4", "#8f897b"),
    "last": ("#ffd23f", "#ffd23f"),
    "label": ("#ffffff", "#ffffff"),
    "policy": ("#b06bff", "#b98cff"),
}
_SHADES, _BADGES = 10, 5


@draw_board.register
def draw_othello(game: Othello, state: OthelloState, policy: Policy | None, last_action: int | None) -> str:
    """The picture of an Othello position."""
    owners = game.owners(state)
    size = len(owners)
    sheet = Sheet("azjax-othello", size, size, _COLORS)
    for row, column in np.ndindex(size, size):
        sheet.add("board", tile(row, column, 1, rx=4, fill="felt", stroke="felt-edge", stroke_width=3))
    for row, column in squares(owners > 0):
        color = "first" if owners[row, column] == 1 else "second"
        sheet.piece(row, column, circle(0, 0, 39, fill=color, stroke=f"{color}-edge", stroke_width=4))
    likely = likely_actions(game, policy, _SHADES)
    on_board = [(divmod(action, size), probability) for action, probability in likely if action < owners.size]
    for rank, (square, probability) in enumerate(on_board):
        opacity = 0.15 + 0.65 * probability / likely[0][1]
        sheet.add("marks", tile(*square, 3, rx=4, fill="policy", fill_opacity=opacity))
        if rank < _BADGES:
            sheet.add("signs", percentage(*center(*square), probability, 24, fill="label"))
    last_move = None
    if last_action is not None:
        last_move = action_to_text(game, state, last_action)
        if last_action < owners.size:
            at = center(*divmod(last_action, size))
            sheet.add("signs", circle(*at, 10, fill="last"))
    sheet.coordinates(rows_from_top=True)
    return sheet.document(game, state, *describe(game, owners), likely=likely, last_move=last_move)
