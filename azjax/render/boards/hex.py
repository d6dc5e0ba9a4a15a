"""Hex: stones on a rhombus of hexagons, whose edges have the colors of the players."""

import math

import numpy as np
from jaxtyping import Int

from azjax.games.hex import Hex
from azjax.games.pictures import draw_board
from azjax.games.placement import StonesState
from azjax.games.protocols import action_to_text
from azjax.render.drawing import (
    Attributes,
    Colors,
    Point,
    Policy,
    Sheet,
    Square,
    circle,
    likely_actions,
    number,
    path,
    percentage,
    squares,
    text,
)
from azjax.render.squares import describe

_COLORS: Colors = {
    "cell": ("#f1ead9", "#34373f"),
    "cell-edge": ("#a89a7c", "#15171b"),
    "first": ("#d93a35", "#ef5350"),
    "first-edge": ("#9c1f1f", "#a62a28"),
    "second": ("#2467c9", "#4f93f0"),
    "second-edge": ("#143f85", "#1f4f9c"),
    "last": ("#ffd23f", "#ffd23f"),
}
_RADIUS = 100 / math.sqrt(3)  # from the center of a hexagon to its corners
_DOWN = (50.0, 1.5 * _RADIUS)
# The corners from the lower left, clockwise.
_LOWER_LEFT, _UPPER_LEFT, _TOP, _UPPER_RIGHT, _LOWER_RIGHT, _BOTTOM = range(6)
_CORNERS = [(math.sin(angle) * _RADIUS, -math.cos(angle) * _RADIUS) for angle in np.radians(range(-120, 240, 60))]
_SHADES, _BADGES = 10, 5


@draw_board.register
def draw_hex(game: Hex, state: StonesState, policy: Policy | None, last_action: int | None) -> str:
    """The picture of a Hex position."""
    owners = game.owners(state)
    size = len(owners)
    sheet = Sheet("azjax-hex", size, size, _COLORS, down=_DOWN)
    _edges(sheet)
    for square in np.ndindex(owners.shape):
        sheet.add("board", _cell(sheet, square, fill="cell", stroke="cell-edge", stroke_width=4))
    # A policy that is not masked may swap on the empty board.
    likely = [each for each in likely_actions(game, policy, _SHADES) if each[0] < owners.size or owners.any()]
    for rank, (action, probability) in enumerate(likely):
        square = _square(owners, action)
        opacity = 0.1 + 0.5 * probability / likely[0][1]
        sheet.add("marks", _cell(sheet, square, fill="policy", fill_opacity=opacity))
        if rank < _BADGES:
            sheet.add("signs", percentage(*sheet.center(*square), probability, 25, fill="ink"))
    won = _winning_chain(owners, int(np.argmax(state.rewards))) if state.terminated else set()
    for square in squares(owners > 0):
        color = "first" if owners[square] == 1 else "second"
        disc = circle(0, 0, 38, fill=color, stroke=f"{color}-edge", stroke_width=4)
        # The size of the inner ring tells the players apart without color.
        inner = circle(0, 0, 22 if color == "first" else 10, fill="none", stroke=f"{color}-edge", stroke_width=5)
        sheet.piece(*square, disc, inner)
        if square in won:
            sheet.add("signs", circle(*sheet.center(*square), 38, fill="none", stroke="win", stroke_width=7))
    last_move = None
    if last_action is not None:
        last_move = action_to_text(game, state, last_action)
        sheet.add(
            "signs",
            circle(*sheet.center(*_square(owners, last_action)), 30, fill="none", stroke="last", stroke_width=6),
        )
    _coordinates(sheet)
    return sheet.document(game, state, *describe(game, owners), likely=likely, last_move=last_move)


def _square(owners: Int[np.ndarray, "size size"], action: int) -> Square:
    """The cell of an action; that of the only stone before a swap, and after it."""
    return divmod(action, len(owners)) if action < owners.size else squares(owners > 0)[0]


def _corners(sheet: Sheet, square: Square, *corners: int) -> list[Point]:
    x, y = sheet.center(*square)
    return [(x + _CORNERS[corner][0], y + _CORNERS[corner][1]) for corner in corners]


def _outline(points: list[Point]) -> str:
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _cell(sheet: Sheet, square: Square, **attributes: str | float | int) -> str:
    return path(_outline(_corners(sheet, square, *range(6))) + "Z", **attributes)


def _edges(sheet: Sheet) -> None:
    """The two edges that each player connects."""
    places, last = range(sheet.rows), sheet.rows - 1
    sides = [
        ("first", [_corners(sheet, (0, at), _UPPER_LEFT, _TOP, _UPPER_RIGHT) for at in places]),
        ("first", [_corners(sheet, (last, at), _LOWER_LEFT, _BOTTOM, _LOWER_RIGHT) for at in places]),
        ("second", [_corners(sheet, (at, 0), _UPPER_LEFT, _LOWER_LEFT, _BOTTOM) for at in places]),
        ("second", [_corners(sheet, (at, last), _TOP, _UPPER_RIGHT, _LOWER_RIGHT) for at in places]),
    ]
    style: Attributes = {"fill": "none", "stroke_width": 24, "stroke_linejoin": "round", "stroke_linecap": "round"}
    for color, corners in sides:
        sheet.add("board", path(_outline([point for each in corners for point in each]), stroke=color, **style))


def _coordinates(sheet: Sheet) -> None:
    """Letters below the columns, and the numbers of the rows, which count from the top."""
    size = 23 * sheet.scale
    for column in range(sheet.columns):
        x, y = sheet.center(sheet.rows - 1, column)
        letter = chr(ord("a") + column)
        sheet.add("board", text(x, y + _RADIUS + 24 * sheet.scale, letter, size, fill="faint"))
    for row in range(sheet.rows):
        x, y = sheet.center(row, 0)
        sheet.add("board", text(x - 50 - 28 * sheet.scale, y, str(row + 1), size, fill="faint"))


def _winning_chain(owners: Int[np.ndarray, "size size"], winner: int) -> set[Square]:
    """The stones of the winner that are connected to both edges."""
    board = owners if winner == 0 else owners.T  # touching is the same in the mirrored board
    size = len(board)
    found: set[Square] = set()
    for start in [(0, column) for column in range(size) if board[0, column] == winner + 1]:
        chain, waiting = {start}, [start]
        while waiting:
            row, column = waiting.pop()
            for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1)):
                beside = row + down, column + right
                on_board = min(beside) >= 0 and max(beside) < size
                if on_board and beside not in chain and board[beside] == winner + 1:
                    chain.add(beside)
                    waiting.append(beside)
        if any(row == size - 1 for row, _ in chain):
            found |= chain
    return found if winner == 0 else {(column, row) for row, column in found}
