"""Santorini: towers seen from above, with their blocks stacked towards the upper left, and workers."""

import numpy as np
from jaxtyping import Float, Int

from azjax.games.pictures import draw_board
from azjax.games.protocols import player_names, square_name
from azjax.games.santorini import Santorini
from azjax.games.santorini_board import DIRECTIONS, DOME
from azjax.games.santorini_rules import MOVES, SantoriniState
from azjax.render.drawing import (
    MIN_PROBABILITY,
    SQUARE,
    Attributes,
    Colors,
    Policy,
    Sheet,
    Square,
    circle,
    likely_actions,
    path,
    rectangle,
    squares,
    text,
    tile,
)

Board = Int[np.ndarray, "size size"]

_COLORS: Colors = {
    "ground": ("#cfdcc0", "#4c5a45"),
    "ground-edge": ("#b3c5a0", "#3c4837"),
    "level-1": ("#cdbfa8", "#8d8270"),
    "level-2": ("#e5dac6", "#b3a78f"),
    "level-3": ("#fbf7ee", "#ded4c0"),
    "level-edge": ("#9d8e74", "#4f4738"),
    "level-ink": ("#5b4f3a", "#221d13"),
    "dome": ("#2f78c8", "#3b86d8"),
    "dome-edge": ("#1c528f", "#194a82"),
    "first": ("#d9480f", "#ec5a1c"),
    "first-edge": ("#ffffff", "#fff4ec"),
    "second": ("#33264f", "#2b1f47"),
    "second-edge": ("#ffffff", "#e9e2fb"),
    "last": ("#e0a100", "#f0b429"),
    "policy": ("#7a2fd0", "#c096ff"),
    "on-policy": ("#ffffff", "#1f1033"),
}
# Left and upper edge, side and corner radius of the blocks of a tower.
_BLOCKS = {1: (6, 88, 10), 2: (10, 64, 9), 3: (14, 45, 8)}
_TOP = {0: 50, 1: 46, 2: 42, 3: 37, DOME: 37}  # the center of the top, along both axes


@draw_board.register
def draw_santorini(game: Santorini, state: SantoriniState, policy: Policy | None, last_action: int | None) -> str:
    """The picture of a Santorini position.

    `last_action` numbers the workers as they stood before the move. If two moves could have led to `state`, none is
    marked.
    """
    board, num_workers = (game.size, game.size), game.workers
    heights, owners = np.array(game.heights(state)).reshape(board), game.owners(state).reshape(board)
    size = len(heights)
    sheet = Sheet("azjax-santorini", size, size, _COLORS)
    for square in np.ndindex(heights.shape):
        _tower(sheet, square, int(heights[square]))
    last_move = None
    if last_action is not None:
        last_move = _mark_last(sheet, heights, owners, num_workers, 1 - int(state.current_player), last_action)
    for row, column in squares(owners > 0):
        _worker(sheet, row, column, int(heights[row, column]), ("first", "second")[owners[row, column] - 1])
    own = squares(owners == int(state.current_player) + 1)
    if policy is not None:
        # A policy that is not masked may move workers that do not stand yet.
        policy = np.array(policy, np.float64)
        policy[MOVES * len(own) : MOVES * num_workers] = 0
    likely = likely_actions(game, policy, 6)
    if policy is not None and likely:
        _show_policy(sheet, policy, own, num_workers)
    sheet.coordinates()
    details = []
    for name, owner in zip(player_names(game), (1, 2), strict=True):
        names = [f"{square_name(size, *square)} at level {heights[square]}" for square in squares(owners == owner)]
        details.append(f"{name} on {', '.join(names) or 'no square'}")
    for level, label in ((1, "Level 1"), (2, "Level 2"), (3, "Level 3"), (DOME, "Domes")):
        names = [square_name(size, *square) for square in squares(heights == level)]
        details += [f"{label}: {', '.join(names)}"] if names else []
    return sheet.document(game, state, *details, likely=likely, last_move=last_move)


def possible_moves(heights: Board, owners: Board, player: int, action: int) -> list[tuple[Square, Square, Square]]:
    """The moves (from, to, build) that `action` of `player` may have been, given the position after it."""
    worker, move, build = action // MOVES, action // 8 % 8, action % 8
    own, moves = squares(owners == player + 1), []
    for target in own:
        start = _add(target, DIRECTIONS[move], -1)
        block = _add(target, DIRECTIONS[build])
        if not (_on_board(heights, start) and _on_board(heights, block)) or owners[start] or owners[block]:
            continue
        before = heights.copy()
        before[block] -= 1
        numbered = sorted([*(square for square in own if square != target), start])
        if (
            before[block] >= 0
            and before[start] < 3
            and before[target] <= before[start] + 1
            and numbered[worker] == start
        ):
            moves.append((start, target, block))
    return moves


def _add(square: Square, direction: Square, times: int = 1) -> Square:
    return square[0] + times * direction[0], square[1] + times * direction[1]


