"""Rules of m,n,k games in plain Python on lists of cells.

Cells are 0 (empty), 1 (player 0) or 2 (player 1), row-major from the top left.
"""

import dataclasses
import functools
import random
from collections.abc import Callable, Sequence


@dataclasses.dataclass(frozen=True)
class Position:
    """A position.

    Attributes:
      board: the cells, row-major.
      player: the player to move, 0 or 1; after the end of the game the player who would move next.
      terminal: the game is over.
      rewards: rewards of the last step, by player.
    """

    board: tuple[int, ...]
    player: int = 0
    terminal: bool = False
    rewards: tuple[float, float] = (0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class MnkRules:
    """m columns, n rows, k or more stones in a row win."""

    columns: int
    rows: int
    in_a_row: int

    @property
    def num_cells(self) -> int:
        return self.columns * self.rows

    def start(self) -> Position:
        return Position((0,) * self.num_cells)

    def legal_actions(self, position: Position) -> list[int]:
        """The legal actions, ascending."""
        if position.terminal:
            return []
        return [cell for cell in range(self.num_cells) if position.board[cell] == 0]

    def slots(self, position: Position) -> list[int]:
        """One slot for each cell, in order; -1 if the cell is not a legal action."""
        legal = set(self.legal_actions(position))
        return [cell if cell in legal else -1 for cell in range(self.num_cells)]

    def step(self, position: Position, action: int) -> Position:
        if position.terminal or not 0 <= action < self.num_cells or position.board[action]:
            return dataclasses.replace(position, rewards=(0.0, 0.0))
        board = list(position.board)
        board[action] = position.player + 1
        winner = self.winner(board)
        rewards = {0: (0.0, 0.0), 1: (1.0, -1.0), 2: (-1.0, 1.0)}[winner]
        return Position(tuple(board), 1 - position.player, winner != 0 or 0 not in board, rewards)

    @functools.cached_property
    def lines(self) -> list[list[int]]:
        """All lines of `in_a_row` cells, each as a list of cells."""
        lines = []
        for row in range(self.rows):
            for column in range(self.columns):
                for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                    line = [(row + i * down, column + i * right) for i in range(self.in_a_row)]
                    if all(r < self.rows and 0 <= c < self.columns for r, c in line):
                        lines.append([r * self.columns + c for r, c in line])
        return lines

    def winner(self, board: Sequence[int]) -> int:
        """1 or 2, the stones of a complete line; 0 if there is none."""
        for line in self.lines:
            owner = board[line[0]]
            if owner and all(board[cell] == owner for cell in line):
                return owner
        return 0

    def text(self, position: Position) -> str:
        return "".join("_XO"[cell] for cell in position.board)

    def planes(self, position: Position) -> list[list[list[float]]]:
        """The observation [row][column][plane]: stones of the player to move, then of the opponent."""
        own, other = position.player + 1, 2 - position.player
        cells = [[float(cell == own), float(cell == other)] for cell in position.board]
        return [cells[row * self.columns : (row + 1) * self.columns] for row in range(self.rows)]

    def random_game(self, generator: random.Random) -> list[tuple[Position, int]]:
        """Pairs (position, action) of every ply of a game, and the final position with action -1."""
        position, plies = self.start(), []
        while not position.terminal:
            action = generator.choice(self.legal_actions(position))
            plies.append((position, action))
            position = self.step(position, action)
        return [*plies, (position, -1)]

    def random_positions(
        self, generator: random.Random, number: int, keep: Callable[["MnkRules", Position], object] | None = None
    ) -> list[tuple[Position, list[int]]]:
        """`number` positions of random games that pass `keep`, and the moves that lead to them."""
        found: list[tuple[Position, list[int]]] = []
        while len(found) < number:
            plies = self.random_game(generator)
            moves = [action for _, action in plies]
            found += [
                (position, moves[:ply])
                for ply, (position, _) in enumerate(plies)
                if keep is None or keep(self, position)
            ]
        return found[:number]
