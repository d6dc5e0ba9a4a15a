"""m,n,k games: m columns, n rows, k stones in a row win (k or more, in any of the four directions).

`tictactoe` is (3, 3, 3), `connect2` a row of four cells where two neighbors win, `mnk` takes any sizes.
Text: one character a cell, row-major from the top left, `X` player 0, `O` player 1, `_` empty; the player to
move follows from the counts. Moves are `b2`: column letter from the left, row number from the bottom.

Stones are bits of a bitboard: cell (row, column) is bit `row * (columns + 1) + column`.
"""

import dataclasses
import functools
import string
from collections.abc import Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float32, Int, Int32, PRNGKeyArray, UInt32

from azjax.core import bitboard
from azjax.core.bitboard import Bits, any_of, both, choose, only_if, shift, single, union, without
from azjax.core.bits import scale_bits
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.core.xla import materialize
from azjax.games.game import Game, rewards_of_winner
from azjax.games.protocols import BoardGame, EditableGame, TextGame, square_name
from azjax.games.registry import register

MAX_SIDE = 26
_SYMBOLS = "_XO"


@pytree_dataclass
class MnkState:
    """A position.

    Attributes:
      stones: of each player, one array a word. More than two words are one array `[W]`, since a search stores each
        array of a state separately.
    """

    game: "Mnk" = static_field(kw_only=True, repr=False)
    stones: tuple[Bits, Bits]
    current_player: Int32[Array, "*B"]
    terminated: Bool[Array, "*B"]
    rewards: Float32[Array, "*B 2"]


