"""Rules of Hex in plain Python, with sets of connected stones.

Cells are numbered row-major from the top left. Player 0 connects top and bottom, player 1 left and right.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Position:
    """A position.

    Attributes:
      stones: the cells of each player's stones.
      player: the player to move, 0 or 1; after the end of the game the player who would move next.
      terminal: the game is over.
      rewards: rewards of the last step, by player.
    """

    stones: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
    player: int = 0
    terminal: bool = False
    rewards: tuple[float, float] = (0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class HexRules:
    """A rhombus of `size` rows; with `swap`, action `size * size` answers the first stone."""

    size: int
    swap: bool = False

    def start(self) -> Position:
        return Position()

    def legal_actions(self, position: Position) -> list[int]:
        """The legal actions, ascending."""
        if position.terminal:
            return []
        first, second = position.stones
        cells = [cell for cell in range(self.size**2) if cell not in first | second]
        may_swap = self.swap and (len(first), len(second), position.player) == (1, 0, 1)
        return cells + [self.size**2] * may_swap

    def step(self, position: Position, action: int) -> Position:
        if action not in self.legal_actions(position):
            return dataclasses.replace(position, rewards=(0.0, 0.0))
        if action == self.size**2:
            row, column = divmod(min(position.stones[0]), self.size)
            return Position((frozenset(), frozenset([column * self.size + row])), 0)
        stones = list(position.stones)
        stones[position.player] |= {action}
        won = self.connects(stones[position.player], position.player)
        rewards = ((1.0, -1.0) if position.player == 0 else (-1.0, 1.0)) if won else (0.0, 0.0)
        return Position((stones[0], stones[1]), 1 - position.player, won, rewards)

    def connects(self, stones: frozenset[int], player: int) -> bool:
        """Whether the stones connect the player's edges."""
        along = [divmod(cell, self.size)[player] for cell in range(self.size**2)]  # the row, or the column
        reached = {cell for cell in stones if along[cell] == 0}
        waiting = list(reached)
        while waiting:
            for cell in self.neighbors(waiting.pop()) & stones - reached:
                reached.add(cell)
                waiting.append(cell)
        return any(along[cell] == self.size - 1 for cell in reached)

    def neighbors(self, cell: int) -> set[int]:
        row, column = divmod(cell, self.size)
        around = [(row, column + 1), (row, column - 1), (row + 1, column), (row - 1, column)]
        around += [(row - 1, column + 1), (row + 1, column - 1)]
        return {r * self.size + c for r, c in around if 0 <= r < self.size and 0 <= c < self.size}

    def text(self, position: Position) -> str:
        first, second = position.stones
        cells = ["X" if cell in first else "O" if cell in second else "_" for cell in range(self.size**2)]
        rows = ["".join(cells[row * self.size : (row + 1) * self.size]) for row in range(self.size)]
        return f"{'/'.join(rows)} {'XO'[position.player]}"
