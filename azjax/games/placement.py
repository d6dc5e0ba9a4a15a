"""Games of two kinds of stones on a rectangle: `StonesGame` has the board, `PlacementGame` also the usual rules.

Stones are bits of a bitboard: cell (row, column) is bit `row * (columns + 1) + column`.
"""

import abc
import dataclasses
import functools
import string
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float32, Int, Int32, PRNGKeyArray, UInt32

from azjax.core import bitboard
from azjax.core.bitboard import Bits, any_of, both, choose, only_if, single, union, without
from azjax.core.bits import scale_bits
from azjax.core.digits import digits_of_number, number_of_digits
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.core.xla import materialize
from azjax.games.game import Game, rewards_of_winner
from azjax.games.protocols import CellGame, TextGame, square_name

MAX_SIDE = 26
SYMBOLS = "_XO"
"""An empty cell, a stone of player 0, a stone of player 1."""


@pytree_dataclass
class StonesState:
    """A position.

    Attributes:
      stones: of each player, one array a word. More than two words are one array `[W]`, since a search stores each
        array of a state separately.
    """

    game: "StonesGame[Any]" = static_field(kw_only=True, repr=False)
    stones: tuple[Bits, Bits]
    current_player: Int32[Array, "*B"]
    terminated: Bool[Array, "*B"]
    rewards: Float32[Array, "*B 2"]


Stones = TypeVar("Stones", bound=StonesState)


