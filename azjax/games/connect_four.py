"""Connect Four: an m,n,k game with gravity, by default 7 columns, 6 rows, four in a row.

An action is a column, from the left; the stone falls onto the others. Text: the rows from the top, `/` between, `X`
player 0, `O` player 1, `_` empty. A move is the number of the column, from 1. With at most 9 columns a position may
also be written as the moves from the start, such as `4453` (the notation of the published solvers and test sets).
"""

import dataclasses
import functools
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Int, Int32, UInt32

from azjax.core import bitboard
from azjax.core.bitboard import Bits, both, only_if, shift, single, union, without
from azjax.core.bits import nth_bit, scale_bits
from azjax.core.digits import digits_of_number, number_of_digits
from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.games.mnk import Mnk
from azjax.games.placement import StonesState
from azjax.games.protocols import MAX_POSITION_NUMBERS, NumberedGame
from azjax.games.registry import register


@dataclasses.dataclass(frozen=True)
class ConnectFour(Mnk, NumberedGame[StonesState]):
    """Connect Four; the board and its lines are those of `Mnk`."""

    player_names: ClassVar[tuple[str, str]] = ("Red", "Yellow")
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "red", "yellow")

    @property
    def num_actions(self) -> int:
        return self.columns

    def step(self, state: StonesState, action: Int[ArrayLike, ""]) -> StonesState:
        action = jnp.asarray(action, jnp.int32)
        column = only_if((action >= 0) & (action < self.columns), single(action, self._num_words))
        # Each turn doubles the height.
        height = 1
        while height < self.rows:
            column, height = union(column, shift(column, height * self._stride)), 2 * height
        free = self._free(state)
        lowest = without(free, shift(free, -self._stride))
        return self._place(state, both(column, lowest))

    def legal_action_mask(self, state: StonesState) -> Bool[Array, "A"]:
        return bitboard.unpack([self._free(state)], self._bits[: self.columns])[:, 0]

    def sample_legal_action(self, state: StonesState, bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        open_columns = both(self._free(state), self._top)
        action = nth_bit(open_columns[0], scale_bits(bits, bitboard.count(open_columns)))
        return jnp.where(state.terminated, 0, action)

    @functools.cached_property
    def _top(self) -> Bits:
        """The cells of the top row, which are all in the first word."""
        return bitboard.constant(range(self.columns), self._num_words)

    def symmetries(self, state: StonesState) -> tuple[StonesState, Int32[Array, "S A"]]:
        if self.columns == 1:
            return Game.symmetries(self, state)  # those of a board without gravity turn it upside down
        cells = np.arange(self.num_cells).reshape(self.rows, self.columns)
        images = np.stack([cells, cells[:, ::-1]]).reshape(2, self.num_cells)
        turned = [self._unpack(self._words(stones))[images] for stones in state.stones]
        columns = jnp.arange(self.columns, dtype=jnp.int32)
        return self._images(state, turned), jnp.stack([columns, columns[::-1]])

    def how_to_play(self) -> str:
        return (
            "Red begins. In turn, each side drops a stone into a column, where it falls to the lowest empty place. "
            f"Whoever first has {self.in_a_row} of its stones in a row, straight or diagonally, wins. A full board "
            "without such a row is a draw."
        )

    def examples(self) -> tuple[tuple[str, str], ...]:
        if self.columns < self.in_a_row or self.rows < 2:
            return ()
        stones = {self.rows - 1: "X" * self.in_a_row, self.rows - 2: "O" * (self.in_a_row - 1)}
        rows = [stones.get(row, "").ljust(self.columns, "_") for row in range(self.rows)]
        return (("/".join(rows), f"Red has {self.in_a_row} in a row and wins."),)

    def move_notation(self) -> str:
        return f"A move is the number of its column, 1 to {self.columns} from the left."

    # Numbers: a digit for each column. Its stones from below are the bits of a number, 1 for player 0, below a 1 that
    # marks the height; the digit is one less.

    @property
    def num_position_numbers(self) -> int:
        numbers = self._base**self.columns
        return numbers if numbers <= MAX_POSITION_NUMBERS else 0

    @property
    def _base(self) -> int:
        return (1 << self.rows + 1) - 1

    def position_number(self, state: StonesState) -> UInt32[Array, ""]:
        first, second = (self._unpack(self._words(stones)) for stones in state.stones)
        from_below = (self.rows, self.columns)
        bits = first.reshape(from_below)[::-1].astype(jnp.uint32) << np.arange(self.rows, dtype=np.uint32)[:, None]
        heights = jnp.sum((first | second).reshape(from_below), axis=0, dtype=jnp.uint32)
        digits = jnp.sum(bits, axis=0, dtype=jnp.uint32) + (jnp.uint32(1) << heights) - 1
        return number_of_digits(digits, self._base)

    def from_position_number(self, number: UInt32[Array, ""]) -> StonesState:
        columns = (digits_of_number(number, self._base, self.columns) + 1)[None]
        heights = np.uint32(31) - jax.lax.clz(columns)
        level = np.arange(self.rows, dtype=np.uint32)[::-1, None]
        occupied, bits = level < heights, columns >> level & 1 == 1
        first, second = (self._pack((occupied & owned).ravel()) for owned in (bits, ~bits))
        ahead = bitboard.count(first) - bitboard.count(second)
        possible = (ahead == 0) | (ahead == 1)
        over = self._has_line(first) | self._has_line(second) | jnp.all(occupied)
        return StonesState(
            game=self,
            stones=(self._stored(first), self._stored(second)),
            current_player=ahead & 1,
            terminated=~possible | over,
            rewards=jnp.zeros(2, jnp.float32),
        )

    # Text.

    def to_text(self, state: StonesState) -> str:
        return "/".join(self._rows_as_text(state))

    def from_text(self, text: str) -> StonesState:
        written_as_moves = self.columns <= 9
        if written_as_moves and text.isascii() and text.isdigit():
            return self._after_moves(text)
        rows = text.split("/")
        if [len(row) for row in rows] != [self.columns] * self.rows:
            shape = f"{self.rows} rows of {self.columns} characters with / between"
            shape += ", or a string of columns such as 4453" if written_as_moves else ""
            raise InputError(f"{self.name}: a position has {shape}, got {text!r}")
        for lower, row in enumerate(rows[1:], start=1):
            for column, (above, symbol) in enumerate(zip(rows[lower - 1], row, strict=True)):
                if symbol == "_" and above != "_":
                    raise InputError(
                        f"{self.name}: the {above} in column {column + 1} of row {lower} of {text!r} stands on nothing"
                    )
        return super().from_text("".join(rows))

    def _uncovered(self, text: str) -> Bool[np.ndarray, "cells"]:
        occupied = super()._uncovered(text)
        covered: Bool[np.ndarray, cells] = np.concatenate([np.zeros(self.columns, bool), occupied[: -self.columns]])
        uncovered: Bool[np.ndarray, cells] = occupied & ~covered
        return uncovered

    def _after_moves(self, moves: str) -> StonesState:
        state = self.init(jax.random.key(0))
        for index, move in enumerate(moves, start=1):
            column = int(move) - self.first_cell
            if not (0 <= column < self.columns and self.legal_action_mask(state)[column]):
                over = "the game is over" if state.terminated else f"no stone can go into column {move}"
                raise InputError(f"{self.name}: character {index} of {moves!r}: {over}")
            state = self.step(state, jnp.int32(column))
        return dataclasses.replace(state, rewards=jnp.where(state.terminated, state.rewards, 0.0))

    def action_to_text(self, state: StonesState, action: int) -> str:
        del state
        return self.action_number(int(action))

    def action_squares(self, state: StonesState, action: int) -> tuple[int, ...]:
        return (int(self.squares_of_actions(state)[action, 0]),)

    def squares_of_actions(self, state: StonesState) -> Int32[Array, "columns 1"]:
        free = self._unpack(self._free(state)).reshape(self.rows, self.columns)
        lowest = jnp.sum(free, axis=0, dtype=jnp.int32) - 1
        return (lowest * self.columns + jnp.arange(self.columns, dtype=jnp.int32))[:, None]

    def draw(self, state: StonesState) -> str:
        numbers = [self.action_number(column) for column in range(self.columns)]
        rows = [*(row.replace("_", ".") for row in self._rows_as_text(state)), numbers]
        width = len(numbers[-1])
        return "\n".join(" ".join(cell.rjust(width) for cell in row) for row in rows)


@register("connect_four")
def connect_four(columns: int = 7, rows: int = 6, in_a_row: int = 4) -> ConnectFour:
    """`in_a_row` stones in a row, with gravity.

    Args:
      columns: of the board, 1 to 26.
      rows: of the board, 1 to 26.
      in_a_row: stones in a row that win.
    """
    return ConnectFour(columns, rows, in_a_row, name="connect_four", first_cell=1)
