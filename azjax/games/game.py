"""The contract that every game fulfils, and the registry behind `azjax.make`.

Rules are written for ONE state as pure array functions; callers `jax.vmap` them, so there is one batching
boundary and none of it in the rules. Axis letters: `A` actions, `K` slots of the compact table of legal
actions, `S` symmetries.
"""

import abc
import dataclasses
import difflib
import functools
import html
import importlib
import inspect
import pkgutil
import string
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar, dataclass_transform

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.bitboard import compact
from azjax.games.repetition import History


class State(Protocol):
    """A position: a frozen dataclass registered as a pytree, of small integer arrays and these fields.

    Attributes:
      current_player: int32 []; 0 or 1, the player to move. Player 0 moves first.
      terminated: bool []; the game is over.
      rewards: float32 [2]; by player, of the step just made. Zero-sum.
    """

    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def state_dataclass(cls: type[_T]) -> type[_T]:
    """Makes `cls` a frozen dataclass and registers it as a pytree, every field a leaf but those marked as static."""
    frozen = dataclasses.dataclass(frozen=True)(cls)
    jax.tree_util.register_dataclass(frozen)
    return frozen


_MOST_SHOWN = 6  # positions of a batch


@dataclasses.dataclass(frozen=True)
class ShownState:
    """Base of states that a notebook shows as pictures: one state as its own, a batch by the first of its states.

    Where there is nothing to draw, as in a state that is traced, the notebook shows the dataclass.

    Attributes:
      game: whose position it is (static): states of different games are pytrees of different structures.
    """

    game: "Game" = dataclasses.field(kw_only=True, repr=False, metadata={"static": True})

    def _repr_svg_(self) -> str | None:
        return self.game.svg(self) if self._batch_shape() == () else None

    def _repr_html_(self) -> str | None:
        shape = self._batch_shape()
        if shape is None or len(shape) != 1:
            return None
        shown = min(shape[0], _MOST_SHOWN)
        pictures = (self.game.svg(jax.tree.map(lambda leaf: leaf[row], self)) for row in range(shown))
        boards = "".join(f'<div style="flex:0 1 15rem">{fitted(picture)}</div>' for picture in pictures)
        told = f"{shown} of {shape[0]:,} positions of {html.escape(self.game.name)}"
        return f'<div>{told}</div><div style="display:flex;flex-wrap:wrap;gap:.6rem">{boards}</div>'

    def _batch_shape(self) -> tuple[int, ...] | None:
        """The leading axes of every leaf; None of what is no position: a traced state, shapes alone, a mean."""
        terminated: Any = getattr(self, "terminated", None)
        is_position = is_held(self) and terminated is not None and np.issubdtype(terminated.dtype, bool)
        return terminated.shape if is_position else None


def is_held(tree: Any) -> bool:
    """Whether all leaves of a pytree are arrays that can be looked at: not traced, not deleted, not shapes alone."""
    return all(
        isinstance(leaf, np.ndarray | np.generic)
        or (isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and not leaf.is_deleted())
        for leaf in jax.tree.leaves(tree)
    )


def fitted(picture: str) -> str:
    """An SVG document for a page: as wide as it asks for, or as what it stands in where that is narrower."""
    return picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)


