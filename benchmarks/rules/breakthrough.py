"""Rules of Breakthrough in plain Python, by sets of pawns.

Squares are pairs (row, column) as the player to move sees them; action `3 * (row * columns + column) + side` steps to
the row above: 0 left, 1 straight, 2 right.
"""

import dataclasses

Square = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Position:
    """A position.

    Attributes:
      own: the pawns of the player to move; after the end of the game of the player who would move next.
      other: the pawns of the other player.
      player: the player to move, 0 or 1.
      terminal: the game is over.
      rewards: rewards of the last step, by player.
    """

    own: frozenset[Square]
    other: frozenset[Square]
    player: int = 0
    terminal: bool = False
    rewards: tuple[float, float] = (0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class BreakthroughRules:
    """The board; pawns begin on two rows of each side, on a board of fewer than 6 rows on one."""

    columns: int = 8
    rows: int = 8

    def start(self) -> Position:
        deep = 2 if self.rows >= 6 else 1
        above = frozenset((row, column) for row in range(deep) for column in range(self.columns))
        return Position(self._turned(above), above)

    def _turned(self, pawns: frozenset[Square]) -> frozenset[Square]:
        """As the other player sees them."""
        return frozenset((self.rows - 1 - row, column) for row, column in pawns)

    def legal_actions(self, position: Position) -> list[int]:
        """The legal actions, ascending."""
        if position.terminal:
            return []
        found = []
        for row, column in sorted(position.own):
            for side in range(3):
                to = row - 1, column + side - 1
                free = to not in position.own and not (side == 1 and to in position.other)
                if 0 <= to[1] < self.columns and free:
                    found.append(3 * (row * self.columns + column) + side)
        return found

    def step(self, position: Position, action: int) -> Position:
        if action not in self.legal_actions(position):
            return dataclasses.replace(position, rewards=(0.0, 0.0))
        square, side = divmod(action, 3)
        row, column = divmod(square, self.columns)
        to = row - 1, column + side - 1
        own, other = position.own - {(row, column)} | {to}, position.other - {to}
        won = to[0] == 0 or not other
        rewards = ((1.0, -1.0) if position.player == 0 else (-1.0, 1.0)) if won else (0.0, 0.0)
        return Position(self._turned(other), self._turned(own), 1 - position.player, won, rewards)
