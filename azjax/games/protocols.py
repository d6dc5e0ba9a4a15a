"""What a game may add to the contract: protocols, found by `isinstance` and never required, each with its law.

A game names the protocols that it fulfills as base classes and so inherits their defaults. `RepetitionGame` and
`NumberedGame` are array functions of one state, as in the contract; the others run on the host.

The functions below the protocols work for any game.
"""

import abc
import dataclasses
import functools
import string
from typing import Any, ClassVar, Literal, Protocol, TypeVar, cast, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32, PRNGKeyArray, UInt32

from azjax.core.errors import InputError
from azjax.core.pytree import replace_fields
from azjax.games.game import AnyGame, Game, S, State
from azjax.games.repetition import History

S_contra = TypeVar("S_contra", bound=State, contravariant=True)


@runtime_checkable
class TextGame(Protocol[S]):
    """A game whose positions and moves have a notation.

    Law: `to_text(from_text(text)) == text` for the text of every reachable position, `from_text` reads the `examples`
    and gives a state with the shapes and dtypes of `init`, and `action_from_text` reads the text of every legal move.
    """

    player_names: ClassVar[tuple[str, str]] = ("the first player", "the second player")
    """What people call player 0 and player 1."""

    piece_letters: ClassVar[tuple[str, str]] = ("", "")
    """The characters of `draw` that are pieces of player 0 and of player 1; the terminal colors them."""

    @abc.abstractmethod
    def to_text(self, state: S) -> str:
        """The position on one line."""

    @abc.abstractmethod
    def from_text(self, text: str) -> S:
        """The position written as `text`, with an empty history and the result that the board alone decides.

        Raises:
          InputError: malformed text, or pieces that no position has, such as too many of one side; the message says
            which character and why. Whether a line of play leads to the position need not be checked.
        """

    def draw(self, state: S) -> str:
        """The position drawn in characters, for terminals. The default is the one-line text."""
        return self.to_text(state)

    def action_to_text(self, state: S, action: int) -> str:
        """The move in the game's notation. The default is the action number."""
        return str(int(action))

    def action_number(self, action: int) -> str:
        """The plain number of the action, which `action_from_text` reads too."""
        return str(action)

    def how_to_play(self) -> str:
        """The rules for people, in a few sentences. The default is nothing."""
        return ""

    def examples(self) -> tuple[tuple[str, str], ...]:
        """Positions, as text, that show the rules, each with a sentence on what it shows. The default is none."""
        return ()

    def move_notation(self) -> str:
        """How moves are written, in a sentence without an example. The default is nothing."""
        return ""

    def ending(self, state: S) -> str:
        """How a finished game ended, in a few words. The default names whom the last ply paid."""
        result = int(np.sign(state.rewards[0]))
        return f"{self.player_names[0 if result > 0 else 1]} wins" if result else "a draw"


@runtime_checkable
class DrawableGame(Protocol[S_contra]):
    """A game that draws itself. `azjax.render` draws the games of the package, and has the parts of a picture
    (`draw_squares`, `azjax.render.drawing`). Law: the picture is well-formed XML.
    """

    @abc.abstractmethod
    def svg(
        self, state: S_contra, *, policy: Float[Array | np.ndarray, "A"] | None = None, last_action: int | None = None
    ) -> str:
        """The position as an SVG document without external references.

        Args:
          state: the position.
          policy: probabilities of the actions, shown on the board.
          last_action: the action that led to `state`, marked on the board.
        """


@runtime_checkable
class BoardGame(Protocol[S_contra]):
    """A game that people play by clicking squares of a board of `observation_shape[:2]` rows and columns.

    The page puts the squares on the picture of the game: it reads the size of the board in the attributes `data-rows`
    and `data-columns` of the document, and a square is 100 by 100 units, the first from (0, 0). `data-down`, if it is
    there, is how far right and down each row lies from the one above; `0 100` is a board of squares. The pictures of
    `azjax.render.draw_squares` and of `Sheet` have all of them.

    Law: squares are on the board, and no two legal actions have the same squares.
    """

    rows_from_top: ClassVar[bool] = False
    """The rows are numbered from the top and not, as in chess, from the bottom."""

    @abc.abstractmethod
    def action_squares(self, state: S_contra, action: int) -> tuple[int, ...]:
        """The squares (row-major) that a person clicks to play `action`, in order.

        An empty tuple for a pass or the like, for which the page has a button.
        """


