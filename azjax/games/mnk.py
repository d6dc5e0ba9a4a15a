"""m,n,k games: m columns, n rows, k stones in a row win (k or more, in any of the four directions).

`tictactoe` is (3, 3, 3), `connect2` a row of four cells where two neighbours win, `mnk` takes any sizes.
Text: one character a cell, row-major from the top left, `X` player 0, `O` player 1, `_` empty; the player to
move follows from the counts. Moves are `b2`: column letter from the left, row number from the bottom.

Stones are bits. Cell (row, column) is bit `row * (columns + 1) + column`; the spare bit at the end of each
row is never set, so that a run of stones cannot wrap around the edge when the board is shifted.
"""

import dataclasses
import functools
import string
from typing import Any, ClassVar

import chex
import jax.numpy as jnp
import numpy as np

from azjax.games.game import Game, register, state_dataclass

MAX_SIDE = 26
_WORD = 32
_SYMBOLS = "_XO"


@state_dataclass
class MnkState:
    """Attributes: see `azjax.games.game.State`; `W` words hold one player's stones.

    stones: uint32 [2, W]; by player.
    """

    stones: chex.Array
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class Mnk(Game):
    """An m,n,k game.

    Attributes:
      columns: m, 1..26.
      rows: n, 1..26.
      in_a_row: k, 1..max(m, n).
      name: the registered name.
      first_cell: number of the first cell where moves are given as plain numbers.
    """

    columns: int
    rows: int
    in_a_row: int
    name: str = "mnk"
    first_cell: int = 0

    player_names: ClassVar[tuple[str, str]] = ("X", "O")

    def __post_init__(self) -> None:
        for field in ("columns", "rows"):
            side = getattr(self, field)
            if not (isinstance(side, int) and 1 <= side <= MAX_SIDE):
                raise ValueError(f"{self.name}: {field} must be 1..{MAX_SIDE}, got {side}")
        longest = max(self.columns, self.rows)
        if not (isinstance(self.in_a_row, int) and 1 <= self.in_a_row <= longest):
            raise ValueError(f"{self.name}: in_a_row must be 1..{longest} on this board, got {self.in_a_row}")

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
        return -(-self.rows * (self.columns + 1) // _WORD)

    @functools.cached_property
    def _bits(self) -> np.ndarray:
        """int [cells]: the bit of each cell."""
        return np.array([r * (self.columns + 1) + c for r in range(self.rows) for c in range(self.columns)])

    def init(self, key: chex.PRNGKey) -> MnkState:
        del key
        return MnkState(
            stones=jnp.zeros((2, self._num_words), jnp.uint32),
            current_player=jnp.int32(0),
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
        )

    def step(self, state: MnkState, action: chex.Array) -> MnkState:
        return self._place(state, jnp.asarray(action, jnp.int32))

    def _place(self, state: MnkState, cell: chex.Array) -> MnkState:
        """The mover's stone on a cell; nothing happens where it is occupied or no cell."""
        stone = self._stone(cell)
        occupied = state.stones[0] | state.stones[1]
        in_range = (cell >= 0) & (cell < self.num_cells)
        legal = in_range & ~state.terminated & ~jnp.any(occupied & stone)
        mover = state.current_player
        players = jnp.arange(2)
        stones = jnp.where((legal & (players == mover))[:, None], state.stones | stone[None], state.stones)
        won = legal & self._has_line(jnp.where(mover == 0, stones[0], stones[1]))
        full = jnp.all(stones[0] | stones[1] == self._pack(np.ones(self.num_cells, bool)))
        sign = 1.0 - 2.0 * jnp.abs(players - mover).astype(jnp.float32)
        return MnkState(
            stones=stones,
            current_player=jnp.where(legal, 1 - mover, mover),
            terminated=state.terminated | won | (legal & full),
            rewards=jnp.where(won, sign, 0.0),
        )

    def legal_action_mask(self, state: MnkState) -> chex.Array:
        return ~self._unpack(state.stones[0] | state.stones[1]) & ~state.terminated

    def observe(self, state: MnkState) -> chex.Array:
        mover = state.current_player
        own_first = jnp.where(mover == 0, state.stones, state.stones[::-1])
        planes = self._unpack(own_first).astype(jnp.float32)
        return jnp.moveaxis(planes.reshape(2, self.rows, self.columns), 0, -1)

    def symmetries(self, state: MnkState) -> tuple[MnkState, chex.Array]:
        permutation, inverse = self._symmetry_tables
        num_symmetries = len(permutation)
        # Cell j of the turned board shows the cell that was moved there.
        turned = jnp.moveaxis(self._unpack(state.stones)[:, inverse], 1, 0)
        states = MnkState(
            stones=self._pack(turned),
            current_player=jnp.broadcast_to(state.current_player, num_symmetries),
            terminated=jnp.broadcast_to(state.terminated, num_symmetries),
            rewards=jnp.broadcast_to(state.rewards, (num_symmetries, 2)),
        )
        return states, jnp.asarray(permutation)

    @functools.cached_property
    def _symmetry_tables(self) -> tuple[np.ndarray, np.ndarray]:
        """int32 [S, A] twice: where each cell goes, and which cell comes from where."""
        cells = np.arange(self.num_cells, dtype=np.int32).reshape(self.rows, self.columns)
        turned = [cells, cells[::-1], cells[:, ::-1], cells[::-1, ::-1]]
        if self.rows == self.columns:
            turned += [board.T for board in turned]
        inverse = np.unique(np.stack([board.ravel() for board in turned]), axis=0)
        return np.argsort(inverse, axis=1).astype(np.int32), inverse

    # Bits.

    def _stone(self, action: chex.Array) -> chex.Array:
        """uint32 [W]: the board with one stone, on cell `action`."""
        bit = action // self.columns * (self.columns + 1) + action % self.columns
        words = jnp.arange(self._num_words)
        return jnp.where(words == bit // _WORD, jnp.uint32(1) << (bit % _WORD).astype(jnp.uint32), jnp.uint32(0))

    def _unpack(self, stones: chex.Array) -> chex.Array:
        """uint32 [..., W] -> bool [..., cells]."""
        word, shift = self._bits // _WORD, (self._bits % _WORD).astype(np.uint32)
        # One word needs no gather, which is slow.
        words = jnp.broadcast_to(stones, (*stones.shape[:-1], len(word))) if self._num_words == 1 else stones[..., word]
        return (words >> jnp.broadcast_to(shift, words.shape)) & jnp.uint32(1) == 1

    def _pack(self, cells: Any) -> chex.Array:
        """bool [..., cells] -> uint32 [..., W]."""
        cells = jnp.asarray(cells)
        bits = cells.astype(jnp.uint32) << jnp.broadcast_to((self._bits % _WORD).astype(np.uint32), cells.shape)
        word = self._bits // _WORD
        return jnp.stack(
            [jnp.sum(bits[..., word == w], axis=-1, dtype=jnp.uint32) for w in range(self._num_words)], axis=-1
        )

    def _has_line(self, stones: chex.Array) -> chex.Array:
        """bool []: `in_a_row` stones of uint32 [W] stand in a line."""
        stride = self.columns + 1
        found = jnp.bool_(False)
        for step in (1, stride, stride + 1, stride - 1):
            run, length = stones, 1
            # Runs of 2 * length stones are two runs of `length`, the second shifted onto the first.
            while length < self.in_a_row:
                extend = min(length, self.in_a_row - length)
                run, length = run & _shift_down(run, step * extend), length + extend
            found |= jnp.any(run != 0)
        return found

    # Text.

    def to_text(self, state: MnkState) -> str:
        owner = np.asarray(self._unpack(state.stones))
        return "".join(_SYMBOLS[1 if first else 2 if second else 0] for first, second in owner.T)

    def from_text(self, text: str) -> MnkState:
        if len(text) != self.num_cells:
            raise ValueError(f"{self.name}: a position has {self.num_cells} characters, got {len(text)}: {text!r}")
        for index, symbol in enumerate(text):
            if symbol not in _SYMBOLS:
                raise ValueError(f"{self.name}: character {index + 1} of {text!r} is {symbol!r}; allowed: X, O and _")
        first, second = text.count("X"), text.count("O")
        if first - second not in (0, 1):
            raise ValueError(f"{self.name}: {text!r} has {first} X and {second} O; X moves first, so 0 or 1 more X")
        stones = self._pack(np.array([[symbol == player for symbol in text] for player in "XO"]))
        lines = [bool(self._has_line(stones[player])) for player in range(2)]
        last_mover = 0 if first > second else 1
        if lines[1 - last_mover]:
            winner, mover = "XO"[1 - last_mover], "XO"[last_mover]
            raise ValueError(f"{self.name}: {text!r} goes on after {winner} had a line, since {mover} moved last")
        if lines[last_mover] and not self._one_stone_made_all_lines(stones[last_mover], self._uncovered(text)):
            raise ValueError(f"{self.name}: {text!r} has lines that no last move completes")
        rewards = np.zeros(2, np.float32)
        if lines[last_mover]:
            rewards[last_mover], rewards[1 - last_mover] = 1, -1
        return MnkState(
            stones=stones,
            current_player=jnp.int32(1 - last_mover),
            terminated=jnp.bool_(any(lines) or first + second == self.num_cells),
            rewards=jnp.asarray(rewards),
        )

    def _uncovered(self, text: str) -> np.ndarray:
        """bool [cells]: a stone there can have been the last one played."""
        return np.array([symbol != "_" for symbol in text])

    def _one_stone_made_all_lines(self, stones: chex.Array, uncovered: np.ndarray) -> bool:
        cells = np.flatnonzero(np.asarray(self._unpack(stones)) & uncovered)
        return any(not bool(self._has_line(stones & ~self._stone(jnp.int32(cell)))) for cell in cells)

    def action_to_text(self, state: MnkState, action: int) -> str:
        del state
        row, column = divmod(int(action), self.columns)
        return f"{string.ascii_lowercase[column]}{self.rows - row}"

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


def _shift_down(words: chex.Array, distance: int) -> chex.Array:
    """Moves every bit of uint32 [W] down by `distance` places; bits below zero fall out."""
    skip, shift = divmod(distance, _WORD)
    padded = jnp.concatenate([words[skip:], jnp.zeros(min(skip, len(words)) + 1, jnp.uint32)])
    low, high = padded[: len(words)], padded[1 : len(words) + 1]
    return low if shift == 0 else (low >> jnp.uint32(shift)) | (high << jnp.uint32(_WORD - shift))


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
    """Two neighbours in a row of four cells."""
    return Mnk(4, 1, 2, name="connect2")
