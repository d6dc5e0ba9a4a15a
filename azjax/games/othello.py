"""Othello: a disc turns over the other player's discs between it and another disc of its own; more discs win.

A move must turn over a disc. A player without such a move passes, and may not pass otherwise; when neither player can
move the game is over (World Othello Federation, "Official rules for the game Othello"). Black, player 0, begins.

An action is a square, row-major from the top left; the last one is the pass, as in OpenSpiel. Text: the rows from the
top, `/` between, `X` Black, `O` White, `_` empty, and who is to move, such as `____/_OX_/_XO_/____ X`. Moves are `c4`:
letter of the column from the left, number of the row from the top, and `pass`.
"""

import dataclasses
import string
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Int, Int32, PRNGKeyArray, UInt32

from azjax.core import bitboard
from azjax.core.bitboard import Bits, any_of, both, choose, only_if, shift, slide, union, without
from azjax.core.bits import scale_bits
from azjax.core.errors import InputError
from azjax.core.xla import materialize
from azjax.games.placement import SYMBOLS, StonesGame, StonesState
from azjax.games.protocols import ActionGroup, LaidOutGame
from azjax.games.registry import register

SIZES = (4, 6, 8)
_PASS = "pass"


@dataclasses.dataclass(frozen=True)
class Othello(StonesGame, LaidOutGame):
    """Othello.

    Attributes:
      size: rows and columns: 4, 6 or 8.
      rows: `size`.
      columns: `size`.
    """

    size: int = 8
    rows: int = dataclasses.field(init=False, repr=False)
    columns: int = dataclasses.field(init=False, repr=False)

    name = "othello"
    player_names: ClassVar[tuple[str, str]] = ("Black", "White")
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "black", "white")
    rows_from_top: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise InputError(f"othello: size must be {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]}, got {self.size}")
        for side in ("rows", "columns"):
            object.__setattr__(self, side, self.size)

    @property
    def num_actions(self) -> int:
        return self.num_cells + 1

    @property
    def max_plies(self) -> int:
        # Four squares have discs from the start, and a move follows each pass.
        return 2 * (self.num_cells - 4)

    @property
    def max_legal_actions(self) -> int:
        return self.num_actions

    @property
    def action_layout(self) -> tuple[ActionGroup, ...]:
        return (ActionGroup("square", 1), ActionGroup("board", 1))

    def init(self, key: PRNGKeyArray) -> StonesState:
        low, high = self.size // 2 - 1, self.size // 2
        stones = (
            self._stored(self._of_squares((low, high), (high, low))),
            self._stored(self._of_squares((low, low), (high, high))),
        )
        state: StonesState = dataclasses.replace(super().init(key), stones=stones)
        return state

    def _of_squares(self, *squares: tuple[int, int]) -> Bits:
        bits = (row * self._stride + column for row, column in squares)
        return tuple(jnp.asarray(word) for word in bitboard.constant(bits, self._num_words))

    def step(self, state: StonesState, action: Int[ArrayLike, ""]) -> StonesState:
        action = jnp.asarray(action, jnp.int32)
        own, other = self._own_and_other(state)
        mover = state.current_player
        stone = both(self._stone(action), without(self._board, union(own, other)))
        turned = only_if(~state.terminated, self._turned_over(stone, own, other))
        moves = any_of(turned)
        passes = (action == self.num_cells) & self._must_pass(state)
        stone, turned = materialize((only_if(moves, stone), turned))
        own, other = union(own, stone, turned), without(other, turned)
        over = moves & ~any_of(self._moves(own, other)) & ~any_of(self._moves(other, own))
        difference = jnp.sign(bitboard.count(own) - bitboard.count(other)).astype(jnp.float32)
        sign = jnp.where(jnp.arange(2) == mover, 1.0, -1.0).astype(jnp.float32)
        first = mover == 0
        return StonesState(
            game=self,
            stones=(self._stored(choose(first, own, other)), self._stored(choose(first, other, own))),
            current_player=jnp.where(moves | passes, 1 - mover, mover),
            terminated=state.terminated | over,
            rewards=jnp.where(over, difference * sign, 0.0),
        )

    def _own_and_other(self, state: StonesState) -> tuple[Bits, Bits]:
        """The discs of the player to move, and those of the other player."""
        first, second = (self._words(stones) for stones in state.stones)
        moves_first = state.current_player == 0
        return choose(moves_first, first, second), choose(moves_first, second, first)

    @property
    def _directions(self) -> list[int]:
        steps = (1, self._stride - 1, self._stride, self._stride + 1)
        return [sign * step for step in steps for sign in (1, -1)]

    def _turned_over(self, stone: Bits, own: Bits, other: Bits) -> Bits:
        """The discs of `other` that a new disc of `own` turns over."""
        turned = []
        for step in self._directions:
            line = slide(stone, other, step, self.size - 2)
            turned.append(only_if(any_of(both(shift(union(line, stone), step), own)), line))
        return union(*turned)

    def _moves(self, own: Bits, other: Bits) -> Bits:
        """The empty squares where a disc of `own` turns over one of `other`."""
        empty = without(self._board, union(own, other))
        return both(empty, union(*(shift(slide(own, other, step, self.size - 2), step) for step in self._directions)))

    def _free(self, state: StonesState) -> Bits:
        """The squares where the player to move can put a disc; none after the end."""
        return only_if(~state.terminated, self._moves(*self._own_and_other(state)))

    def _must_pass(self, state: StonesState) -> Bool[Array, ""]:
        return ~state.terminated & ~any_of(self._free(state))

    def legal_action_mask(self, state: StonesState) -> Bool[Array, "A"]:
        squares = self._unpack(self._free(state))
        return jnp.append(squares, ~state.terminated & ~jnp.any(squares))

    def sample_legal_action(self, state: StonesState, bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        free = self._free(state)
        count = bitboard.count(free)
        bit = bitboard.nth(free, scale_bits(bits, jnp.maximum(count, 1)))
        action = jnp.where(count == 0, self.num_cells, bit - bit // self._stride)
        return jnp.where(state.terminated, 0, action)

    def symmetries(self, state: StonesState) -> tuple[StonesState, Int32[Array, "8 A"]]:
        turned, squares = super().symmetries(state)
        passes = jnp.full((len(squares), 1), self.num_cells, jnp.int32)
        return turned, jnp.concatenate([squares, passes], axis=1)

    # Text.

    def to_text(self, state: StonesState) -> str:
        return f"{'/'.join(self._rows_as_text(state))} {self.piece_letters[int(state.current_player)]}"

    def from_text(self, text: str) -> StonesState:
        board, _, mover = text.partition(" ")
        rows = board.split("/")
        if [len(row) for row in rows] != [self.size] * self.size or mover not in self.piece_letters:
            form = f"{self.size} rows of {self.size} characters with / between, and X or O to move"
            raise InputError(f"othello: a position is {form}; got {text!r}")
        for index, symbol in enumerate(board):
            if symbol not in SYMBOLS + "/":
                raise InputError(f"othello: character {index + 1} of {text!r} is {symbol!r}; allowed: X, O and _")
        for row, column in np.ndindex(2, 2):
            row, column = row + self.size // 2 - 1, column + self.size // 2 - 1
            if rows[row][column] == "_":
                place = self._square_name(row, column)
                raise InputError(f"othello: {text!r} is impossible: {place} has a disc from the start")
        first, second = (self._pack(np.array([symbol == letter for row in rows for symbol in row])) for letter in "XO")
        over = not any_of(self._moves(first, second)) and not any_of(self._moves(second, first))
        result = np.sign(board.count("X") - board.count("O")) if over else 0
        return StonesState(
            game=self,
            stones=(self._stored(first), self._stored(second)),
            current_player=jnp.int32(self.piece_letters.index(mover)),
            terminated=jnp.bool_(over),
            rewards=jnp.asarray([result, -result], jnp.float32),
        )

    def ending(self, state: StonesState) -> str:
        first, second = ((self.owners(state) == player).sum() for player in (1, 2))
        return f"{super().ending(state)}, {first} to {second} discs"

    def _square_name(self, row: int, column: int) -> str:
        return f"{string.ascii_lowercase[column]}{row + 1}"

    def action_to_text(self, state: StonesState, action: int) -> str:
        del state
        return _PASS if action == self.num_cells else self._square_name(*divmod(int(action), self.size))

    def action_squares(self, state: StonesState, action: int) -> tuple[int, ...]:
        del state
        return (int(action),) if action < self.num_cells else ()

    def draw(self, state: StonesState) -> str:
        rows = [" ".join(row.replace("_", ".")) for row in self._rows_as_text(state)]
        lines = [f"{number + 1}  {row}" for number, row in enumerate(rows)]
        return "\n".join(["   " + " ".join(string.ascii_lowercase[: self.size]), *lines])


@register("othello")
def othello(size: int = 8) -> Othello:
    """Othello on `size` rows and columns."""
    return Othello(size)