@runtime_checkable
class EditableGame(Protocol[S]):
    """A game whose positions people set up piece by piece. Law: placing a piece twice is the same as once."""

    piece_names: ClassVar[tuple[str, ...]]
    """What a square may hold, by the indices that `with_piece` takes."""

    @abc.abstractmethod
    def with_piece(self, state: S, square: int, piece: int) -> S:
        """`state` with another piece (an index of `piece_names`) on a square (row-major).

        The result need not be a possible position: it can be drawn and written as text, and `from_text` tells whether
        it is possible.
        """

    def with_mover(self, state: S, player: int) -> S:
        """`state` with `player` to move, and the same pieces on all squares; `state` itself where these decide that.

        The default is for games whose states do not show the board from the side of the player to move.
        """
        return replace_fields(state, current_player=jnp.int32(player))


@runtime_checkable
class CellGame(BoardGame[S], EditableGame[S], Protocol[S]):
    """A game that says in arrays what stands on each square, so that a page without Python can draw and play it
    (`azjax play --export`). It is a `BoardGame` and an `EditableGame`.

    Law: `squares_of_actions` has the `action_squares` of every legal action, `with_piece` changes cells, and
    `with_mover` changes none, nor does its text.
    """

    @abc.abstractmethod
    def cells(self, state: S) -> Int32[Array, "squares"]:
        """What stands on each square (row-major), by any numbers; an array function."""

    def squares_of_actions(self, state: S) -> Int32[Array, "A clicks"]:
        """The `action_squares` of all actions, filled up with -1; an array function.

        The default is for games whose actions have the same squares in all positions.
        """
        actions = range(cast(AnyGame, self).num_actions)
        squares = [self.action_squares(state, action) for action in actions]
        clicks = max(map(len, squares))
        return jnp.array([[*own, *[-1] * (clicks - len(own))] for own in squares], jnp.int32)


MAX_POSITION_NUMBERS = 2**32


@runtime_checkable
class NumberedGame(Protocol[S]):
    """A game that numbers its positions densely, so that billions of them can be solved exactly.

    Law: `from_position_number(position_number(state))` is `state` for every reachable unfinished position.
    """

    @property
    @abc.abstractmethod
    def num_position_numbers(self) -> int:
        """Position numbers are 0..num_position_numbers-1, at most 2^32; 0 if these rules number no positions."""

    @abc.abstractmethod
    def position_number(self, state: S) -> UInt32[Array, ""]:
        """The number of a position; finished ones have numbers too, and no two positions share one."""

    @abc.abstractmethod
    def from_position_number(self, number: UInt32[Array, ""]) -> S:
        """The unfinished position of that number, with zero rewards.

        A number that no unfinished position has gives a terminated state.
        """


@runtime_checkable
class RepetitionGame(Protocol[S]):
    """A game in which a position that occurs again gets another result.

    The running game keeps its history; a search tree and the replay store positions without it.

    Law: `step` with history is `step` without it, followed by `repeated` if `earlier_positions` has the new key
    `repetitions - 1` times.
    """

    repetitions: int = 2
    """The occurrence of a position that gets another result, 2..4."""

    @abc.abstractmethod
    def without_history(self, state: S) -> S:
        """The position alone: `state` with an empty history, in which `step` finds no repetition."""

    @abc.abstractmethod
    def with_empty_history(self, state: S) -> S:
        """A position, with a history or without, as the first of a game."""

    @abc.abstractmethod
    def earlier_positions(self, state: S) -> History | None:
        """The positions of the game so far, `state` included; None if these rules ignore repetition."""

    @abc.abstractmethod
    def position_key(self, state: S) -> UInt32[Array, "2"]:
        """A hash that tells positions apart. The game states the odds of a collision."""

    @abc.abstractmethod
    def repeated(self, state: S) -> S:
        """What `state` becomes if this is occurrence number `repetitions` of its position."""

    @abc.abstractmethod
    def next_game(self, key: PRNGKeyArray, state: S) -> S:
        """The function `next_game` for this game, without a copy of the history."""

    @abc.abstractmethod
    def with_max_plies(self, max_plies: int) -> Game[S]:
        """The same game, drawn after at most `max_plies`, with a history of that capacity."""


@runtime_checkable
class ConfiguredGame(Protocol):
    """A game whose options are not its attributes. Law: `azjax.make(game.name, **game.options) == game`."""

    @property
    @abc.abstractmethod
    def options(self) -> dict[str, Any]:
        """The options of `azjax.make`, of types that JSON has."""


@dataclasses.dataclass(frozen=True)
class ActionGroup:
    """Actions that belong to places of one kind, equally many to each.

    Attributes:
      place: `square`, row-major on the board of `observation_shape[:2]`; `column`; `piece`, row-major among the ones of
        the observation's plane `piece_plane`; or the `board`, one place.
      planes: actions of a place, such as directions.
      num_pieces: how many pieces have actions; for `piece` alone.
      piece_plane: see `place`.
      actions: the action of each place and plane, at number of the place * `planes` + plane; empty for consecutive
        actions in that order, after those of the groups before.
    """

    place: Literal["square", "column", "piece", "board"]
    planes: int
    num_pieces: int = 0
    piece_plane: int = 0
    actions: tuple[int, ...] = dataclasses.field(default=(), repr=False)

    def num_actions(self, rows: int, columns: int) -> int:
        """How many actions the group has on a board."""
        places = {"square": rows * columns, "column": columns, "piece": self.num_pieces, "board": 1}
        return places[self.place] * self.planes


