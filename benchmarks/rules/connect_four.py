"""Rules of Connect Four in plain Python. A column is a list of discs, from the bottom."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Position:
    """A position.

    Attributes:
      columns: the discs of each column from the bottom, 1 (player 0) or 2 (player 1).
      player: the player to move, 0 or 1; after the end of the game the player who would move next.
      terminal: the game is over.
      rewards: rewards of the last step, by player.
    """

    columns: tuple[tuple[int, ...], ...]
    player: int = 0
    terminal: bool = False
    rewards: tuple[float, float] = (0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class ConnectFourRules:
    """The board, and the discs in a row that win."""

    columns: int = 7
    rows: int = 6
    in_a_row: int = 4

    def start(self) -> Position:
        return Position(((),) * self.columns)

    def legal_actions(self, position: Position) -> list[int]:
        """The legal actions, ascending."""
        return [] if position.terminal else [c for c, discs in enumerate(position.columns) if len(discs) < self.rows]

    def step(self, position: Position, action: int) -> Position:
        if position.terminal or not 0 <= action < self.columns or len(position.columns[action]) == self.rows:
            return dataclasses.replace(position, rewards=(0.0, 0.0))
        columns, disc = list(position.columns), position.player + 1
        columns[action] = (*columns[action], disc)
        row = len(columns[action]) - 1
        won = any(
            1 + _run(columns, action, row, dc, dr) + _run(columns, action, row, -dc, -dr) >= self.in_a_row
            for dc, dr in ((1, 0), (0, 1), (1, 1), (1, -1))
        )
        rewards = ((1.0, -1.0) if disc == 1 else (-1.0, 1.0)) if won else (0.0, 0.0)
        full = all(len(discs) == self.rows for discs in columns)
        return Position(tuple(columns), 1 - position.player, won or full, rewards)


def _run(columns: list[tuple[int, ...]], column: int, row: int, dc: int, dr: int) -> int:
    """The number of discs of the same color next to a cell in one direction, without the cell."""
    disc, length = columns[column][row], 0
    while True:
        column, row = column + dc, row + dr
        if not (0 <= column < len(columns) and 0 <= row < len(columns[column])) or columns[column][row] != disc:
            return length
        length += 1