class StonesGame(Game[Stones], TextGame[Stones], CellGame[Stones]):
    """A board with stones, without the rules by which they come and go."""

    columns: int
    rows: int

    player_names: ClassVar[tuple[str, str]] = ("X", "O")
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "X", "O")
    piece_letters: ClassVar[tuple[str, str]] = ("X", "O")

    @property
    def num_cells(self) -> int:
        """Cells are numbered row-major from the top left."""
        return self.columns * self.rows

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns, 2)

    @property
    def _num_words(self) -> int:
        return bitboard.num_words(self.rows * self._stride)

    @property
    def _stride(self) -> int:
        return self.columns + 1

    @functools.cached_property
    def _bits(self) -> Int[np.ndarray, "cells"]:
        """The bit of each cell."""
        return np.array([r * self._stride + c for r in range(self.rows) for c in range(self.columns)])

    @functools.cached_property
    def _board(self) -> Bits:
        """All cells."""
        return bitboard.constant(self._bits.tolist(), self._num_words)

    def observe(self, state: Stones) -> Float32[Array, "rows columns planes"]:
        """The own stones, and those of the other player, from the view of the player to move."""
        first, second = (self._words(stones) for stones in state.stones)
        moves_first = state.current_player == 0
        own, other = choose(moves_first, first, second), choose(moves_first, second, first)
        planes = bitboard.unpack([own, other], self._bits)
        return planes.reshape(self.rows, self.columns, 2).astype(jnp.float32)

    def symmetries(self, state: Stones) -> tuple[Stones, Int32[Array, "S A"]]:
        permutation, inverse = self._symmetry_tables
        # Cell j of the turned board shows the cell that was moved there.
        turned = [self._unpack(self._words(stones))[inverse] for stones in state.stones]
        return self._images(state, turned), jnp.asarray(permutation)

    def _images(self, state: Stones, cells: Sequence[Bool[Array, "S cells"]]) -> Stones:
        """States [S, ...]: `state` with the stones of each player on these cells."""
        first, second = (jax.vmap(lambda board: self._stored(self._pack(board)))(board) for board in cells)
        images = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(cells[0]), *jnp.shape(leaf))), state)
        turned: Stones = dataclasses.replace(images, stones=(first, second))
        return turned

    @functools.cached_property
    def _symmetry_tables(self) -> tuple[Int[np.ndarray, "S cells"], Int[np.ndarray, "S cells"]]:
        """For each symmetry, where each cell goes, and which cell comes from where."""
        cells = np.arange(self.num_cells, dtype=np.int32).reshape(self.rows, self.columns)
        inverse = np.unique(np.stack([board.ravel() for board in self._turned(cells)]), axis=0)
        return np.argsort(inverse, axis=1).astype(np.int32), inverse

    def _turned(self, board: Int[np.ndarray, "rows columns"]) -> list[Int[np.ndarray, "rows columns"]]:
        """The board under each symmetry: all turns and reflections that keep its shape."""
        turned = [board, board[::-1], board[:, ::-1], board[::-1, ::-1]]
        return turned + [each.T for each in turned] if self.rows == self.columns else turned

    # Bits.

    def _words(self, stones: Bits) -> Bits:
        """The words of one player's stones as a state stores them."""
        if self._num_words <= 2:
            return stones
        (words,) = stones
        return tuple(jnp.asarray(words)[word] for word in range(self._num_words))

    def _stored(self, board: Bits) -> Bits:
        return board if self._num_words <= 2 else (jnp.stack(board),)

    def _stone(self, cell: Int32[Array, ""]) -> Bits:
        """The board with one stone; not on the board if there is no such cell."""
        return single(cell + cell // self.columns * (self._stride - self.columns), self._num_words)

    def _unpack(self, board: Bits) -> Bool[Array, "cells"]:
        return bitboard.unpack([board], self._bits)[:, 0]

    def _pack(self, cells: Bool[Array | np.ndarray, "cells"]) -> Bits:
        return bitboard.pack(cells, self._bits, self._num_words)

    # Numbers: a digit in base 3 for each cell, 0 empty, 1 a stone of player 0, 2 of player 1, the first cell lowest.

    def _ternary(self, state: Stones) -> UInt32[Array, ""]:
        return number_of_digits(self.cells(state), 3)

    def _from_ternary(self, number: UInt32[Array, ""]) -> tuple[Bits, Bits]:
        """The stones of both players."""
        digits = digits_of_number(number, 3, self.num_cells)
        return self._pack(digits == 1), self._pack(digits == 2)

    # Text.

    def owners(self, state: Stones) -> Int[np.ndarray, "rows columns"]:
        """0 empty, 1 a stone of player 0, 2 of player 1."""
        owners: Int[np.ndarray, "rows columns"] = np.array(self.cells(state), np.int64).reshape(self.rows, self.columns)
        return owners

    def cells(self, state: Stones) -> Int32[Array, "cells"]:
        first, second = (self._unpack(self._words(stones)).astype(jnp.int32) for stones in state.stones)
        return first + 2 * second

    def _rows_as_text(self, state: Stones) -> list[str]:
        return ["".join(SYMBOLS[owner] for owner in row) for row in self.owners(state)]

    def draw(self, state: Stones) -> str:
        width = len(str(self.rows))
        rows = [" ".join(row.replace("_", ".")) for row in self._rows_as_text(state)]
        lines = [f"{self.rows - number:>{width}}  {row}" for number, row in enumerate(rows)]
        return "\n".join([*lines, " " * (width + 2) + " ".join(string.ascii_lowercase[: self.columns])])

    def with_piece(self, state: Stones, square: int, piece: int) -> Stones:
        owners = self.owners(state)
        owners.flat[square] = piece
        first, second = (self._stored(self._pack(owners.ravel() == player)) for player in (1, 2))
        return dataclasses.replace(state, stones=(first, second), terminated=jnp.bool_(False))


class PlacementGame(StonesGame[StonesState]):
    """Players in turn place a stone on an empty cell. The game is over when a player wins or no cell is empty.

    A game says which stones win (`_wins`), and how a position is read (`from_text`). An action is a cell.
    """

    @abc.abstractmethod
    def _wins(self, own: Bits, stone: Bits, mover: Int32[Array, ""]) -> Bool[Array, ""]:
        """Whether `stone`, the mover's last one, wins; `own` are the stones of the mover, this one included."""

    @property
    def num_actions(self) -> int:
        return self.num_cells

    @property
    def max_legal_actions(self) -> int:
        return self.num_actions

    @property
    def max_plies(self) -> int:
        return self.num_cells

    def init(self, key: PRNGKeyArray) -> StonesState:
        del key
        empty = self._stored(bitboard.empty(self._num_words))
        return StonesState(
            game=self,
            stones=(empty, empty),
            current_player=jnp.int32(0),
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
        )

    def step(self, state: StonesState, action: Int[ArrayLike, ""]) -> StonesState:
        return self._place(state, self._stone(jnp.asarray(action, jnp.int32)))

    def _place(self, state: StonesState, stone: Bits) -> StonesState:
        """The mover puts a stone on the board; nothing changes if the cell is occupied or off the board."""
        first, second = (self._words(stones) for stones in state.stones)
        mover, occupied = state.current_player, union(first, second)
        legal = ~state.terminated & any_of(both(stone, without(self._board, occupied)))
        won = self._wins(union(choose(mover == 0, first, second), stone), stone, mover)
        stone, won = materialize((only_if(legal, stone), legal & won))
        full = ~any_of(without(self._board, union(occupied, stone)))
        return StonesState(
            game=self,
            stones=(
                self._stored(union(first, only_if(mover == 0, stone))),
                self._stored(union(second, only_if(mover == 1, stone))),
            ),
            current_player=jnp.where(any_of(stone), 1 - mover, mover),
            terminated=state.terminated | won | full,
            rewards=rewards_of_winner(won, mover),
        )

    def legal_action_mask(self, state: StonesState) -> Bool[Array, "A"]:
        return self._unpack(self._free(state))

    def sample_legal_action(self, state: StonesState, bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        free = self._free(state)
        bit = bitboard.nth(free, scale_bits(bits, bitboard.count(free)))
        return jnp.where(state.terminated, 0, bit - bit // self._stride)

    def _free(self, state: StonesState) -> Bits:
        """The cells without a stone; none after the end."""
        occupied = union(*(self._words(stones) for stones in state.stones))
        return only_if(~state.terminated, without(self._board, occupied))

    def action_to_text(self, state: StonesState, action: int) -> str:
        del state
        return square_name(self.rows, *divmod(int(action), self.columns))

    def action_squares(self, state: StonesState, action: int) -> tuple[int, ...]:
        del state
        return (int(action),)