@runtime_checkable
class LaidOutGame(Protocol):
    """A game that says which place each action belongs to, so that a network can give its logit there.

    Law: the groups together have each of the `num_actions` actions once.
    """

    @property
    @abc.abstractmethod
    def action_layout(self) -> tuple[ActionGroup, ...]:
        """The groups of actions."""


def actions_in_groups(layout: tuple[ActionGroup, ...], rows: int, columns: int) -> list[int]:
    """The actions of all groups on a board, by group, place and plane."""
    actions: list[int] = []
    for group in layout:
        begin = len(actions)
        actions += group.actions or range(begin, begin + group.num_actions(rows, columns))
    return actions


def without_history(game: Game[S], state: S) -> S:
    """`state` without its history."""
    if not isinstance(game, RepetitionGame):
        return state
    alone: S = game.without_history(state)
    return alone


def with_empty_history(game: Game[S], state: S) -> S:
    """The position of `state` as the first of a game."""
    if not isinstance(game, RepetitionGame):
        return state
    first: S = game.with_empty_history(state)
    return first


def earlier_positions(game: Game[S], state: S) -> History | None:
    """The positions of the game so far, whose repetition has consequences; None if repetition has none."""
    return game.earlier_positions(state) if isinstance(game, RepetitionGame) else None


def next_game(game: Game[S], key: PRNGKeyArray, state: S) -> S:
    """`state` while it is running, and the start of another game after its end."""
    following: S
    if isinstance(game, RepetitionGame):
        following = game.next_game(key, state)
    else:
        following = jax.tree.map(lambda new, old: jnp.where(state.terminated, new, old), game.init(key), state)
    return following


def is_numbered(game: AnyGame) -> bool:
    """Whether the rules number the positions of `game`."""
    return isinstance(game, NumberedGame) and game.num_position_numbers > 0


def player_names(game: AnyGame) -> tuple[str, str]:
    """What people call player 0 and player 1."""
    return game.player_names if isinstance(game, TextGame) else TextGame.player_names


def examples_of(game: AnyGame) -> tuple[tuple[str, str], ...]:
    """Positions, as text, that show the rules, each with a sentence on what it shows."""
    return game.examples() if isinstance(game, TextGame) else ()


def rules_for_people(game: AnyGame) -> tuple[str, str]:
    """How the game is played, and how its moves are written; empty if the game does not tell."""
    return (game.how_to_play(), game.move_notation()) if isinstance(game, TextGame) else ("", "")


def legal_actions(game: Game[S], state: S) -> list[int]:
    """The legal actions of one state, ascending; on the host."""
    actions: list[int] = np.flatnonzero(_legal_action_mask(game, state)).tolist()
    return actions


@functools.partial(jax.jit, static_argnums=0)
def _legal_action_mask(game: Game[S], state: S) -> Bool[Array, "A"]:
    return game.legal_action_mask(state)


def action_to_text(game: Game[S], state: S, action: int) -> str:
    """The move in the game's notation, or the action number if the game has none."""
    return game.action_to_text(state, action) if isinstance(game, TextGame) else str(int(action))


def legal_texts(game: Game[S], state: S) -> list[str]:
    """The legal moves of `state` in the game's notation, ascending by action."""
    to_text = functools.partial(game.action_to_text, state) if isinstance(game, TextGame) else str
    return [to_text(action) for action in legal_actions(game, state)]


def action_from_text(game: Game[S], state: S, text: str) -> int:
    """The legal action written as `text`, in the game's notation or as a plain number.

    Raises:
      InputError: not a legal move of `state`.
    """
    wanted, notation = text.strip().lower(), game if isinstance(game, TextGame) else None
    for action in legal_actions(game, state):
        written = [str(action)]
        if notation is not None:
            written = [notation.action_number(action), notation.action_to_text(state, action).lower()]
        if wanted in written:
            return action
    raise InputError(f"{text!r} is not a legal move here; legal: {', '.join(legal_texts(game, state))}")


def square_name(rows: int, row: int, column: int, *, from_top: bool = False) -> str:
    """The square of a board: `row` counts from the top, and `a1` is bottom left, as in chess, or top left."""
    return f"{column_name(column)}{row + 1 if from_top else rows - row}"


def column_name(column: int) -> str:
    """The letter of a column; after `z` come `aa`, `ab`, ..., as in a spreadsheet."""
    before, last = divmod(column, len(string.ascii_lowercase))
    return (column_name(before - 1) if before else "") + string.ascii_lowercase[last]