@dataclasses.dataclass(frozen=True)
class Mnk(Game[MnkState], TextGame[MnkState], BoardGame[MnkState], EditableGame[MnkState]):
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

    player_names: ClassVar[tuple[str, str]] = ("X", "O")
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "X", "O")
    piece_letters: ClassVar[tuple[str, str]] = ("X", "O")

    def __post_init__(self) -> None:
        for field in ("columns", "rows"):
            side = getattr(self, field)
            if not (isinstance(side, int) and 1 <= side <= MAX_SIDE):
                raise InputError(f"{self.name}: {field} must be 1..{MAX_SIDE}, got {side}")
        longest = max(self.columns, self.rows)
        if not (isinstance(self.in_a_row, int) and 1 <= self.in_a_row <= longest):
            raise InputError(f"{self.name}: in_a_row must be 1..{longest} on this board, got {self.in_a_row}")

    @property
    def num_cells(self) -> int:
        """Cells are numbered row-major from the top left."""
        return self.columns * self.rows

    @property
    def num_actions(self) -> int:
        return self.num_cells

    @property
    def max_legal_actions(self) -> int:
        return self.num_actions

    @property
    def max_plies(self) -> int:
        return self.num_cells

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

    def init(self, key: PRNGKeyArray) -> MnkState:
        del key
        empty = self._stored(bitboard.empty(self._num_words))
        return MnkState(
            game=self,
            stones=(empty, empty),
            current_player=jnp.int32(0),
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
        )

    def step(self, state: MnkState, action: Int[ArrayLike, ""]) -> MnkState:
        return self._place(state, self._stone(jnp.asarray(action, jnp.int32)))

    def _place(self, state: MnkState, stone: Bits) -> MnkState:
        """The mover puts a stone on the board; nothing changes if the cell is occupied or off the board."""
        first, second = (self._words(stones) for stones in state.stones)
        mover, occupied = state.current_player, union(first, second)
        legal = ~state.terminated & any_of(both(stone, without(self._board, occupied)))
        won = self._has_line(union(choose(mover == 0, first, second), stone))
        stone, won = materialize((only_if(legal, stone), legal & won))
        full = ~any_of(without(self._board, union(occupied, stone)))
        return MnkState(
            game=self,
            stones=(
                self._stored(union(first, only_if(mover == 0, stone))),
                self._stored(union(second, only_if(mover == 1, stone))),
            ),
            current_player=jnp.where(any_of(stone), 1 - mover, mover),
            terminated=state.terminated | won | full,
            rewards=rewards_of_winner(won, mover),
        )

    def legal_action_mask(self, state: MnkState) -> Bool[Array, "A"]:
        return self._unpack(self._free(state))

    def sample_legal_action(self, state: MnkState, bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        free = self._free(state)
        bit = bitboard.nth(free, scale_bits(bits, bitboard.count(free)))
        return jnp.where(state.terminated, 0, bit - bit // self._stride)

    def _free(self, state: MnkState) -> Bits:
        """The cells without a stone; none after the end."""
        occupied = union(*(self._words(stones) for stones in state.stones))
        return only_if(~state.terminated, without(self._board, occupied))

    def observe(self, state: MnkState) -> Float32[Array, "rows columns 2"]:
        first, second = (self._words(stones) for stones in state.stones)
        moves_first = state.current_player == 0
        own, other = choose(moves_first, first, second), choose(moves_first, second, first)
        planes = bitboard.unpack([own, other], self._bits)
        return planes.reshape(self.observation_shape).astype(jnp.float32)

    def symmetries(self, state: MnkState) -> tuple[MnkState, Int32[Array, "S A"]]:
        permutation, inverse = self._symmetry_tables
        # Cell j of the turned board shows the cell that was moved there.
        turned = [self._unpack(self._words(stones))[inverse] for stones in state.stones]
        return self._images(state, turned), jnp.asarray(permutation)

    def _images(self, state: MnkState, cells: Sequence[Bool[Array, "S cells"]]) -> MnkState:
        """States [S, ...]: `state` with the stones of each player on these cells."""
        first, second = (jax.vmap(lambda board: self._stored(self._pack(board)))(board) for board in cells)
        images = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(cells[0]), *jnp.shape(leaf))), state)
        turned: MnkState = dataclasses.replace(images, stones=(first, second))
        return turned

    @functools.cached_property
    def _symmetry_tables(self) -> tuple[Int[np.ndarray, "S cells"], Int[np.ndarray, "S cells"]]:
        """For each symmetry, where each cell goes, and which cell comes from where."""
        cells = np.arange(self.num_cells, dtype=np.int32).reshape(self.rows, self.columns)
        turned = [cells, cells[::-1], cells[:, ::-1], cells[::-1, ::-1]]
        if self.rows == self.columns:
            turned += [board.T for board in turned]
        inverse = np.unique(np.stack([board.ravel() for board in turned]), axis=0)
        return np.argsort(inverse, axis=1).astype(np.int32), inverse

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
        return single(cell + cell // self.columns, self._num_words)

    def _unpack(self, board: Bits) -> Bool[Array, "cells"]:
        return bitboard.unpack([board], self._bits)[:, 0]

    def _pack(self, cells: Bool[Array | np.ndarray, "cells"]) -> Bits:
        return bitboard.pack(cells, self._bits, self._num_words)

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

    def to_text(self, state: MnkState) -> str:
        first, second = (np.asarray(self._unpack(self._words(stones))) for stones in state.stones)
        return "".join(_SYMBOLS[1 if x else 2 if o else 0] for x, o in zip(first, second, strict=True))

    def from_text(self, text: str) -> MnkState:
        if len(text) != self.num_cells:
            raise InputError(f"{self.name}: a position has {self.num_cells} characters, got {len(text)}: {text!r}")
        for index, symbol in enumerate(text):
            if symbol not in _SYMBOLS:
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
        return MnkState(
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

    def action_to_text(self, state: MnkState, action: int) -> str:
        del state
        return square_name(self.rows, *divmod(int(action), self.columns))

    def action_number(self, action: int) -> str:
        return str(action + self.first_cell)

    def draw(self, state: MnkState) -> str:
        text = self.to_text(state).replace("_", ".")
        width = len(str(self.rows))
        lines = [
            f"{self.rows - row:>{width}}  " + " ".join(text[row * self.columns : (row + 1) * self.columns])
            for row in range(self.rows)
        ]
        return "\n".join([*lines, " " * (width + 2) + " ".join(string.ascii_lowercase[: self.columns])])

    def with_piece(self, state: MnkState, square: int, piece: int) -> MnkState:
        owners = self.owners(state)
        owners.flat[square] = piece
        first, second = (self._stored(self._pack(owners.ravel() == player)) for player in (1, 2))
        return dataclasses.replace(state, stones=(first, second), terminated=jnp.bool_(False))

    def action_squares(self, state: MnkState, action: int) -> tuple[int, ...]:
        del state
        return (int(action),)

    def owners(self, state: MnkState) -> Int[np.ndarray, "rows columns"]:
        """0 empty, 1 X, 2 O."""
        owners = [_SYMBOLS.index(symbol) for symbol in self.to_text(state) if symbol in _SYMBOLS]
        return np.array(owners).reshape(self.rows, self.columns)


@register("mnk")
def mnk(columns: int = 3, rows: int = 3, in_a_row: int = 3) -> Mnk:
    """m columns, n rows, k in a row."""
    return Mnk(columns, rows, in_a_row)


@register("tictactoe")
def tictactoe() -> Mnk:
    """Three in a row on 3x3; plain numbers at the prompt are 1 to 9."""
    return Mnk(3, 3, 3, name="tictactoe", first_cell=1)


@register("connect2")
def connect2() -> Mnk:
    """Two neighbors in a row of four cells."""
    return Mnk(4, 1, 2, name="connect2")