class Game(abc.ABC):
    """Rules of a two-player, zero-sum, perfect-information game.

    Subclasses are frozen dataclasses, hashable by value: two equal games share one compilation.

    Laws (`azjax.games.check_game` tests them):
      * an illegal action, and any action after the end, leaves the position as it is with zero rewards;
      * `sum(rewards) == 0`, and nothing ever makes a NaN;
      * the valid slots of `legal_slots` are exactly the actions of `legal_action_mask`;
      * permute, then step = step, then permute (`symmetries`), of positions without their history;
      * `to_text(from_text(text)) == text` for the text of every reachable position.
    """

    name: str
    """The name under which `make` builds it."""

    player_names: ClassVar[tuple[str, str]] = ("the first player", "the second player")
    """What people call player 0 and player 1."""

    piece_letters: ClassVar[tuple[str, str]] = ("", "")
    """The characters of `draw` that are pieces of player 0 and of player 1; empty where none are told."""

    @property
    def options(self) -> dict[str, Any]:
        """The options that make the game again: `make(game.name, **game.options) == game`; JSON can hold them."""
        return {option: getattr(self, option) for option in inspect.signature(factory(self.name)).parameters}

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """A: actions are the integers 0..A-1."""

    @property
    @abc.abstractmethod
    def max_legal_actions(self) -> int:
        """K: a proven upper bound of the number of legal actions in one position, at most A."""

    @property
    @abc.abstractmethod
    def max_plies(self) -> int:
        """A proven upper bound of the length of a game in plies."""

    @property
    @abc.abstractmethod
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation; boards are `(rows, columns, planes)`."""

    @abc.abstractmethod
    def init(self, key: chex.PRNGKey) -> Any:
        """The start position. `key` serves games that draw their start; others ignore it."""

    @abc.abstractmethod
    def step(self, state: Any, action: chex.Array) -> Any:
        """Plays `action` (int32 []) for the player to move and returns the next state."""

    @abc.abstractmethod
    def legal_action_mask(self, state: Any) -> chex.Array:
        """bool [A]; all False after the end."""

    @abc.abstractmethod
    def observe(self, state: Any) -> chex.Array:
        """float32 [*observation_shape], seen by the player to move."""

    def legal_slots(self, state: Any) -> tuple[chex.Array, chex.Array]:
        """The legal actions as a compact table, holes allowed.

        Where K == A, slot a is action a. A game that can enumerate its moves overrides this default, which
        compacts the mask.

        Returns:
          actions: int32 [K]; 0 in holes.
          valid: bool [K].
        """
        mask = self.legal_action_mask(state)
        slots = self.max_legal_actions
        if slots == self.num_actions:
            return jnp.arange(slots, dtype=jnp.int32), mask
        return compact(mask, slots)

    def sample_legal_action(self, state: Any, bits: chex.Array) -> chex.Array:
        """int32 []; one of the legal actions, each as likely as the others, drawn by uint32 [] of random bits.

        The k-th legal slot stands for an interval of the 2^32 draws; intervals differ by at most one draw, so that
        probabilities differ by less than 2^-32. After the end the answer is 0.
        """
        actions, valid = self.legal_slots(state)
        legal_so_far = jnp.cumsum(valid, dtype=jnp.int32)
        return actions[jnp.argmax(legal_so_far > scale_bits(bits, legal_so_far[-1]))]

    def next_game(self, key: chex.PRNGKey, state: Any) -> Any:
        """`state` while it goes on, and the start of another game after its end.

        A game with a long history overrides this default to write only what changes.
        """
        return jax.tree.map(lambda new, old: jnp.where(state.terminated, new, old), self.init(key), state)

    # A game where an earlier position may not come back keeps its history in the running game, and overrides these.
    # A search tree and the replay store positions without it.

    def without_history(self, state: Any) -> Any:
        """The position alone: the same state with room for no history, in which `step` finds no repetition."""
        return state

    def earlier_positions(self, state: Any) -> History | None:
        """The positions of the game, with `state`, that may not come back; None in a game where all may."""
        del state
        return None

    def position_key(self, state: Any) -> chex.Array:
        """uint32 [2]; tells positions apart, with the odds of a collision that the game states."""
        raise NotImplementedError(f"{self.name} has no repetition")

    def repeated(self, state: Any) -> Any:
        """What becomes of `state`, when an earlier position of its game has its key."""
        raise NotImplementedError(f"{self.name} has no repetition")

    def cut(self, max_plies: int) -> "Game":
        """The same game, which may end as a draw after so many plies, so that it keeps a shorter history."""
        del max_plies
        return self

    def symmetries(self, state: Any) -> tuple[Any, chex.Array]:
        """Equivalent states, the first of them `state` itself. Identity alone is the default.

        Asked of positions without history (`without_history`).

        Returns:
          states: the same pytree with a leading axis S.
          permutation: int32 [S, A]; action a of `state` is action `permutation[s, a]` of `states[s]`.
        """
        return (
            jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state),
            jnp.arange(self.num_actions, dtype=jnp.int32)[None],
        )

    # Text, for people. These run on the host, on one state.

    def to_text(self, state: Any) -> str:
        """The position in the game's one-line notation."""
        raise NotImplementedError(f"{self.name} has no text notation")

    def from_text(self, text: str) -> Any:
        """The position written as `text`, with an empty history.

        Raises:
          ValueError: malformed or impossible text; the message says which character and why.
        """
        raise NotImplementedError(f"{self.name} has no text notation")

    def action_to_text(self, state: Any, action: int) -> str:
        """The move in the game's notation; the plain action number is the default."""
        del state
        return str(int(action))

    def action_number(self, action: int) -> str:
        """The action as a plain number, which a prompt takes too."""
        return str(action)

    def action_from_text(self, state: Any, text: str) -> int:
        """The legal action written as `text`: the game's notation, or the plain action number.

        Raises:
          ValueError: not a legal move of `state`.
        """
        for action in self._legal_actions(state):
            if text.strip().lower() in (self.action_number(action), self.action_to_text(state, action).lower()):
                return action
        raise ValueError(f"{text!r} is not a legal move here; legal: {', '.join(self.legal_texts(state))}")

    def legal_texts(self, state: Any) -> list[str]:
        """The legal moves of `state` in the game's notation, ascending by action."""
        return [self.action_to_text(state, action) for action in self._legal_actions(state)]

    def _legal_actions(self, state: Any) -> list[int]:
        return np.flatnonzero(self.legal_action_mask(state)).tolist()

    def draw(self, state: Any) -> str:
        """The position drawn in characters, for terminals. The one-line text is the default."""
        return self.to_text(state)

    def action_squares(self, state: Any, action: int) -> tuple[int, ...]:
        """The squares (row-major) that a person clicks to play `action`, in order."""
        del state
        return (int(action),)

    piece_names: ClassVar[tuple[str, ...]] = ()
    """What people put on a square to set up a position, by the numbers of `with_piece`; empty where they cannot."""

    def with_piece(self, state: Any, square: int, piece: int) -> Any:
        """`state` with another piece (an index of `piece_names`) on a square (row-major), possible or not.

        It can be drawn and written as text; `from_text` tells whether the position can be.
        """
        raise NotImplementedError(f"{self.name} has no pieces to place")

    def svg(self, state: Any, *, policy: Any = None, last_action: int | None = None) -> str:
        """The position as an SVG picture, a complete document without external references.

        Args:
          state: the position.
          policy: float [A]; probabilities of the actions, shown on the board; None to show none.
          last_action: the action that led to `state`, marked on the board; None to mark none.
        """
        raise NotImplementedError(f"{self.name} has no picture")

    # Exact solving. A game whose positions can be numbered densely may be solved up to billions of them.

    num_position_numbers: int = 0
    """Position numbers are 0..num_position_numbers-1, at most 2^32; 0 where the game does not number its positions."""

    def position_number(self, state: Any) -> chex.Array:
        """uint32 []; different for different positions, finished ones too."""
        raise NotImplementedError(f"{self.name} does not number its positions")

    def from_position_number(self, number: chex.Array) -> Any:
        """The unfinished position of that number, uint32 []; with zero rewards."""
        raise NotImplementedError(f"{self.name} does not number its positions")


