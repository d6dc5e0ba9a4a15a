"""Rules of Othello in plain Python on a dictionary of discs.

Squares are numbered row-major from the top left; action `size * size` is the pass.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Position:
    """A position.

    Attributes:
      board: the squares, row-major: 0 (empty), 1 (player 0) or 2 (player 1).
      player: the player to move, 0 or 1; after the end of the game the player who would move next.
      terminal: the game is over.
      rewards: rewards of the last step, by player.
    """

    board: tuple[int, ...]
    player: int = 0
    terminal: bool = False
    rewards: tuple[float, float] = (0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class OthelloRules:
    """`size` rows and columns."""

    size: int = 8

    def start(self) -> Position:
        board, middle = [0] * self.size**2, self.size // 2
        for row, column, disc in ((-1, -1, 2), (-1, 0, 1), (0, -1, 1), (0, 0, 2)):
            board[(middle + row) * self.size + middle + column] = disc
        return Position(tuple(board))

    def legal_actions(self, position: Position) -> list[int]:
        """The legal actions, ascending."""
        if position.terminal:
            return []
        return self.moves(position.board, position.player) or [self.size**2]

    def moves(self, board: tuple[int, ...], player: int) -> list[int]:
        """The squares where a player can put a disc."""
        return [square for square in range(self.size**2) if board[square] == 0 and self.turned(board, square, player)]

    def turned(self, board: tuple[int, ...], square: int, player: int) -> list[int]:
        """The squares whose discs a new disc turns over."""
        found = []
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                line, (row, column) = [], divmod(square, self.size)
                while (down or right) and 0 <= row + down < self.size and 0 <= column + right < self.size:
                    row, column = row + down, column + right
                    disc = board[row * self.size + column]
                    if disc == player + 1:
                        found += line
                    if disc != 2 - player:
                        break
                    line.append(row * self.size + column)
        return found

    def step(self, position: Position, action: int) -> Position:
        if action not in self.legal_actions(position):
            return dataclasses.replace(position, rewards=(0.0, 0.0))
        if action == self.size**2:
            return Position(position.board, 1 - position.player)
        board = list(position.board)
        for square in [action, *self.turned(position.board, action, position.player)]:
            board[square] = position.player + 1
        over = not self.moves(tuple(board), 0) and not self.moves(tuple(board), 1)
        result = (board.count(1) > board.count(2)) - (board.count(1) < board.count(2)) if over else 0
        return Position(tuple(board), 1 - position.player, over, (float(result), float(-result)))

    def text(self, position: Position) -> str:
        cells = "".join("_XO"[disc] for disc in position.board)
        rows = [cells[row * self.size : (row + 1) * self.size] for row in range(self.size)]
        return f"{'/'.join(rows)} {'XO'[position.player]}"
