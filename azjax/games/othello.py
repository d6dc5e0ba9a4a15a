"""Othello: a disc turns over the other player's discs between it and another disc of its own; more discs win.

A move must turn over a disc. A player without such a move passes, and may not pass otherwise; when neither player can
move the game is over (World Othello Federation, "Official rules for the game Othello"). Black, player 0, begins.

Actions, text and moves are those of `square_stones.py`, with the extra action `pass`. The numbers are OpenSpiel's.
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
from azjax.games.placement import StonesState
from azjax.games.registry import register
from azjax.games.square_stones import SquareStonesGame

SIZES = (4, 6, 8)


@dataclasses.dataclass(frozen=True)
class Othello(SquareStonesGame):
    """Othello.

    Attributes:
      size: rows and columns: 4, 6 or 8.
    """

    name = "othello"
    player_names: ClassVar[tuple[str, str]] = ("Black", "White")
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "black", "white")
    extra_action: ClassVar[str] = "pass"

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise InputError(f"othello: size must be {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]}, got {self.size}")
        super().__post_init__()

    @property
    def max_plies(self) -> int:
        # Four squares have discs from the start, and a move follows each pass.
        return 2 * (self.num_cells - 4)

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

    # Text.

    def from_text(self, text: str) -> StonesState:
        first, second, player = self._read(text)
        low, high = self.size // 2 - 1, self.size // 2
        for row, column in ((low, low), (low, high), (high, low), (high, high)):
            if not bitboard.has(union(first, second), jnp.int32(row * self._stride + column)):
                place = f"{string.ascii_lowercase[column]}{row + 1}"
                raise InputError(f"othello: {text!r} is impossible: {place} has a disc from the start")
        over = not any_of(self._moves(first, second)) and not any_of(self._moves(second, first))
        result = np.sign(int(bitboard.count(first)) - int(bitboard.count(second))) if over else 0
        return StonesState(
            game=self,
            stones=(self._stored(first), self._stored(second)),
            current_player=jnp.int32(player),
            terminated=jnp.bool_(over),
            rewards=jnp.asarray([result, -result], jnp.float32),
        )

    def ending(self, state: StonesState) -> str:
        first, second = ((self.owners(state) == player).sum() for player in (1, 2))
        return f"{super().ending(state)}, {first} to {second} discs"

    def draw(self, state: StonesState) -> str:
        rows = [" ".join(row.replace("_", ".")) for row in self._rows_as_text(state)]
        lines = [f"{number + 1}  {row}" for number, row in enumerate(rows)]
        return "\n".join(["   " + " ".join(string.ascii_lowercase[: self.size]), *lines])


@register("othello")
def othello(size: int = 8) -> Othello:
    """Othello on `size` rows and columns."""
    return Othello(size)
