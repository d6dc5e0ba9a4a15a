"""Hex: players in turn place a stone; player 0, Red, wins by a chain from top to bottom, Blue from left to right.

The board is a rhombus of hexagons: a cell touches the two beside it in its row, the one above and the one above to the
right, the one below and the one below to the left. No game is a draw (Gale 1979, "The Game of Hex and the Brouwer
Fixed-Point Theorem"). With `swap`, the second player may answer the first stone with `swap`: that stone becomes one of
player 1 on the mirrored cell, and player 0 is to move, as in OpenSpiel and pgx, whose action numbers these are.

Actions, text and moves are those of `square_stones.py`, with the extra action `swap`.
"""

import dataclasses
import functools
import string
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float32, Int, Int32, UInt32

from azjax.core import bitboard
from azjax.core.bitboard import Bits, any_of, both, choose, only_if, shift, single, toggle, union, without
from azjax.core.bits import scale_bits
from azjax.core.errors import InputError
from azjax.core.whole_numbers import set_whole
from azjax.games.placement import PlacementGame, StonesState
from azjax.games.protocols import MAX_POSITION_NUMBERS, NumberedGame
from azjax.games.registry import register
from azjax.games.square_stones import SquareStonesGame

MIN_SIZE, MAX_SIZE = 2, 13