def random_legal_action(game: Game, key: chex.PRNGKey, state: Any) -> chex.Array:
    """int32 []; uniform over the legal actions of one state (0 after the end)."""
    return game.sample_legal_action(state, jax.random.bits(key))


def square_name(rows: int, row: int, column: int) -> str:
    """The square of a board in the notation of chess; rows are numbered from the top here, and `a1` is bottom left."""
    return f"{string.ascii_lowercase[column]}{rows - row}"


def scale_bits(bits: chex.Array, limit: chex.Array) -> chex.Array:
    """int32 []: floor(bits * limit / 2^32), evenly in 0..limit-1, of uint32 bits and a limit below 2^16."""
    limit = limit.astype(jnp.uint32)
    low = (bits & jnp.uint32(0xFFFF)) * limit
    return ((bits >> 16) * limit + (low >> 16) >> 16).astype(jnp.int32)


_FACTORIES: dict[str, Callable[..., Game]] = {}
_Factory = TypeVar("_Factory", bound=Callable[..., Game])


def register(name: str) -> Callable[[_Factory], _Factory]:
    """Decorator: `azjax.make(name, **options)` calls the decorated function with the options.

    A name that ends in a colon stands for a family: `make("pgx:hex")` calls the function of `"pgx:"` with `"hex"`.
    """

    def add(factory: _Factory) -> _Factory:
        _FACTORIES[name] = factory
        return factory

    return add


@functools.cache
def _import_games() -> None:
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{__package__}.{module.name}")


def available() -> list[str]:
    """Names of all registered games, without those of families."""
    _import_games()
    return sorted(name for name in _FACTORIES if not name.endswith(":"))


def factory(name: str) -> Callable[..., Game]:
    """The function that builds the game `name`; its keyword arguments are the game's options.

    Raises:
      ValueError: no game has that name.
    """
    games = available()
    if name in games:
        return _FACTORIES[name]
    family, colon, member = name.partition(":")
    if colon and family + colon in _FACTORIES:
        return functools.partial(_FACTORIES[family + colon], member)
    close = difflib.get_close_matches(name, games, 1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    families = sorted(f"{name}NAME" for name in _FACTORIES if name.endswith(":"))
    raise ValueError(f"unknown game {name!r}{hint}; available: {', '.join(games + families)}")


def make(name: str, **options: Any) -> Game:
    """Builds a game: `make("tictactoe")`, `make("mnk", columns=15, rows=15, in_a_row=5)`, `make("pgx:go_9x9")`.

    Raises:
      ValueError: unknown name or option, or an option out of its range; the message lists what is allowed.
    """
    build = factory(name)
    known = list(inspect.signature(build).parameters)
    for option in options:
        if option not in known:
            raise ValueError(f"{name} has no option {option!r}; its options: {', '.join(known) or 'none'}")
    return build(**options)
