"""Hexapawn: pawns move and capture as in chess; the first pawn on the last row wins, and who cannot move has lost.

A pawn steps straight onto an empty square, or captures diagonally (M. Gardner, Scientific American, March 1962). Pawns
begin on the first row of each side. On 3x3 squares the second player wins.

Players see the board from their own side: in a state, and in the actions, the pawns of the player to move go up.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.games import CellGame, DrawableGame, Game, TextGame, register
from azjax.games.protocols import square_name
from azjax.render import draw_squares

EMPTY, OWN, OTHER = 0, 1, -1
LETTERS = ".wb"  # an empty square, and the pawns of player 0 and of player 1


@pytree_dataclass
class HexapawnState:
    board: Int8[Array, "*B rows columns"]  # EMPTY, OWN or OTHER, seen by the player to move
    current_player: Int32[Array, "*B"]
    terminated: Bool[Array, "*B"]
    rewards: Float32[Array, "*B 2"]
    game: "Hexapawn" = static_field(kw_only=True, repr=False)  # so that notebooks draw a state


@dataclasses.dataclass(frozen=True)
class Hexapawn(
    Game[HexapawnState],
    TextGame[HexapawnState],
    DrawableGame[HexapawnState],
    CellGame[HexapawnState],
):
    columns: int = 3
    rows: int = 3

    name = "hexapawn"
    player_names = ("White", "Black")
    piece_letters = ("w", "b")
    piece_names = ("nothing", "white pawn", "black pawn")

    def __post_init__(self):
        for side in ("columns", "rows"):
            if not 3 <= getattr(self, side) <= 26:
                raise InputError(f"hexapawn: {side} must be 3..26, got {getattr(self, side)}")

    @property
    def num_actions(self):
        return 3 * self.rows * self.columns  # a square, and a step to the left, straight or to the right

    @property
    def max_legal_actions(self):
        return 3 * self.columns

    @property
    def max_plies(self):
        return 2 * self.columns * (self.rows - 2) + 1  # each pawn as far as before the last row, and the winning step

    @property
    def observation_shape(self):
        return (self.rows, self.columns, 2)

    def init(self, key):
        board = jnp.zeros((self.rows, self.columns), jnp.int8)
        board = board.at[0].set(OTHER).at[-1].set(OWN)
        return self._state(board, jnp.int32(0), jnp.bool_(False), jnp.zeros(2))

    def legal_action_mask(self, state):
        return self._moves(state.board) & ~state.terminated

    def _moves(self, board):
        # Beyond the edge nobody can step, as if own pawns stood there.
        around = jnp.pad(board, ((1, 0), (1, 1)), constant_values=OWN)
        left, straight, right = (around[:-1, side : side + self.columns] for side in range(3))
        can_step = jnp.stack([left == OTHER, straight == EMPTY, right == OTHER], axis=-1)
        return ((board == OWN)[..., None] & can_step).reshape(-1)

    def step(self, state, action):
        legal = (action >= 0) & (action < self.num_actions) & self.legal_action_mask(state)[action]
        (row, column), target = self._squares(action)
        board = -state.board.at[row, column].set(EMPTY).at[target].set(OWN)[::-1]  # as the other player sees it
        won = legal & ((row == 1) | ~jnp.any(self._moves(board)))
        mover = state.current_player
        reward = jnp.where(jnp.arange(2) == mover, 1.0, -1.0).astype(jnp.float32)
        return self._state(
            jnp.where(legal, board, state.board),
            jnp.where(legal, 1 - mover, mover),
            state.terminated | won,
            jnp.where(won, reward, 0.0),
        )

    def observe(self, state):
        return jnp.stack([state.board == OWN, state.board == OTHER], axis=-1).astype(jnp.float32)

    def symmetries(self, state):
        boards = jnp.stack([state.board, state.board[:, ::-1]])
        mirrored = jax.vmap(lambda board: dataclasses.replace(state, board=board))(boards)
        actions = jnp.arange(self.num_actions, dtype=jnp.int32)
        images = actions.reshape(self.rows, self.columns, 3)[:, ::-1, ::-1].reshape(-1)
        return mirrored, jnp.stack([actions, images])

    # Text: the rows from the top, and the player to move, such as "bbb/.../www w".

    def to_text(self, state):
        rows = ["".join(LETTERS[owner] for owner in row) for row in self.owners(state)]
        return f"{'/'.join(rows)} {self.piece_letters[int(state.current_player)]}"

    def from_text(self, text):
        board, _, mover = text.partition(" ")
        rows = board.split("/")
        if [len(row) for row in rows] != [self.columns] * self.rows or mover not in self.piece_letters:
            form = f"{self.rows} rows of {self.columns} squares, separated by /, and w or b to move"
            raise InputError(f"hexapawn: a position is {form}; got {text!r}")
        for letter in board.replace("/", ""):
            if letter not in LETTERS:
                raise InputError(f"hexapawn: a square is w, b or '.', got {letter!r} in {text!r}")
        for letter in self.piece_letters:
            if board.count(letter) > self.columns:
                raise InputError(f"hexapawn: {text!r} has more than {self.columns} pawns {letter}")
        player = self.piece_letters.index(mover)
        owners = np.array([[LETTERS.index(letter) for letter in row] for row in rows])
        seen = self._seen(owners, player)
        if OWN in seen[0]:
            raise InputError(f"hexapawn: {text!r} is impossible: {mover} has won, and is to move")
        lost = OTHER in seen[-1] or not self._moves(jnp.asarray(seen)).any()
        rewards = np.zeros(2, np.float32)
        if lost:
            rewards[player], rewards[1 - player] = -1, 1
        return self._state(jnp.asarray(seen), jnp.int32(player), jnp.bool_(lost), jnp.asarray(rewards))

    def action_to_text(self, state, action):
        (start, end), mover = self._squares(int(action)), int(state.current_player)
        return "".join(square_name(self.rows, self._row(row, mover), column) for row, column in (start, end))

    def draw(self, state):
        rows = self.to_text(state).split()[0].split("/")
        lines = [f"{self.rows - row:2}  {' '.join(letters)}" for row, letters in enumerate(rows)]
        return "\n".join([*lines, "    " + " ".join(square_name(0, 0, column)[0] for column in range(self.columns))])

    # The page: a picture, squares to click, pieces to place.

    def svg(self, state, *, policy=None, last_action=None):
        last = [] if last_action is None else self._squares(last_action)
        mover = 1 - int(state.current_player)  # of the last move
        squares = [(self._row(row, mover), column) for row, column in last]
        return draw_squares(self, state, self.owners(state), policy=policy, last_squares=squares)

    def action_squares(self, state, action):
        mover = int(state.current_player)
        return tuple(self._row(row, mover) * self.columns + column for row, column in self._squares(int(action)))

    def with_piece(self, state, square, piece):
        owners = self.owners(state)
        owners.flat[square] = piece
        board = jnp.asarray(self._seen(owners, int(state.current_player)))
        return dataclasses.replace(state, board=board, terminated=jnp.bool_(False))

    def with_mover(self, state, player):
        board = jnp.asarray(self._seen(self.owners(state), player))
        return dataclasses.replace(state, board=board, current_player=jnp.int32(player))

    def owners(self, state):
        """The pawns as people see the board, int [rows, columns]: 0 empty, 1 white, 2 black."""
        return np.array(self.cells(state), int).reshape(self.rows, self.columns)

    # The page without Python: the same in arrays.

    def cells(self, state):
        board = jnp.where(state.current_player == 0, state.board, -state.board[::-1])
        return jnp.where(board == OTHER, 2, board).astype(jnp.int32).ravel()

    def squares_of_actions(self, state):
        places = self._squares(jnp.arange(self.num_actions, dtype=jnp.int32))
        first = state.current_player == 0
        rows = [jnp.where(first, self._row(row, 0), self._row(row, 1)) for row, _ in places]
        return jnp.stack([row * self.columns + column for row, (_, column) in zip(rows, places, strict=True)], axis=1)

    def _seen(self, owners, player):
        """The inverse of `owners`: the board as `player` sees it."""
        board = np.where(owners == 2, OTHER, owners).astype(np.int8)
        return board if player == 0 else -board[::-1]

    def _row(self, row, player):
        """A row as `player` sees it, counted from White's view, or the inverse."""
        return row if player == 0 else self.rows - 1 - row

    def _squares(self, action):
        """The (row, column) from and to which the player to move steps, in its own view."""
        square, side = action // 3, action % 3
        row, column = square // self.columns, square % self.columns
        return (row, column), (row - 1, column + side - 1)

    def _state(self, board, current_player, terminated, rewards):
        return HexapawnState(board, current_player, terminated, rewards, game=self)


@register("hexapawn")
def hexapawn(columns: int = 3, rows: int = 3) -> Hexapawn:
    return Hexapawn(columns, rows)
