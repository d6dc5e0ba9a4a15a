"""m,n,k games: m columns, n rows, k stones in a row win (k or more, in any of the four directions).

`tictactoe` is (3, 3, 3), `connect2` a row of four cells where two neighbors win, `mnk` takes any sizes.
Text: one character a cell, row-major from the top left, `X` player 0, `O` player 1, `_` empty; the player to
move follows from the counts. Moves are `b2`: column letter from the left, row number from the bottom.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

from azjax.core.bitboard import Bits, any_of, both, shift, union, without
from azjax.core.errors import InputError
from azjax.core.whole_numbers import set_whole
from azjax.games.placement import MAX_SIDE, SYMBOLS, PlacementGame, StonesState
from azjax.games.registry import register


@dataclasses.dataclass(frozen=True)
class Mnk(PlacementGame):
    """An m,n,k game.

    Attributes:
      columns: m, 1..26.
      rows: n, 1..26.
      in_a_row: k, 1..max(m, n).
      name: the registered name.
      first_cell: the number of the first cell where moves are plain numbers.
    """

    columns: int
    rows: int
    in_a_row: int
    name: str = "mnk"
    first_cell: int = 0

    def __post_init__(self) -> None:
        for field in ("columns", "rows"):
            set_whole(self, self.name, field, range(1, MAX_SIDE + 1))
        longest = max(self.columns, self.rows)
        set_whole(self, self.name, "in_a_row", range(1, longest + 1), " on this board")

    def _wins(self, own: Bits, stone: Bits, mover: Int32[Array, ""]) -> Bool[Array, ""]:
        del stone, mover
        return self._has_line(own)

    def _has_line(self, board: Bits) -> Bool[Array, ""]:
        """Whether `in_a_row` stones are in a line."""
        found = []
        for step in (1, self._stride, self._stride + 1, self._stride - 1):
            run, length = board, 1
            # Runs of 2 * length stones are two runs of `length`, the second shifted onto the first.
            while length < self.in_a_row:
                extend = min(length, self.in_a_row - length)
                run, length = both(run, shift(run, -step * extend)), length + extend
            found.append(run)
        return any_of(union(*found))

    # Text.

    def how_to_play(self) -> str:
        direction = " next to each other" if 1 in (self.columns, self.rows) else ", straight or diagonally,"
        return (
            f"X begins. In turn, each side marks an empty cell. Whoever first has {self.in_a_row} in a row{direction} "
            "wins. A full board without such a row is a draw."
        )

    def examples(self) -> tuple[tuple[str, str], ...]:
        if self.columns < self.in_a_row or self.num_cells < 2 * self.in_a_row - 1:
            return ()
        cells = list("X" * self.in_a_row + "_" * (self.num_cells - self.in_a_row))
        cells[len(cells) - self.in_a_row + 1 :] = "O" * (self.in_a_row - 1)
        return (("".join(cells), f"X has {self.in_a_row} in a row and wins."),)

    def move_notation(self) -> str:
        return "A move is its cell: the letter of the column and the number of the row from the bottom."

    def to_text(self, state: StonesState) -> str:
        return "".join(self._rows_as_text(state))

    def from_text(self, text: str) -> StonesState:
        if len(text) != self.num_cells:
            raise InputError(f"{self.name}: a position has {self.num_cells} characters, got {len(text)}: {text!r}")
        for index, symbol in enumerate(text):
            if symbol not in SYMBOLS:
                raise InputError(f"{self.name}: character {index + 1} of {text!r} is {symbol!r}; allowed: X, O and _")
        first, second = text.count("X"), text.count("O")
        if first - second not in (0, 1):
            raise InputError(f"{self.name}: {text!r} has {first} X and {second} O; X moves first, so 0 or 1 more X")
        boards = [self._pack(np.array([symbol == player for symbol in text])) for player in "XO"]
        lines = [bool(self._has_line(board)) for board in boards]
        last_mover = 0 if first > second else 1
        if lines[1 - last_mover]:
            winner, mover = "XO"[1 - last_mover], "XO"[last_mover]
            raise InputError(f"{self.name}: {text!r} goes on after {winner} had a line, since {mover} moved last")
        if lines[last_mover] and not self._one_stone_made_all_lines(boards[last_mover], self._uncovered(text)):
            raise InputError(f"{self.name}: {text!r} has lines that no last move completes")
        rewards = np.zeros(2, np.float32)
        if lines[last_mover]:
            rewards[last_mover], rewards[1 - last_mover] = 1, -1
        return StonesState(
            game=self,
            stones=(self._stored(boards[0]), self._stored(boards[1])),
            current_player=jnp.int32(1 - last_mover),
            terminated=jnp.bool_(any(lines) or first + second == self.num_cells),
            rewards=jnp.asarray(rewards),
        )

    def _uncovered(self, text: str) -> Bool[np.ndarray, "cells"]:
        """The cells whose stone may have been played last."""
        return np.array([symbol != "_" for symbol in text])

    def _one_stone_made_all_lines(self, board: Bits, uncovered: Bool[np.ndarray, "cells"]) -> bool:
        cells = np.flatnonzero(np.asarray(self._unpack(board)) & uncovered)
        return any(not bool(self._has_line(without(board, self._stone(jnp.int32(cell))))) for cell in cells)

    def action_number(self, action: int) -> str:
        return str(action + self.first_cell)


@register("mnk")
def mnk(columns: int = 3, rows: int = 3, in_a_row: int = 3) -> Mnk:
    """m columns, n rows, k in a row.

    Args:
      columns: of the board, 1 to 26.
      rows: of the board, 1 to 26.
      in_a_row: stones in a row that win.
    """
    return Mnk(columns, rows, in_a_row)


@register("tictactoe")
def tictactoe() -> Mnk:
    """Three in a row on 3x3; plain numbers at the prompt are 1 to 9."""
    return Mnk(3, 3, 3, name="tictactoe", first_cell=1)


@register("connect2")
def connect2() -> Mnk:
    """Two neighbors in a row of four cells."""
    return Mnk(4, 1, 2, name="connect2")
