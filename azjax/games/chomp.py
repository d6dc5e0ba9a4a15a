"""Chomp: players in turn break a bar of chocolate; whoever takes the poisoned square loses.

A move names a square and takes it with all squares above it and to the right of it. The poison is at a1, in the lower
left corner (Gale 1974, "A Curious Nim-Type Game"). The first player wins on every bar of more than one square, because
a winning answer to taking the upper right corner would win at once.

An action is a square, row-major from the top left. Text: the rows from the top, `/` between, `#` chocolate, `_` taken,
and who is to move, `1` or `2`, such as `##__/####/#### 2`. Moves are `b2`: letter of the column from the left, number
of the row from the bottom.
"""

import dataclasses
import string
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float32, Int, Int32, PRNGKeyArray

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.core.whole_numbers import set_whole
from azjax.games.game import Game, rewards_of_winner
from azjax.games.protocols import CellGame, TextGame, square_name
from azjax.games.registry import register

MAX_SIDE = 16
_SYMBOLS = "_#"
_MOVERS = ("1", "2")


@pytree_dataclass
class ChompState:
    """A position.

    Attributes:
      squares: which squares are left.
    """

    game: "Chomp" = static_field(kw_only=True, repr=False)
    squares: Bool[Array, "*B rows columns"]
    current_player: Int32[Array, "*B"]
    terminated: Bool[Array, "*B"]
    rewards: Float32[Array, "*B 2"]


