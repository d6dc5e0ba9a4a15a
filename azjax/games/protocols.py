"""What a game may add to the contract. Each protocol is found by `isinstance` and never required.

A game names the protocols that it fulfils as base classes, and so inherits their defaults. Except for `RepetitionGame`
and `NumberedGame` these run on the host, on one state.
"""

import string
from typing import ClassVar, Protocol, runtime_checkable

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.errors import InputError
from azjax.games.game import Game, S
from azjax.games.repetition import History


@runtime_checkable
class TextGame(Protocol[S]):
    """A game whose positions and moves people write. Law: `to_text(from_text(text)) == text` for every position."""

    player_names: ClassVar[tuple[str, str]] = ("the first player", "the second player")
    """What people call player 0 and player 1."""

    piece_letters: ClassVar[tuple[str, str]] = ("", "")
    """The characters of `draw` that are pieces of player 0 and of player 1."""

    def to_text(self, state: S) -> str:
        """The position in the game's one-line notation."""
        ...

    def from_text(self, text: str) -> S:
        """The position written as `text`, with an empty history.

        Raises:
          ValueError: malformed or impossible text; the message says which character and why.
        """
        ...

    def draw(self, state: S) -> str:
        """The position drawn in characters, for terminals. The default is the one-line text."""
        return self.to_text(state)

    def action_to_text(self, state: S, action: int) -> str:
        """The move in the game's notation. The default is the action number."""
        return str(int(action))

    def action_number(self, action: int) -> str:
        """The action as a plain number that a prompt takes too."""
        return str(action)


@runtime_checkable
class DrawableGame(Protocol[S]):
    """A game that draws itself. `azjax.render` draws the games of the package."""

    def svg(self, state: S, *, policy: chex.Array | None = None, last_action: int | None = None) -> str:
        """The position as an SVG document without external references.

        Args:
          state: the position.
          policy: float [A]; probabilities of the actions, shown on the board; None to show none.
          last_action: the action that led to `state`, marked on the board; None to mark none.
        """
        ...


@runtime_checkable
class BoardGame(Protocol[S]):
    """A game that people play by clicking squares."""

    def action_squares(self, state: S, action: int) -> tuple[int, ...]:
        """The squares (row-major) that a person clicks to play `action`, in order."""
        ...


@runtime_checkable
class EditableGame(Protocol[S]):
    """A game whose positions people set up piece by piece."""

    piece_names: ClassVar[tuple[str, ...]]
    """What may stand on a square, by the indices that `with_piece` takes."""

    def with_piece(self, state: S, square: int, piece: int) -> S:
        """`state` with another piece (an index of `piece_names`) on a square (row-major), possible or not.

        The result can be drawn and written as text; `from_text` tells whether the position is possible.
        """
        ...


@runtime_checkable
class NumberedGame(Protocol[S]):
    """A game that numbers its positions densely, so that billions of them can be solved exactly."""

    @property
    def num_position_numbers(self) -> int:
        """Position numbers are 0..num_position_numbers-1, at most 2^32; 0 where these rules have no numbering."""
        ...

    def position_number(self, state: S) -> chex.Array:
        """uint32 []; different for different positions, finished ones too."""
        ...

    def from_position_number(self, number: chex.Array) -> S:
        """The unfinished position of that number, uint32 []; with zero rewards."""
        ...


@runtime_checkable
class RepetitionGame(Protocol[S]):
    """A game in which an earlier position may not come back.

    The running game keeps its history. A search tree and the replay store positions without it.
    """

    def without_history(self, state: S) -> S:
        """The position alone: the same state with an empty history, in which `step` finds no repetition."""
        ...

    def earlier_positions(self, state: S) -> History | None:
        """The positions of the game, `state` included, that may not come back; None where these rules allow all."""
        ...

    def position_key(self, state: S) -> chex.Array:
        """uint32 [2]; tells positions apart, with the odds of a collision that the game states."""
        ...

    def repeated(self, state: S) -> S:
        """What becomes of `state` when an earlier position of its game has its key."""
        ...

    def next_game(self, key: chex.PRNGKey, state: S) -> S:
        """See the function `next_game`. It writes only what changes of a long history."""
        ...

    def with_max_plies(self, max_plies: int) -> "RepetitionGame[S]":
        """The same game, which may end as a draw after so many plies and so keeps a shorter history."""
        ...


def without_history(game: Game[S], state: S) -> S:
    """`state` without its history, of any game."""
    return game.without_history(state) if isinstance(game, RepetitionGame) else state


def earlier_positions(game: Game[S], state: S) -> History | None:
    """The positions that may not come back in the game of `state`; None in a game where all may."""
    return game.earlier_positions(state) if isinstance(game, RepetitionGame) else None


def next_game(game: Game[S], key: chex.PRNGKey, state: S) -> S:
    """`state` while it goes on, and the start of another game after its end."""
    if isinstance(game, RepetitionGame):
        return game.next_game(key, state)
    following: S = jax.tree.map(lambda new, old: jnp.where(state.terminated, new, old), game.init(key), state)
    return following


def is_numbered(game: Game) -> bool:
    """Whether the rules number the positions of `game`."""
    return isinstance(game, NumberedGame) and game.num_position_numbers > 0


def player_names(game: Game) -> tuple[str, str]:
    """What people call player 0 and player 1, in any game."""
    return game.player_names if isinstance(game, TextGame) else TextGame.player_names


def legal_actions(game: Game[S], state: S) -> list[int]:
    """The legal actions of one state, ascending; on the host."""
    return np.flatnonzero(game.legal_action_mask(state)).tolist()


def action_to_text(game: Game[S], state: S, action: int) -> str:
    """The move in the game's notation, or the action number where it has none."""
    return game.action_to_text(state, action) if isinstance(game, TextGame) else str(int(action))


def legal_texts(game: Game[S], state: S) -> list[str]:
    """The legal moves of `state` in the game's notation, ascending by action."""
    return [action_to_text(game, state, action) for action in legal_actions(game, state)]


def action_from_text(game: Game[S], state: S, text: str) -> int:
    """The legal action written as `text`: the game's notation, or the plain action number.

    Raises:
      ValueError: not a legal move of `state`.
    """
    for action in legal_actions(game, state):
        number = game.action_number(action) if isinstance(game, TextGame) else str(action)
        if text.strip().lower() in (number, action_to_text(game, state, action).lower()):
            return action
    raise InputError(f"{text!r} is not a legal move here; legal: {', '.join(legal_texts(game, state))}")


def square_name(rows: int, row: int, column: int) -> str:
    """The square of a board in the notation of chess; rows are numbered from the top here, and `a1` is bottom left."""
    return f"{string.ascii_lowercase[column]}{rows - row}"
