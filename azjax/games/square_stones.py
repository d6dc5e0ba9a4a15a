"""Stones on a square board whose rows are numbered from the top, with one action beside those of the cells.

An action is a cell, row-major from the top left; the last one is the extra action, if there is one. Text: the rows
from the top, `/` between, `X` player 0, `O` player 1, `_` empty, and who is to move, such as `_X_/___/__O X`. Moves are
`b3`: letter of the column from the left, number of the row from the top.
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32

from azjax.core.bitboard import Bits
from azjax.core.errors import InputError
from azjax.games.placement import SYMBOLS, Stones, StonesGame
from azjax.games.protocols import ActionGroup, LaidOutGame, square_name


@dataclasses.dataclass(frozen=True)
class SquareStonesGame(StonesGame[Stones], LaidOutGame):
    """Text, moves and actions of such a board.

    Attributes:
      size: rows and columns.
      rows: `size`.
      columns: `size`.
    """

    size: int
    rows: int = dataclasses.field(init=False, repr=False)
    columns: int = dataclasses.field(init=False, repr=False)

    extra_action: ClassVar[str]
    """What people call the action that is no cell."""
    rows_from_top: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for side in ("rows", "columns"):
            object.__setattr__(self, side, self.size)

    @property
    def has_extra_action(self) -> bool:
        """Whether there is an action that is no cell."""
        return True

    @property
    def num_actions(self) -> int:
        return self.num_cells + self.has_extra_action

    @property
    def max_legal_actions(self) -> int:
        return self.num_actions

    @property
    def action_layout(self) -> tuple[ActionGroup, ...]:
        return (ActionGroup("square", 1), *[ActionGroup("board", 1)] * self.has_extra_action)

    def symmetries(self, state: Stones) -> tuple[Stones, Int32[Array, "S A"]]:
        turned, cells = super().symmetries(state)
        extra = jnp.full((len(cells), int(self.has_extra_action)), self.num_cells, jnp.int32)
        return turned, jnp.concatenate([cells, extra], axis=1)

    # Text.

    def to_text(self, state: Stones) -> str:
        return f"{'/'.join(self._rows_as_text(state))} {self.piece_letters[int(state.current_player)]}"

    def _read(self, text: str) -> tuple[Bits, Bits, int]:
        """The stones of both players, and who is to move."""
        board, _, mover = text.partition(" ")
        rows = board.split("/")
        if [len(row) for row in rows] != [self.size] * self.size or mover not in self.piece_letters:
            form = f"{self.size} rows of {self.size} characters with / between, and X or O to move"
            raise InputError(f"{self.name}: a position is {form}; got {text!r}")
        for index, symbol in enumerate(board):
            if symbol not in SYMBOLS + "/":
                raise InputError(f"{self.name}: character {index + 1} of {text!r} is {symbol!r}; allowed: X, O and _")
        cells = np.array(list("".join(rows)))
        first, second = (self._pack(cells == letter) for letter in self.piece_letters)
        return first, second, self.piece_letters.index(mover)

    def action_to_text(self, state: Stones, action: int) -> str:
        del state
        row, column = divmod(int(action), self.size)
        return self.extra_action if row == self.size else square_name(self.size, row, column, from_top=True)

    def action_squares(self, state: Stones, action: int) -> tuple[int, ...]:
        del state
        return (int(action),) if action < self.num_cells else ()
