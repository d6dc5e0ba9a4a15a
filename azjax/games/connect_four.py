"""Connect Four: an m,n,k game with gravity, 7 columns, 6 rows, four in a row.

An action is a column, 0 to 6 from the left; the stone falls onto the others. Text: six rows from the top, `/`
between, `X` player 0, `O` player 1, `_` empty. Moves are written as the column 1 to 7, and a string of them from the
start, such as `4453` (the notation of the published solvers and test sets), is read as a position too.
"""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.game import register
from azjax.games.mnk import Mnk, MnkState


@dataclasses.dataclass(frozen=True)
class ConnectFour(Mnk):
    """The rules; the board and its lines are those of `Mnk`."""

    @property
    def num_actions(self) -> int:
        return self.columns

    def step(self, state: MnkState, action: chex.Array) -> MnkState:
        action = jnp.asarray(action, jnp.int32)
        stones = jnp.sum(self._occupied(state), axis=0, dtype=jnp.int32)
        in_range = (action >= 0) & (action < self.columns)
        row = self.rows - 1 - jnp.sum(jnp.where(jnp.arange(self.columns) == action, stones, 0))
        return self._place(state, jnp.where(in_range & (row >= 0), row * self.columns + action, -1))

    def legal_action_mask(self, state: MnkState) -> chex.Array:
        return ~self._occupied(state)[0] & ~state.terminated

    def symmetries(self, state: MnkState) -> tuple[MnkState, chex.Array]:
        cells = self._unpack(state.stones).reshape(2, self.rows, self.columns)
        mirrored = self._pack(cells[..., ::-1].reshape(2, self.num_cells))
        images = (state, dataclasses.replace(state, stones=mirrored))
        columns = jnp.arange(self.columns, dtype=jnp.int32)
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *images), jnp.stack([columns, columns[::-1]])

    def _occupied(self, state: MnkState) -> chex.Array:
        """bool [rows, columns]."""
        return self._unpack(state.stones[0] | state.stones[1]).reshape(self.rows, self.columns)

    # Text.

    def to_text(self, state: MnkState) -> str:
        text = super().to_text(state)
        return "/".join(text[start : start + self.columns] for start in range(0, self.num_cells, self.columns))

    def from_text(self, text: str) -> MnkState:
        if text.isascii() and text.isdigit():
            return self._after_moves(text)
        rows = text.split("/")
        if [len(row) for row in rows] != [self.columns] * self.rows:
            shape = f"{self.rows} rows of {self.columns} characters with / between, or a string of columns such as 4453"
            raise ValueError(f"{self.name}: a position has {shape}, got {text!r}")
        for lower, row in enumerate(rows[1:], start=1):
            for column, (above, symbol) in enumerate(zip(rows[lower - 1], row, strict=True)):
                if symbol == "_" and above != "_":
                    raise ValueError(
                        f"{self.name}: the {above} in column {column + 1} of row {lower} of {text!r} stands on nothing"
                    )
        return super().from_text("".join(rows))

    def _uncovered(self, text: str) -> np.ndarray:
        occupied = super()._uncovered(text)
        above = np.concatenate([np.zeros(self.columns, bool), occupied[: -self.columns]])
        return occupied & ~above

    def _after_moves(self, moves: str) -> MnkState:
        state = self.init(jax.random.key(0))
        for place, move in enumerate(moves, start=1):
            column = int(move) - self.first_cell
            if not (0 <= column < self.columns and self.legal_action_mask(state)[column]):
                over = "the game is over" if state.terminated else f"no stone can go into column {move}"
                raise ValueError(f"{self.name}: character {place} of {moves!r}: {over}")
            state = self.step(state, jnp.int32(column))
        return dataclasses.replace(state, rewards=jnp.where(state.terminated, state.rewards, 0.0))

    def action_to_text(self, state: MnkState, action: int) -> str:
        del state
        return self.action_number(int(action))

    def action_squares(self, state: MnkState, action: int) -> tuple[int, ...]:
        height = int(np.asarray(self._occupied(state))[:, action].sum())
        return ((self.rows - 1 - height) * self.columns + int(action),)

    def draw(self, state: MnkState) -> str:
        rows = self.to_text(state).replace("_", ".").split("/")
        numbers = [self.action_number(column) for column in range(self.columns)]
        return "\n".join([*(" ".join(row) for row in rows), " ".join(numbers)])


@register("connect_four")
def connect_four() -> ConnectFour:
    """Four in a row on 7x6 with gravity."""
    return ConnectFour(7, 6, 4, name="connect_four", first_cell=1)