@dataclasses.dataclass(frozen=True)
class Chomp(Game[ChompState], TextGame[ChompState], CellGame[ChompState]):
    """Chomp.

    Attributes:
      columns: 1..16.
      rows: 1..16.
    """

    columns: int = 4
    rows: int = 3

    name = "chomp"
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "chocolate")

    def __post_init__(self) -> None:
        for field in ("columns", "rows"):
            set_whole(self, "chomp", field, range(1, MAX_SIDE + 1))

    @property
    def num_actions(self) -> int:
        return self.rows * self.columns

    @property
    def max_legal_actions(self) -> int:
        return self.num_actions

    @property
    def max_plies(self) -> int:
        return self.num_actions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns, 1)

    def init(self, key: PRNGKeyArray) -> ChompState:
        del key
        return ChompState(
            game=self,
            squares=jnp.ones((self.rows, self.columns), bool),
            current_player=jnp.int32(0),
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
        )

    def step(self, state: ChompState, action: Int[ArrayLike, ""]) -> ChompState:
        action = jnp.asarray(action, jnp.int32)
        row, column = action // self.columns, action % self.columns
        rows, columns = np.arange(self.rows)[:, None], np.arange(self.columns)[None]
        legal = ~state.terminated & jnp.any(state.squares & (rows == row) & (columns == column))
        squares = state.squares & ~(legal & (rows <= row) & (columns >= column))
        mover = state.current_player
        poisoned = legal & ~squares[-1, 0]
        return ChompState(
            game=self,
            squares=squares,
            current_player=jnp.where(legal, 1 - mover, mover),
            terminated=state.terminated | poisoned,
            rewards=rewards_of_winner(poisoned, 1 - mover),
        )

    def how_to_play(self) -> str:
        return (
            "In turn, each side takes a square of the chocolate, and with it every square that lies neither below "
            "it nor to the left of it. The square in the lower left corner is poisoned: whoever takes it loses."
        )

    def examples(self) -> tuple[tuple[str, str], ...]:
        if min(self.rows, self.columns) < 2:
            return ()
        bitten = "/".join([*["#".ljust(self.columns, "_")] * (self.rows - 1), "#" * self.columns])
        left = "/".join([*["_" * self.columns] * (self.rows - 1), "#".ljust(self.columns, "_")])
        return (
            (f"{bitten} 2", "b2 was taken, and with it all above it and to the right."),
            (f"{left} 1", "Only the poison is left: who is to move loses."),
        )

    def move_notation(self) -> str:
        return "A move is its square: the letter of the column and the number of the row from the bottom."

    def legal_action_mask(self, state: ChompState) -> Bool[Array, "A"]:
        return jnp.asarray(state.squares).reshape(-1) & ~state.terminated

    def observe(self, state: ChompState) -> Float32[Array, "rows columns 1"]:
        """The squares that are left; they look alike to both players."""
        return state.squares[..., None].astype(jnp.float32)

    def symmetries(self, state: ChompState) -> tuple[ChompState, Int32[Array, "S A"]]:
        if self.rows != self.columns or self.rows == 1:
            return super().symmetries(state)
        # The mirror that keeps the poison exchanges rows and columns.
        states, actions = super().symmetries(state)
        cells = np.arange(self.num_actions, dtype=np.int32).reshape(self.rows, self.columns)
        squares = jnp.stack([state.squares, state.squares[::-1, ::-1].T])
        states = ChompState(
            game=self,
            squares=squares,
            current_player=jnp.repeat(states.current_player, 2),
            terminated=jnp.repeat(states.terminated, 2),
            rewards=jnp.repeat(states.rewards, 2, axis=0),
        )
        return states, jnp.concatenate([actions, jnp.asarray(cells[::-1, ::-1].T.reshape(1, -1))])

    # Text.

    def to_text(self, state: ChompState) -> str:
        rows = ["".join(_SYMBOLS[left] for left in row) for row in np.asarray(state.squares, int)]
        return f"{'/'.join(rows)} {_MOVERS[int(state.current_player)]}"

    def from_text(self, text: str) -> ChompState:
        board, _, mover = text.partition(" ")
        rows = board.split("/")
        if [len(row) for row in rows] != [self.columns] * self.rows or mover not in _MOVERS:
            form = f"{self.rows} rows of {self.columns} squares with / between, and 1 or 2 to move"
            raise InputError(f"chomp: a position is {form}; got {text!r}")
        for index, symbol in enumerate(board):
            if symbol not in _SYMBOLS + "/":
                raise InputError(f"chomp: character {index + 1} of {text!r} is {symbol!r}; allowed: # and _")
        squares = np.array([[symbol == "#" for symbol in row] for row in rows])
        for row, column in np.argwhere(~squares).tolist():
            if squares[: row + 1, column:].any():
                place = square_name(self.rows, row, column)
                raise InputError(f"chomp: {text!r} has squares above or to the right of {place}, which is taken")
        player = _MOVERS.index(mover)
        if squares.all() and player == 1:
            raise InputError(f"chomp: {text!r} is the start, where 1 is to move")
        over = not squares.any()
        # Whoever is to move did not take the poison.
        rewards = np.zeros(2, np.float32)
        if over:
            rewards[player], rewards[1 - player] = 1, -1
        return ChompState(
            game=self,
            squares=jnp.asarray(squares),
            current_player=jnp.int32(player),
            terminated=jnp.bool_(over),
            rewards=jnp.asarray(rewards),
        )

    def action_to_text(self, state: ChompState, action: int) -> str:
        del state
        return square_name(self.rows, *divmod(int(action), self.columns))

    def draw(self, state: ChompState) -> str:
        rows = self.to_text(state).split()[0].replace("_", ".").split("/")
        width = len(str(self.rows))
        lines = [f"{self.rows - row:>{width}}  {' '.join(symbols)}" for row, symbols in enumerate(rows)]
        return "\n".join([*lines, " " * (width + 2) + " ".join(string.ascii_lowercase[: self.columns])])

    def action_squares(self, state: ChompState, action: int) -> tuple[int, ...]:
        del state
        return (int(action),)

    def cells(self, state: ChompState) -> Int32[Array, "squares"]:
        return jnp.ravel(state.squares).astype(jnp.int32)

    def with_piece(self, state: ChompState, square: int, piece: int) -> ChompState:
        row, column = divmod(square, self.columns)
        squares = state.squares.at[row, column].set(bool(piece))
        return dataclasses.replace(state, squares=squares, terminated=jnp.bool_(False))


@register("chomp")
def chomp(columns: int = 4, rows: int = 3) -> Chomp:
    """A bar of `columns` by `rows` squares.

    Args:
      columns: of the bar, 1 to 16.
      rows: of the bar, 1 to 16.
    """
    return Chomp(columns, rows)
