"""The contract of a game: what rules must give. What a game may add stands in `protocols.py`.

Rules are written for ONE state as pure array functions, and callers `jax.vmap` them, so there is one batching boundary
and none of it in the rules. Axis letters: `A` actions, `K` slots of the compact table of legal actions, `S` symmetries.
"""

import abc
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import chex
import jax
import jax.numpy as jnp

from azjax.core.bitboard import compact


@runtime_checkable
class State(Protocol):
    """A position: a frozen dataclass registered as a pytree, of small integer arrays and these fields.

    Attributes:
      current_player: int32 []; 0 or 1, the player to move. Player 0 moves first.
      terminated: bool []; the game is over.
      rewards: float32 [2]; by player, of the step just made. Zero-sum.
    """

    @property
    def current_player(self) -> chex.Array: ...
    @property
    def terminated(self) -> chex.Array: ...
    @property
    def rewards(self) -> chex.Array: ...


S = TypeVar("S", bound=State)


class Game(abc.ABC, Generic[S]):
    """Rules of a two-player, zero-sum, perfect-information game.

    Subclasses are frozen dataclasses, hashable by value: two equal games share one compilation.

    Laws (`azjax.games.check_game` tests them):
      * an illegal action, and any action after the end, leaves the position as it is with zero rewards;
      * `sum(rewards) == 0`, and nothing ever makes a NaN;
      * the valid slots of `legal_slots` are exactly the actions of `legal_action_mask`;
      * permute, then step = step, then permute (`symmetries`), of positions without their history.
    """

    name: str
    """The name under which `azjax.make` builds it."""

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
    def init(self, key: chex.PRNGKey) -> S:
        """The start position. `key` serves games that draw their start; others ignore it."""

    @abc.abstractmethod
    def step(self, state: S, action: chex.Array) -> S:
        """Plays `action` (int32 []) for the player to move and returns the next state."""

    @abc.abstractmethod
    def legal_action_mask(self, state: S) -> chex.Array:
        """bool [A]; all False after the end."""

    @abc.abstractmethod
    def observe(self, state: S) -> chex.Array:
        """float32 [*observation_shape], from the view of the player to move."""

    def legal_slots(self, state: S) -> tuple[chex.Array, chex.Array]:
        """The legal actions as a compact table, holes allowed. Where K == A, slot a is action a.

        The default compacts the mask. A game that can enumerate its moves overrides it.

        Returns:
          actions: int32 [K]; 0 in holes.
          valid: bool [K].
        """
        mask = self.legal_action_mask(state)
        slots = self.max_legal_actions
        if slots == self.num_actions:
            return jnp.arange(slots, dtype=jnp.int32), mask
        return compact(mask, slots)

    def sample_legal_action(self, state: S, bits: chex.Array) -> chex.Array:
        """int32 []; a legal action drawn uniformly by uint32 [] random `bits`; 0 after the end.

        The default gives the k-th legal slot an interval of the 2^32 draws. Intervals differ by at most one draw, so
        probabilities differ by less than 2^-32.
        """
        actions, valid = self.legal_slots(state)
        legal_so_far = jnp.cumsum(valid, dtype=jnp.int32)
        return actions[jnp.argmax(legal_so_far > scale_bits(bits, legal_so_far[-1]))]

    def symmetries(self, state: S) -> tuple[S, chex.Array]:
        """Equivalent states of a position without history, the first of them `state`. The default is identity alone.

        Returns:
          states: the same pytree with a leading axis S.
          permutation: int32 [S, A]; action a of `state` is action `permutation[s, a]` of `states[s]`.
        """
        states: S = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
        return states, jnp.arange(self.num_actions, dtype=jnp.int32)[None]


AnyGame: TypeAlias = Game[Any]
"""A game of any state."""


def random_legal_action(game: AnyGame, key: chex.PRNGKey, state: State) -> chex.Array:
    """int32 []; uniform over the legal actions of one state (0 after the end)."""
    return game.sample_legal_action(state, jax.random.bits(key))


def scale_bits(bits: chex.Array, limit: chex.Array) -> chex.Array:
    """int32 []: floor(bits * limit / 2^32), evenly in 0..limit-1, of uint32 bits and a limit below 2^16."""
    limit = limit.astype(jnp.uint32)
    low = (bits & jnp.uint32(0xFFFF)) * limit
    return ((bits >> 16) * limit + (low >> 16) >> 16).astype(jnp.int32)
