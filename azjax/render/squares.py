"""The picture of a board of squares with the pieces of two players, for games that draw themselves."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from azjax.games.game import AnyGame, State
from azjax.games.protocols import BoardGame, player_names, square_name
from azjax.render.drawing import Colors, Policy, Sheet, Square, circle, likely_actions, squares

_COLORS: Colors = {
    "square": ("#ece7da", "#33363d"),
    "first": ("#ffffff", "#f4f1ea"),
    "first-edge": ("#857c69", "#5f594c"),
    "second": ("#33353b", "#15161a"),
    "second-edge": ("#101114", "#868b96"),
}
_ARROWS, _SHADES = 6, 10  # of a policy, at most
_BADGES = 5


def draw_squares(
    game: AnyGame,
    state: State,
    owners: Int[np.ndarray, "rows columns"],
    *,
    policy: Policy | None = None,
    last_squares: Sequence[Square] = (),
) -> str:
    """The position of a game on squares as an SVG document, with coordinates and a line of text below the board.

    Args:
      game: the game.
      state: the position.
      owners: 0 for an empty square, 1 for a piece of player 0 (light), 2 for one of player 1 (dark); the first row is
        the top one.
      policy: probabilities of the actions. A `BoardGame` shows them: an action of one square shades it, and an action
        of several squares is an arrow from its first to its last.
      last_squares: (row, column) of each square of the last move, in order.

    Raises:
      InputError: `policy` does not have the game's number of actions.
    """
    rows, columns = owners.shape
    sheet = Sheet("azjax-squares", rows, columns, _COLORS)
    sheet.tiles()
    sheet.mark(last_squares)
    for row, column in squares(owners > 0):
        color = "first" if owners[row, column] == 1 else "second"
        sheet.piece(row, column, circle(0, 0, 33, fill=color, stroke=f"{color}-edge", stroke_width=4))
    likely = likely_actions(game, policy, _SHADES)
    if isinstance(game, BoardGame):
        clicked = [
            ([divmod(square, columns) for square in game.action_squares(state, action)], probability)
            for action, probability in likely
        ]
        # An action may end where it began: its arrow points at the last square that is another one.
        ends = [([square for square in path if square != path[0]], path[0], share) for path, share in clicked]
        sheet.heat([(start, share) for others, start, share in ends if not others], _BADGES)
        moves = [(start, others[-1], share) for others, start, share in ends if others]
        sheet.arrows(moves[:_ARROWS], _BADGES)
    from_top = _rows_from_top(game)
    sheet.coordinates(rows_from_top=from_top)
    last_move = "-".join(square_name(rows, *square, from_top=from_top) for square in last_squares)
    return sheet.document(game, state, *describe(game, owners), likely=likely, last_move=last_move or None)


def describe(game: AnyGame, owners: Int[np.ndarray, "rows columns"]) -> list[str]:
    """One sentence per player that lists the squares of the player's pieces, which are 1 and 2 in `owners`."""
    rows, from_top = len(owners), _rows_from_top(game)
    occupied = [
        [square_name(rows, *square, from_top=from_top) for square in squares(owners == player)] for player in (1, 2)
    ]
    return [f"{name} on {', '.join(on)}" for name, on in zip(player_names(game), occupied, strict=True) if on]


def _rows_from_top(game: AnyGame) -> bool:
    return isinstance(game, BoardGame) and game.rows_from_top
