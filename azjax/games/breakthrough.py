"""Breakthrough: pawns step forward and capture diagonally; the first pawn on the last row wins.

A pawn steps to the next row, straight or diagonally. It captures diagonally, and not straight. A side without pawns has
lost (Dan Troyka 2000, which won the contest for games on 8x8 squares of about.com in 2001). Pawns begin on the first
two rows of each side, on a board of fewer than 6 rows on the first row alone, as in OpenSpiel. No game is a draw.

Players see the board from their own side: in a state, and in the actions, the pawns of the player to move go up. An
action is `3 * square + side`, with squares row-major from the top left and the sides left, straight and right. Text:
the rows from the top of White's board, `/` between, `w` and `b` the pawns, `.` an empty square, and who is to move,
such as `bbb/.../.../www w`. A move is the squares that the pawn leaves and reaches, such as `a1b2`.
"""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float32, Int, Int8, Int32, PRNGKeyArray, UInt32

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.core.subsets import binomials, rank_of_subset, subset_of_rank
from azjax.core.whole_numbers import set_whole
from azjax.games.game import Game, rewards_of_winner
from azjax.games.protocols import (
    MAX_POSITION_NUMBERS,
    ActionGroup,
    CellGame,
    LaidOutGame,
    NumberedGame,
    TextGame,
    square_name,
)
from azjax.games.registry import register

MAX_SIDE = 26
_EMPTY, _OWN, _OTHER = 0, 1, -1
_LETTERS = ".wb"


@pytree_dataclass
class BreakthroughState:
    """A position.

    Attributes:
      board: 1 a pawn of the player to move, -1 of the other one, 0 an empty square, as the player to move sees it.
    """

    game: "Breakthrough" = static_field(kw_only=True, repr=False)
    board: Int8[Array, "*B rows columns"]
    current_player: Int32[Array, "*B"]
    terminated: Bool[Array, "*B"]
    rewards: Float32[Array, "*B 2"]


