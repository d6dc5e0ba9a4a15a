"""The games in plain Python, one position at a time, as a notebook would play them: what speeds are compared with.

Rules and moves are those of `azjax.games`; each class has `actions()` of the position, `play(action)` and `over`.
"""

import random
from typing import Any, ClassVar, Protocol, runtime_checkable

Square = tuple[int, int]
_DIRECTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0))
_AROUND = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1) if (row, column) != (0, 0)]


@runtime_checkable
class PlainGame(Protocol):
    """A running game. `over` is known after each move."""

    over: bool

    def actions(self) -> list[Any]: ...

    def play(self, action: Any) -> None: ...


def play_randomly(game: type[PlainGame], plies: int, seed: int) -> int:
    """Plays that many random plies, a new game after each end. Returns how many games ended."""
    rng = random.Random(seed)
    running, ended = game(), 0
    for _ in range(plies):
        running.play(rng.choice(running.actions()))
        if running.over:
            running, ended = game(), ended + 1
    return ended


class TicTacToe:
    LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))

    def __init__(self) -> None:
        self.board, self.mover, self.over = [0] * 9, 1, False

    def actions(self) -> list[int]:
        return [cell for cell in range(9) if not self.board[cell]]

    def play(self, action: int) -> None:
        self.board[action] = self.mover
        won = any(all(self.board[cell] == self.mover for cell in line) for line in self.LINES)
        self.over = won or all(self.board)
        self.mover = 3 - self.mover


class ConnectFour:
    def __init__(self) -> None:
        self.columns: list[list[int]] = [[] for _ in range(7)]
        self.mover, self.over = 1, False

    def actions(self) -> list[int]:
        return [column for column in range(7) if len(self.columns[column]) < 6]

    def play(self, action: int) -> None:
        self.columns[action].append(self.mover)
        row = len(self.columns[action]) - 1
        won = any(
            1 + self._run(action, row, dc, dr) + self._run(action, row, -dc, -dr) >= 4
            for dc, dr in ((1, 0), (0, 1), (1, 1), (1, -1))
        )
        self.over = won or not self.actions()
        self.mover = 3 - self.mover

    def _run(self, column: int, row: int, dc: int, dr: int) -> int:
        """The mover's stones in a row from a cell on, without it."""
        length = 0
        while True:
            column, row = column + dc, row + dr
            if not (0 <= column < 7 and 0 <= row < len(self.columns[column])):
                return length
            if self.columns[column][row] != self.mover:
                return length
            length += 1


class Santorini:
    """5x5 with two workers a side."""

    NEIGHBOURS: ClassVar = {
        (row, column): [(row + dr, column + dc) for dr, dc in _AROUND if 0 <= row + dr < 5 and 0 <= column + dc < 5]
        for row in range(5)
        for column in range(5)
    }

    def __init__(self) -> None:
        self.heights = dict.fromkeys(self.NEIGHBOURS, 0)
        self.workers = [[(1, 1), (1, 3)], [(3, 1), (3, 3)]]
        self.mover, self.over = 0, False
        self._legal = self._find()

    def actions(self) -> list[tuple]:
        """(worker, square moved to, square built on)."""
        return self._legal

    def play(self, action: tuple) -> None:
        worker, target, built = action
        self.workers[self.mover][worker] = target
        self.heights[built] += 1
        self.mover = 1 - self.mover
        self._legal = self._find()
        self.over = self.heights[target] == 3 or not self._legal

    def _find(self) -> list[tuple]:
        heights, found = self.heights, []
        taken = {square for side in self.workers for square in side}
        for worker, source in enumerate(self.workers[self.mover]):
            for target in self.NEIGHBOURS[source]:
                if target in taken or heights[target] > min(3, heights[source] + 1):
                    continue
                for built in self.NEIGHBOURS[target]:
                    if heights[built] < 4 and (built not in taken or built == source):
                        found.append((worker, target, built))
        return found


class Brandub:
    """Without the draw by repetition."""

    START = "...t......t......T...ttTKTtt...T......t......t..."
    CASTLE, CORNERS = (3, 3), ((0, 0), (0, 6), (6, 0), (6, 6))
    MAX_PLIES = 512
    repetition_draws = False

    def __init__(self) -> None:
        self.board = {(i // 7, i % 7): piece for i, piece in enumerate(self.START)}
        self.own, self.other, self.ply, self.over = "t", "TK", 0, False
        self.seen = {self._position()}
        self._legal = self._find()

    def actions(self) -> list[tuple]:
        """(source, target)."""
        return self._legal

    def play(self, action: tuple) -> None:
        source, target = action
        piece, self.board[source] = self.board[source], "."
        self.board[target] = piece
        captured = [square for square in self._beside(target) if self._captured(square, target)]
        for square in captured:
            self.board[square] = "."
        self.own, self.other, self.ply = self.other, self.own, self.ply + 1
        self._legal = self._find()
        pieces = self.board.values()
        escaped = piece == "K" and target in self.CORNERS
        self.over = escaped or "K" not in pieces or "t" not in pieces or not self._legal or self.ply >= self.MAX_PLIES
        if self.repetition_draws:
            position = self._position()
            self.over |= position in self.seen
            self.seen.add(position)

    def _position(self) -> tuple[str, str]:
        return "".join(self.board.values()), self.own

    def _beside(self, square: Square) -> list[Square]:
        row, column = square
        squares = [(row + dr, column + dc) for dr, dc in _DIRECTIONS]
        return [square for square in squares if square in self.board]

    def _captured(self, square: Square, mover: Square) -> bool:
        """An enemy beside the piece that has just moved."""
        piece = self.board[square]
        if piece not in self.other:
            return False
        around = self._beside(square)
        if piece == "K" and (square == self.CASTLE or self.CASTLE in around):
            return all(self.board[near] == "t" for near in around if near != self.CASTLE)
        opposite = (2 * square[0] - mover[0], 2 * square[1] - mover[1])
        beyond = self.board.get(opposite)
        hostile = beyond == "." and (opposite in self.CORNERS or opposite == self.CASTLE)
        return hostile or (beyond is not None and beyond in self.own)

    def _find(self) -> list[tuple]:
        found = []
        for source, piece in self.board.items():
            if piece not in self.own:
                continue
            for dr, dc in _DIRECTIONS:
                row, column = source[0] + dr, source[1] + dc
                while self.board.get((row, column)) == ".":
                    target = row, column
                    if target != self.CASTLE and (piece == "K" or target not in self.CORNERS):
                        found.append((source, target))
                    row, column = row + dr, column + dc
        return found


class BrandubWithRepetition(Brandub):
    """A position that comes the second time is a draw."""

    repetition_draws = True