@dataclasses.dataclass(frozen=True)
class Hex(SquareStonesGame[StonesState], PlacementGame, NumberedGame[StonesState]):
    """Hex on a rhombus.

    Attributes:
      size: rows and columns, 2..13.
      swap: the second player may swap.
    """

    swap: bool = False

    name = "hex"
    player_names: ClassVar[tuple[str, str]] = ("Red", "Blue")
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "red", "blue")
    extra_action: ClassVar[str] = "swap"

    def __post_init__(self) -> None:
        set_whole(self, "hex", "size", range(MIN_SIZE, MAX_SIZE + 1))
        if not isinstance(self.swap, bool):
            raise InputError(f"hex: swap must be true or false, got {self.swap!r}")
        super().__post_init__()

    @property
    def has_extra_action(self) -> bool:
        return self.swap

    @property
    def max_plies(self) -> int:
        return self.num_cells + self.swap

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.size, self.size, 3)

    def how_to_play(self) -> str:
        rules = (
            "Red begins. In turn, each side puts a stone on an empty cell; stones never move. Red wins by a chain of "
            "its stones from the top to the bottom, Blue by one from the left to the right. No game is a draw."
        )
        swap = " Blue may answer the first stone with a swap, which turns it into a blue stone on the mirrored cell."
        return rules + swap if self.swap else rules

    def examples(self) -> tuple[tuple[str, str], ...]:
        if self.size < 3:
            return ()
        # A red chain down the first column, but for a step to the right at the top, and blue stones beside it.
        rows = ["_X", *["XO"] * (self.size - 2), "X".ljust(self.size - 1, "_") + "O"]
        text = "/".join(row.ljust(self.size, "_") for row in rows) + " O"
        return ((text, "Red has connected the top with the bottom and wins."),)

    def move_notation(self) -> str:
        swap = ", or swap" if self.swap else ""
        return f"A move is its cell, the letter of the column and the number of the row from the top{swap}."

    def step(self, state: StonesState, action: Int[ArrayLike, ""]) -> StonesState:
        following = super().step(state, action)
        if not self.swap:
            return following
        swaps = self._may_swap(state) & (jnp.asarray(action) == self.num_cells)
        bit = bitboard.nth(self._words(state.stones[0]), jnp.int32(0))
        mirrored = single(bit % self._stride * self._stride + bit // self._stride, self._num_words)
        first, second = (self._words(stones) for stones in following.stones)
        stones = self._stored(only_if(~swaps, first)), self._stored(union(second, only_if(swaps, mirrored)))
        mover = jnp.where(swaps, 0, following.current_player)
        swapped: StonesState = dataclasses.replace(following, stones=stones, current_player=mover)
        return swapped

    def _may_swap(self, state: StonesState) -> Bool[Array, ""]:
        """Whether there is one stone, which player 1 answers."""
        first, second = (bitboard.count(self._words(stones)) for stones in state.stones)
        return (first == 1) & (second == 0) & (state.current_player == 1) & ~state.terminated

    def legal_action_mask(self, state: StonesState) -> Bool[Array, "A"]:
        cells = super().legal_action_mask(state)
        return jnp.append(cells, self._may_swap(state)) if self.swap else cells

    def sample_legal_action(self, state: StonesState, bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        if not self.swap:
            return super().sample_legal_action(state, bits)
        free = self._free(state)
        count = bitboard.count(free)
        drawn = scale_bits(bits, count + self._may_swap(state))
        bit = bitboard.nth(free, jnp.minimum(drawn, count - 1))
        action = jnp.where(drawn == count, self.num_cells, bit - bit // self._stride)
        return jnp.where(state.terminated, 0, action)

    def observe(self, state: StonesState) -> Float32[Array, "size size 3"]:
        """The own stones, those of the other player, and ones for player 1, from the view of the player to move."""
        second = jnp.broadcast_to(state.current_player == 1, (self.size, self.size, 1))
        return jnp.concatenate([super().observe(state), second.astype(jnp.float32)], axis=2)

    def _turned(self, board: Int[np.ndarray, "rows columns"]) -> list[Int[np.ndarray, "rows columns"]]:
        return [board, board[::-1, ::-1]]

    # Chains.

    def _wins(self, own: Bits, stone: Bits, mover: Int32[Array, ""]) -> Bool[Array, ""]:
        chain = self._connected(stone, own)
        starts, ends = self._edges(mover)
        return any_of(both(chain, starts)) & any_of(both(chain, ends))

    def _edges(self, player: Int32[Array, ""]) -> tuple[Bits, Bits]:
        """The cells of the two edges that a player connects."""
        last = self.size - 1
        top, bottom, left, right = (
            bitboard.constant((row * self._stride + column for row, column in cells), self._num_words)
            for cells in (
                [(0, column) for column in range(self.size)],
                [(last, column) for column in range(self.size)],
                [(row, 0) for row in range(self.size)],
                [(row, last) for row in range(self.size)],
            )
        )
        return choose(player == 0, top, left), choose(player == 0, bottom, right)

    def _connected(self, seed: Bits, stones: Bits) -> Bits:
        """The stones that are connected to those of `seed`, which are among them."""
        neighbors = (1, self._stride, self._stride - 1)

        def grow(chain: Bits) -> Bits:
            beside = [shift(chain, sign * step) for step in neighbors for sign in (1, -1)]
            return union(chain, both(stones, union(*beside)))

        def body(carry: tuple[Bits, Bool[Array, ""]]) -> tuple[Bits, Bool[Array, ""]]:
            chain, _ = carry
            grown = grow(grow(chain))
            return grown, any_of(toggle(grown, chain))

        grows = any_of(seed)
        connected, _ = jax.lax.while_loop(lambda carry: carry[1], body, (both(seed, stones), grows))
        return connected

    # Numbers: those of the stones; with the swap twice and the player to move, who does not follow from the stones.

    @property
    def num_position_numbers(self) -> int:
        numbers = (1 + self.swap) * 3**self.num_cells
        return numbers if numbers <= MAX_POSITION_NUMBERS else 0

    def position_number(self, state: StonesState) -> UInt32[Array, ""]:
        number = self._ternary(state)
        return 2 * number + state.current_player.astype(jnp.uint32) if self.swap else number

    def from_position_number(self, number: UInt32[Array, ""]) -> StonesState:
        stones = self._from_ternary(number >> 1 if self.swap else number)
        ahead = bitboard.count(stones[0]) - bitboard.count(stones[1])
        player = (number & 1).astype(jnp.int32) if self.swap else ahead & 1
        possible = (ahead == player) | (self.swap & (ahead == player - 1) & any_of(stones[1]))
        won = self._has_chain(stones[0], 0) | self._has_chain(stones[1], 1)
        return StonesState(
            game=self,
            stones=(self._stored(stones[0]), self._stored(stones[1])),
            current_player=player,
            terminated=~possible | won,
            rewards=jnp.zeros(2, jnp.float32),
        )

    # Text.

    def from_text(self, text: str) -> StonesState:
        *stones, player = self._read(text)
        first, second = (int(bitboard.count(own)) for own in stones)
        mover, last = self.piece_letters[player], 1 - player
        # After a swap player 0 has a stone less than without one.
        swapped = self.swap and second > 0 and first - second == player - 1
        if first - second != player and not swapped:
            after_swap = " or, after a swap, one less" if self.swap else ""
            raise InputError(
                f"hex: {text!r} has {first} X and {second} O; with {mover} to move there are {second + player} X"
                f"{after_swap}"
            )
        won = [bool(self._has_chain(own, number)) for number, own in enumerate(stones)]
        if won[player]:
            raise InputError(f"hex: {text!r} is impossible: {mover} has won, and is to move")
        if won[last] and not self._one_stone_made_the_chain(stones[last], last):
            raise InputError(f"hex: {text!r} has chains that no last move completes")
        rewards = np.zeros(2, np.float32)
        if won[last]:
            rewards[last], rewards[player] = 1, -1
        return StonesState(
            game=self,
            stones=(self._stored(stones[0]), self._stored(stones[1])),
            current_player=jnp.int32(player),
            terminated=jnp.bool_(won[last]),
            rewards=jnp.asarray(rewards),
        )

    @functools.partial(jax.jit, static_argnums=0)
    def _has_chain(self, own: Bits, player: Int[ArrayLike, ""]) -> Bool[Array, ""]:
        starts, ends = self._edges(jnp.asarray(player))
        return any_of(both(self._connected(both(own, starts), own), ends))

    def _one_stone_made_the_chain(self, own: Bits, player: int) -> bool:
        cells = np.flatnonzero(np.asarray(self._unpack(own)))
        return any(not self._has_chain(without(own, self._stone(jnp.int32(cell))), player) for cell in cells)

    def draw(self, state: StonesState) -> str:
        rows = [" ".join(row.replace("_", ".")) for row in self._rows_as_text(state)]
        lines = [f"{' ' * number}{number + 1:>2}  {row}" for number, row in enumerate(rows)]
        return "\n".join(["    " + " ".join(string.ascii_lowercase[: self.size]), *lines])


@register("hex")
def hex_game(size: int = 11, swap: bool = False) -> Hex:
    """Hex on a rhombus of `size` rows.

    Args:
      size: rows and columns, 2 to 13.
      swap: the second player may take over the first move.
    """
    return Hex(size, swap)