@dataclasses.dataclass(frozen=True)
class Breakthrough(
    Game[BreakthroughState],
    TextGame[BreakthroughState],
    CellGame[BreakthroughState],
    NumberedGame[BreakthroughState],
    LaidOutGame,
):
    """Breakthrough.

    Attributes:
      columns: 2..26.
      rows: 3..26.
    """

    columns: int = 8
    rows: int = 8

    name = "breakthrough"
    player_names: ClassVar[tuple[str, str]] = ("White", "Black")
    piece_letters: ClassVar[tuple[str, str]] = ("w", "b")
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "white pawn", "black pawn")

    def __post_init__(self) -> None:
        for field, least in (("columns", 2), ("rows", 3)):
            set_whole(self, "breakthrough", field, range(least, MAX_SIDE + 1))

    def how_to_play(self) -> str:
        return (
            "White begins. Pawns step to the next row, straight or diagonally. They capture diagonally only, by "
            "stepping onto a pawn of the other side; straight ahead any pawn blocks them. Whoever first brings a pawn "
            "to the last row wins, and so does a side that has captured all pawns of the other one. No game is a "
            "draw."
        )

    def examples(self) -> tuple[tuple[str, str], ...]:
        rows = ["." * self.columns] * self.rows
        rows[0] = "w" + "." * (self.columns - 1)
        rows[1] = "b".rjust(self.columns, ".")
        return (("/".join(rows) + " b", "A white pawn has reached the last row: White wins."),)

    def move_notation(self) -> str:
        return "A move is the square that the pawn leaves and the one that it reaches, with nothing between them."

    @property
    def pawn_rows(self) -> int:
        """The rows of a side with pawns at the start."""
        return 2 if self.rows >= 6 else 1

    @property
    def num_squares(self) -> int:
        return self.rows * self.columns

    @property
    def num_actions(self) -> int:
        return 3 * self.num_squares

    @property
    def max_legal_actions(self) -> int:
        return 3 * self.pawn_rows * self.columns

    @property
    def max_plies(self) -> int:
        # Those of a column of pawns before the last row, and the winning one.
        steps = sum(self.rows - 2 - row for row in range(self.pawn_rows))
        return 2 * self.columns * steps + 1

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns, 2)

    @property
    def action_layout(self) -> tuple[ActionGroup, ...]:
        return (ActionGroup("square", 3),)

    def init(self, key: PRNGKeyArray) -> BreakthroughState:
        del key
        board = np.zeros((self.rows, self.columns), np.int8)
        board[: self.pawn_rows], board[-self.pawn_rows :] = _OTHER, _OWN
        return self._running(jnp.asarray(board), jnp.int32(0))

    def _running(self, board: Int8[Array, "rows columns"], player: Int32[Array, ""]) -> BreakthroughState:
        return BreakthroughState(
            game=self,
            board=board,
            current_player=player,
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
        )

    def step(self, state: BreakthroughState, action: Int[ArrayLike, ""]) -> BreakthroughState:
        action = jnp.asarray(action, jnp.int32)
        number = jnp.arange(self.num_actions, dtype=jnp.int32)
        legal = jnp.any(self.legal_action_mask(state) & (number == action))
        (row, column), (to_row, to_column) = self._squares(jnp.where(legal, action, 0))
        squares = jnp.arange(self.num_squares, dtype=jnp.int32).reshape(self.rows, self.columns)
        leaves, reaches = squares == row * self.columns + column, squares == to_row * self.columns + to_column
        board = jnp.where(reaches, jnp.int8(_OWN), jnp.where(leaves, jnp.int8(_EMPTY), state.board))
        won = legal & ((to_row == 0) | ~jnp.any(board == _OTHER))
        mover = state.current_player
        return BreakthroughState(
            game=self,
            board=jnp.where(legal, -board[::-1], state.board),
            current_player=jnp.where(legal, 1 - mover, mover),
            terminated=state.terminated | won,
            rewards=rewards_of_winner(won, mover),
        )

    def legal_action_mask(self, state: BreakthroughState) -> Bool[Array, "A"]:
        # Beyond the edge nobody can step, as if own pawns stood there.
        around = jnp.pad(state.board, ((1, 0), (1, 1)), constant_values=_OWN)
        left, straight, right = (around[:-1, side : side + self.columns] for side in range(3))
        can_step = jnp.stack([left != _OWN, straight == _EMPTY, right != _OWN], axis=-1)
        return ((state.board == _OWN)[..., None] & can_step).reshape(-1) & ~state.terminated

    def observe(self, state: BreakthroughState) -> Float32[Array, "rows columns 2"]:
        """The own pawns, and those of the other player, from the side of the player to move."""
        return jnp.stack([state.board == _OWN, state.board == _OTHER], axis=-1).astype(jnp.float32)

    def symmetries(self, state: BreakthroughState) -> tuple[BreakthroughState, Int32[Array, "2 A"]]:
        images = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), state)
        actions = np.arange(self.num_actions, dtype=np.int32)
        mirrored = actions.reshape(self.rows, self.columns, 3)[:, ::-1, ::-1].reshape(-1)
        boards = jnp.stack([state.board, state.board[:, ::-1]])
        return dataclasses.replace(images, board=boards), jnp.asarray(np.stack([actions, mirrored]))

    # Numbers: how many pawns each side has, the rank of the set of the own ones, that of the others among the squares
    # that are left, and the player to move.

    @property
    def _most_pawns(self) -> int:
        return self.pawn_rows * self.columns

    @functools.cached_property
    def _sizes(self) -> list[int]:
        """How many boards there are for each pair of numbers of pawns; the other side's number counts up first."""
        counts = range(self._most_pawns + 1)
        own_sets = [math.comb(self.num_squares, own) for own in counts]
        return [own_sets[own] * math.comb(self.num_squares - own, other) for own in counts for other in counts]

    @property
    def num_position_numbers(self) -> int:
        numbers = 2 * sum(self._sizes)
        return numbers if numbers <= MAX_POSITION_NUMBERS else 0

    def position_number(self, state: BreakthroughState) -> UInt32[Array, ""]:
        own, other = ((state.board == side).reshape(-1) for side in (_OWN, _OTHER))
        num_own, num_other = (jnp.sum(pawns, dtype=jnp.int32) for pawns in (own, other))
        most = self._most_pawns
        other_sets = self._sets(self.num_squares - num_own, num_other)
        rank = rank_of_subset(own, jnp.ones_like(own), most) * other_sets + rank_of_subset(other, ~own, most)
        first = jnp.asarray(self._firsts)[num_own * (most + 1) + num_other]
        return 2 * (first + rank) + state.current_player.astype(jnp.uint32)

    def from_position_number(self, number: UInt32[Array, ""]) -> BreakthroughState:
        most, firsts = self._most_pawns, jnp.asarray(self._firsts)
        group = jnp.searchsorted(firsts, number >> 1, side="right").astype(jnp.int32) - 1
        num_own, num_other = group // (most + 1), group % (most + 1)
        rank, other_sets = (number >> 1) - firsts[group], self._sets(self.num_squares - num_own, num_other)
        own = subset_of_rank(rank // other_sets, num_own, jnp.ones(self.num_squares, bool), most)
        other = subset_of_rank(rank % other_sets, num_other, ~own, most)
        board = jnp.where(own, _OWN, jnp.where(other, _OTHER, _EMPTY)).astype(jnp.int8)
        board = board.reshape(self.rows, self.columns)
        state = self._running(board, (number & 1).astype(jnp.int32))
        over = (num_own == 0) | (num_other == 0)
        return dataclasses.replace(state, terminated=over | jnp.any(board[-1] == _OTHER) | jnp.any(board[0] == _OWN))

    @functools.cached_property
    def _firsts(self) -> UInt32[np.ndarray, "pairs"]:
        """The number of the first board of each pair of numbers of pawns."""
        return np.cumsum([0, *self._sizes[:-1]]).astype(np.uint32)

    def _sets(self, squares: Int32[Array, ""], pawns: Int32[Array, ""]) -> UInt32[Array, ""]:
        """How many sets of this many squares there are."""
        return jnp.asarray(binomials(self.num_squares + 1, self._most_pawns))[squares, pawns]

    # Text.

    def to_text(self, state: BreakthroughState) -> str:
        rows = ["".join(_LETTERS[owner] for owner in row) for row in self.owners(state)]
        return f"{'/'.join(rows)} {self.piece_letters[int(state.current_player)]}"

    def from_text(self, text: str) -> BreakthroughState:
        board, _, mover = text.partition(" ")
        rows = board.split("/")
        if [len(row) for row in rows] != [self.columns] * self.rows or mover not in self.piece_letters:
            form = f"{self.rows} rows of {self.columns} squares with / between, and w or b to move"
            raise InputError(f"breakthrough: a position is {form}; got {text!r}")
        for index, letter in enumerate(board, start=1):
            if letter not in _LETTERS + "/":
                raise InputError(f"breakthrough: character {index} of {text!r} is {letter!r}; allowed: w, b and .")
        most = self.pawn_rows * self.columns
        for letter in self.piece_letters:
            if board.count(letter) > most:
                raise InputError(f"breakthrough: {text!r} has {board.count(letter)} pawns {letter}, at most {most}")
        player = self.piece_letters.index(mover)
        seen = self._seen(np.array([[_LETTERS.index(letter) for letter in row] for row in rows]), player)
        if _OWN in seen[0] or _OTHER not in seen:
            raise InputError(f"breakthrough: {text!r} is impossible: {mover} has won, and is to move")
        if (seen[-1] == _OTHER).sum() > 1:
            raise InputError(
                f"breakthrough: {text!r} is impossible: two pawns are in the last row, and one ends the game"
            )
        lost = bool(_OTHER in seen[-1] or _OWN not in seen)
        return dataclasses.replace(
            self._running(jnp.asarray(seen), jnp.int32(player)),
            terminated=jnp.bool_(lost),
            rewards=rewards_of_winner(jnp.bool_(lost), jnp.int32(1 - player)),
        )

    def action_to_text(self, state: BreakthroughState, action: int) -> str:
        columns = self.columns
        return "".join(
            square_name(self.rows, *divmod(square, columns)) for square in self.action_squares(state, action)
        )

    def draw(self, state: BreakthroughState) -> str:
        rows, width = self.to_text(state).split()[0].split("/"), len(str(self.rows))
        lines = [f"{self.rows - row:>{width}}  {' '.join(letters)}" for row, letters in enumerate(rows)]
        letters = " ".join(square_name(self.rows, 0, column)[0] for column in range(self.columns))
        return "\n".join([*lines, " " * (width + 2) + letters])

    def action_squares(self, state: BreakthroughState, action: int) -> tuple[int, ...]:
        return self.squares_of(int(action), int(state.current_player))

    def squares_of(self, action: int, player: int) -> tuple[int, int]:
        """The squares from and to which an action of `player` leads, from White's side."""
        start, end = (
            (row if player == 0 else self.rows - 1 - row) * self.columns + column
            for row, column in self._squares(action)
        )
        return start, end

    def owners(self, state: BreakthroughState) -> Int[np.ndarray, "rows columns"]:
        """The pawns from White's side: 0 empty, 1 white, 2 black."""
        return np.array(self.cells(state), int).reshape(self.rows, self.columns)

    def cells(self, state: BreakthroughState) -> Int32[Array, "squares"]:
        board = jnp.where(state.current_player == 0, state.board, -state.board[::-1])
        return jnp.where(board == _OTHER, 2, board).astype(jnp.int32).ravel()

    def squares_of_actions(self, state: BreakthroughState) -> Int32[Array, "A 2"]:
        places = self._squares(jnp.arange(self.num_actions, dtype=jnp.int32))
        squares = [
            jnp.where(state.current_player == 0, row, self.rows - 1 - row) * self.columns + column
            for row, column in places
        ]
        return jnp.stack(squares, axis=1)

    def _seen(self, owners: Int[np.ndarray, "rows columns"], player: int) -> Int8[np.ndarray, "rows columns"]:
        """The inverse of `owners`: the board as `player` sees it."""
        board = np.where(owners == 2, _OTHER, owners).astype(np.int8)
        return board if player == 0 else -board[::-1]

    def with_piece(self, state: BreakthroughState, square: int, piece: int) -> BreakthroughState:
        owners = self.owners(state)
        owners.flat[square] = piece
        board = jnp.asarray(self._seen(owners, int(state.current_player)))
        return dataclasses.replace(state, board=board, terminated=jnp.bool_(False))

    def with_mover(self, state: BreakthroughState, player: int) -> BreakthroughState:
        board = jnp.asarray(self._seen(self.owners(state), player))
        return dataclasses.replace(state, board=board, current_player=jnp.int32(player))

    def _squares(self, action: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """The (row, column) from and to which the player to move steps, in its own view."""
        square, side = action // 3, action % 3
        row, column = square // self.columns, square % self.columns
        return (row, column), (row - 1, column + side - 1)


@register("breakthrough")
def breakthrough(columns: int = 8, rows: int = 8) -> Breakthrough:
    """Breakthrough on `columns` by `rows` squares.

    Args:
      columns: of the board, 2 to 26.
      rows: of the board, 3 to 26.
    """
    return Breakthrough(columns, rows)