def _on_board(board: Board, square: Square) -> bool:
    return all(0 <= index < len(board) for index in square)


def _tower(sheet: Sheet, square: Square, height: int) -> None:
    row, column = square
    sheet.add("board", tile(row, column, 2, rx=9, fill="ground", stroke="ground-edge", stroke_width=2))
    x, y = SQUARE * column, SQUARE * row
    for level in range(1, min(height, 3) + 1):
        edge, side, radius = _BLOCKS[level]
        style: Attributes = {"rx": radius, "fill": f"level-{level}", "stroke": "level-edge", "stroke_width": 2}
        sheet.add("board", rectangle(x + edge, y + edge, side, side, **style))
    if height == DOME:
        sheet.add("board", circle(x + _TOP[3], y + _TOP[3], 20, fill="dome", stroke="dome-edge", stroke_width=3))
        shine = f"M{x + 26} {y + 34}a12 12 0 0 1 9-9"
        sheet.add("board", path(shine, fill="none", stroke="first-edge", stroke_width=4, stroke_linecap="round"))
    elif height:
        sheet.add("board", text(x + 83, y + 82, str(height), 24, fill="level-ink", font_weight="600"))


def _worker(sheet: Sheet, row: int, column: int, height: int, color: str) -> None:
    body = "M-19 18C-19 3-12 0-8-3A12 12 0 1 1 8-3C12 0 19 3 19 18Q0 25-19 18Z"
    edge: Attributes = {"stroke": f"{color}-edge", "stroke_width": 3.5, "stroke_linejoin": "round"}
    off = _TOP[height] - SQUARE / 2
    sheet.piece(row + off / SQUARE, column + off / SQUARE, path(body, fill=color, **edge))


def _mark_last(sheet: Sheet, heights: Board, owners: Board, num_workers: int, player: int, action: int) -> str | None:
    """Marks the last move and returns its text, if it is the only possible one."""
    size = len(heights)
    outline: Attributes = {"rx": 9, "fill": "none", "stroke": "last"}
    if action >= MOVES * num_workers:
        placed = divmod(action - MOVES * num_workers, size)
        sheet.add("marks", tile(*placed, 4, stroke_width=6, **outline))
        return square_name(size, *placed)
    moves = possible_moves(heights, owners, player, action)
    if len(moves) != 1:
        return None
    start, target, block = moves[0]
    sheet.add("marks", tile(*start, 5, stroke_width=5, stroke_dasharray="13 10", **outline))
    sheet.add("marks", tile(*target, 4, stroke_width=6, **outline))
    sheet.add("marks", _plus(block, "last"))
    start_name, target_name, block_name = (square_name(size, *square) for square in moves[0])
    return f"{start_name}-{target_name}^{block_name}"


def _plus(square: Square, color: str, **attributes: str | float | int) -> str:
    """A plus sign for a new block, in the lower left corner of a square."""
    x, y = SQUARE * square[1] + 17, SQUARE * square[0] + 84
    style: Attributes = {"stroke_width": 6, "stroke_linecap": "round"}
    return path(f"M{x - 8} {y}h16M{x} {y - 8}v16", fill="none", stroke=color, **style, **attributes)


def _show_policy(sheet: Sheet, policy: Float[np.ndarray, "A"], own: list[Square], num_workers: int) -> None:
    """Draws arrows for moves, summed over their builds, and the likely builds of the most likely move."""
    builds, placements = policy[: MOVES * num_workers].reshape(-1, 8), policy[MOVES * num_workers :]
    ranked = np.argsort(-placements, kind="stable").tolist()
    heat = [(divmod(number, sheet.columns), float(placements[number])) for number in ranked]
    sheet.heat([(square, probability) for square, probability in heat if probability >= MIN_PROBABILITY], badges=5)
    moves = builds.sum(axis=1)
    order = [int(move) for move in np.argsort(-moves, kind="stable")[:5] if moves[move] >= MIN_PROBABILITY]
    ends = [(own[move // 8], _add(own[move // 8], DIRECTIONS[move % 8])) for move in order]
    sheet.arrows([(*end, float(moves[move])) for end, move in zip(ends, order, strict=True)], badges=3)
    for build in np.argsort(-builds[order[0]], kind="stable")[:3] if order else ():
        share = builds[order[0], build] / moves[order[0]]
        if share >= 0.1:
            block = _add(ends[0][1], DIRECTIONS[build])
            style: Attributes = {
                "rx": 9,
                "fill": "none",
                "stroke": "policy",
                "stroke_width": 5,
                "stroke_dasharray": "3 9",
            }
            opacity = float(0.3 + 0.7 * share)
            sheet.add("marks", tile(*block, 4, stroke_linecap="round", stroke_opacity=opacity, **style))
            sheet.add("marks", _plus(block, "policy", stroke_opacity=opacity))
