"""Othello: a disc turns over the other player's discs between it and another disc of its own; more discs win.

A move must turn over a disc. A player without such a move passes, and may not pass otherwise; when neither player can
move the game is over (World Othello Federation, "Official rules for the game Othello"). Black, player 0, begins.

Actions, text and moves are those of `square_stones.py`, with the extra action `pass`. The numbers are OpenSpiel's.
"""

import dataclasses
import string
from collections.abc import Iterable, Iterator
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Int, Int32, PRNGKeyArray, UInt32

from azjax.core import bitboard
from azjax.core.bitboard import Bits, any_of, both, choose, only_if, shift, slide, union, without
from azjax.core.bits import scale_bits
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.core.whole_numbers import set_whole
from azjax.core.xla import materialize
from azjax.games.placement import StonesState
from azjax.games.protocols import MAX_POSITION_NUMBERS, NumberedGame, square_name
from azjax.games.registry import register
from azjax.games.square_stones import SquareStonesGame

SIZES = (4, 6, 8)


@pytree_dataclass
class OthelloState(StonesState):
    """A position.

    Attributes:
      free: the squares where the player to move can put a disc; none after the end. Kept, since a step finds them to
        see whether the game goes on.
    """

    free: Bits


@dataclasses.dataclass(frozen=True)
class Othello(SquareStonesGame[OthelloState], NumberedGame[OthelloState]):
    """Othello.

    Attributes:
      size: rows and columns: 4, 6 or 8.
    """

    name = "othello"
    player_names: ClassVar[tuple[str, str]] = ("Black", "White")
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "black", "white")
    extra_action: ClassVar[str] = "pass"

    def __post_init__(self) -> None:
        set_whole(self, "othello", "size", SIZES)
        super().__post_init__()

    def how_to_play(self) -> str:
        return (
            "Black begins. In turn, each side puts down a disc so that it and another of its discs enclose discs of "
            "the other side in a straight or diagonal line; all enclosed discs turn over to its own color. Who cannot "
            "do that passes. When neither side can, the game is over: the side with more discs wins, and equal numbers "
            "are a draw."
        )

    def examples(self) -> tuple[tuple[str, str], ...]:
        middle = self.size // 2
        rows = [["_"] * self.size for _ in range(self.size)]
        for row, column, disc in ((-2, -1, "X"), (-1, -1, "X"), (-1, 0, "X"), (0, -1, "X"), (0, 0, "O")):
            rows[middle + row][middle + column] = disc
        placed, turned = (square_name(self.size, row, middle - 1, from_top=True) for row in (middle - 2, middle - 1))
        text = "/".join("".join(row) for row in rows) + " O"
        return ((text, f"Black put a disc on {placed}, and the white one on {turned} turned over."),)

    def move_notation(self) -> str:
        return "A move is its square, the letter of the column and the number of the row from the top, or pass."

    @property
    def max_plies(self) -> int:
        # Four squares have discs from the start, and a move follows each pass.
        return 2 * (self.num_cells - 4)

    @property
    def _stride(self) -> int:
        # Without spare bits 64 squares are two words, not three; `_lines` stops at the edges instead.
        return self.columns

    def init(self, key: PRNGKeyArray) -> OthelloState:
        del key
        low, high = self.size // 2 - 1, self.size // 2
        black, white = ((low, high), (high, low)), ((low, low), (high, high))
        return self._position(self._discs(black), self._discs(white), jnp.int32(0))

    def _discs(self, cells: Iterable[tuple[int, int]]) -> Bits:
        bits = (row * self._stride + column for row, column in cells)
        return tuple(jnp.asarray(word) for word in bitboard.constant(bits, self._num_words))

    def step(self, state: OthelloState, action: Int[ArrayLike, ""]) -> OthelloState:
        action, player = jnp.asarray(action, jnp.int32), state.current_player
        own, other = self._own_and_other(state.stones, player)
        stone = both(self._stone(action), state.free)
        turned = self._turned_over(stone, own, other)
        legal = any_of(stone) | ((action == self.num_cells) & self._must_pass(state))
        following = self._position(without(other, turned), union(own, stone, turned), 1 - player)
        unchanged = dataclasses.replace(state, rewards=jnp.zeros_like(state.rewards))
        played: OthelloState = jax.tree.map(lambda new, old: jnp.where(legal, new, old), following, unchanged)
        return played

    def _own_and_other(self, discs: tuple[Bits, Bits], player: Int32[Array, ""]) -> tuple[Bits, Bits]:
        """The discs of `player` and those of the other one; or, of these two, the discs of players 0 and 1."""
        left, right = discs
        return choose(player == 0, left, right), choose(player == 0, right, left)

    def _position(self, own: Bits, other: Bits, player: Int32[Array, ""]) -> OthelloState:
        """The position where `player` is to move and has the discs `own`."""
        own, other = materialize((own, other))
        free = self._moves(own, other)
        over = ~any_of(free) & ~any_of(self._moves(other, own))
        first, second = self._own_and_other((own, other), player)
        result = jnp.where(over, jnp.sign(bitboard.count(first) - bitboard.count(second)), 0)
        return OthelloState(
            game=self,
            stones=(first, second),
            current_player=player,
            terminated=over,
            rewards=jnp.stack([result, -result]).astype(jnp.float32),
            free=free,
        )

    def _lines(self, other: Bits) -> Iterator[tuple[int, Bits]]:
        """Each direction as a distance, with those discs of `other` that a line in it can turn over."""
        inner = self._discs((row, column) for row in range(self.size) for column in range(1, self.size - 1))
        # A line that crosses neither a left nor a right column cannot go around an edge.
        sideways = both(other, inner)
        for distance in (1, self._stride - 1, self._stride, self._stride + 1):
            crossed = other if distance == self._stride else sideways
            yield from ((distance, crossed), (-distance, crossed))

    def _turned_over(self, stone: Bits, own: Bits, other: Bits) -> Bits:
        """The discs of `other` that a new disc of `own` turns over."""
        turned = []
        for step, crossed in self._lines(other):
            line = slide(stone, crossed, step, self.size - 2)
            turned.append(only_if(any_of(both(shift(union(line, stone), step), own)), line))
        return union(*turned)

    def _moves(self, own: Bits, other: Bits) -> Bits:
        """The empty squares where a disc of `own` turns over one of `other`."""
        empty = without(self._board, union(own, other))
        ends = (shift(slide(own, crossed, step, self.size - 2), step) for step, crossed in self._lines(other))
        return both(empty, union(*ends))

    def _must_pass(self, state: OthelloState) -> Bool[Array, ""]:
        return ~state.terminated & ~any_of(state.free)

    def legal_action_mask(self, state: OthelloState) -> Bool[Array, "A"]:
        return jnp.append(self._unpack(state.free), self._must_pass(state))

    def sample_legal_action(self, state: OthelloState, bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        count = bitboard.count(state.free)
        square = bitboard.nth(state.free, scale_bits(bits, jnp.maximum(count, 1)))
        return jnp.where(count > 0, square, jnp.where(state.terminated, 0, self.num_cells))

    def symmetries(self, state: OthelloState) -> tuple[OthelloState, Int32[Array, "S A"]]:
        images, actions = super().symmetries(state)
        _, inverse = self._symmetry_tables
        free = jax.vmap(self._pack)(self._unpack(state.free)[inverse])
        return dataclasses.replace(images, free=free), actions

    def with_piece(self, state: OthelloState, square: int, piece: int) -> OthelloState:
        changed = super().with_piece(state, square, piece)
        discs = self._own_and_other(changed.stones, state.current_player)
        return dataclasses.replace(changed, free=self._moves(*discs))

    # Numbers: those of the stones, twice, and the player to move.

    @property
    def num_position_numbers(self) -> int:
        numbers = 2 * 3**self.num_cells
        return numbers if numbers <= MAX_POSITION_NUMBERS else 0

    def position_number(self, state: OthelloState) -> UInt32[Array, ""]:
        return 2 * self._ternary(state) + state.current_player.astype(jnp.uint32)

    def from_position_number(self, number: UInt32[Array, ""]) -> OthelloState:
        player = (number & 1).astype(jnp.int32)
        state = self._position(*self._own_and_other(self._from_ternary(number >> 1), player), player)
        return dataclasses.replace(state, rewards=jnp.zeros(2, jnp.float32))

    # Text.

    def from_text(self, text: str) -> OthelloState:
        first, second, mover = self._read(text)
        low, high = self.size // 2 - 1, self.size // 2
        for row, column in ((low, low), (low, high), (high, low), (high, high)):
            if not bitboard.has(union(first, second), jnp.int32(row * self._stride + column)):
                place = square_name(self.size, row, column, from_top=True)
                raise InputError(f"othello: {text!r} is impossible: {place} has a disc from the start")
        player = jnp.int32(mover)
        return self._position(*self._own_and_other((first, second), player), player)

    def ending(self, state: OthelloState) -> str:
        first, second = ((self.owners(state) == player).sum() for player in (1, 2))
        return f"{super().ending(state)}, {first} to {second} discs"

    def draw(self, state: OthelloState) -> str:
        rows = [" ".join(row.replace("_", ".")) for row in self._rows_as_text(state)]
        lines = [f"{number + 1}  {row}" for number, row in enumerate(rows)]
        return "\n".join(["   " + " ".join(string.ascii_lowercase[: self.size]), *lines])


@register("othello")
def othello(size: int = 8) -> Othello:
    """Othello on `size` rows and columns.

    Args:
      size: 4, 6 or 8.
    """
    return Othello(size)
