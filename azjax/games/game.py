"""The contract of a game: what rules must give. `protocols.py` has what a game may add.

Rules are pure array functions of ONE state. Callers `jax.vmap` them, so rules never see a batch. Axis letters: `A`
actions, `K` slots of the compact table of legal actions, `S` symmetries.
"""

import abc
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, UInt32

from azjax.core.bits import compact, scale_bits


@runtime_checkable
class State(Protocol):
    """A position: a frozen dataclass registered as a pytree, of small integer arrays and these fields.

    Attributes:
      current_player: 0 or 1, the player to move. Player 0 moves first.
      terminated: the game is over.
      rewards: of player 0 and player 1, for the step just made. Zero-sum.
    """

    @property
    def current_player(self) -> Int32[Array, "*B"]: ...
    @property
    def terminated(self) -> Bool[Array, "*B"]: ...
    @property
    def rewards(self) -> Float32[Array, "*B 2"]: ...


S = TypeVar("S", bound=State)


class Game(abc.ABC, Generic[S]):
    """Rules of a two-player, zero-sum, perfect-information game.

    Subclasses are frozen dataclasses, hashable by value: two equal games share one compilation.

    Laws (`azjax.games.check_game` tests them):
      * player 0 moves first, and a running game has a legal action;
      * a legal action changes the position, of which `current_player` is a part;
      * an illegal action, and any action after the end, leaves the position as it is with zero rewards;
      * rewards are in -1..1, and so are those of a whole game together, `sum(rewards) == 0`, and nothing ever makes a
        NaN;
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
    def init(self, key: PRNGKeyArray) -> S:
        """The start position. `key` is for games that draw their start; others ignore it."""

    @abc.abstractmethod
    def step(self, state: S, action: Int32[Array, ""]) -> S:
        """The state after `action` of the player to move."""

    @abc.abstractmethod
    def legal_action_mask(self, state: S) -> Bool[Array, "A"]:
        """Which actions are legal; none after the end."""

    @abc.abstractmethod
    def observe(self, state: S) -> Float32[Array, "..."]:
        """The input of a network, of `observation_shape`, from the view of the player to move."""

    def legal_slots(self, state: S) -> tuple[Int32[Array, "K"], Bool[Array, "K"]]:
        """The legal actions as a compact table, holes allowed. If K == A, slot a is action a.

        The default compacts the mask. A game that can enumerate its moves overrides it.

        Returns:
          actions: the action of each slot, any one in holes.
          valid: which slots hold an action.
        """
        mask = self.legal_action_mask(state)
        slots = self.max_legal_actions
        if slots == self.num_actions:
            return jnp.arange(slots, dtype=jnp.int32), mask
        return compact(mask, slots)

    def sample_legal_action(self, state: S, bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        """A legal action, drawn uniformly by random `bits`; 0 after the end.

        The default gives the k-th legal slot an interval of the 2^32 draws. Intervals differ by at most one draw, so
        probabilities differ by less than 2^-32.
        """
        actions, valid = self.legal_slots(state)
        legal_so_far = jnp.cumsum(valid, dtype=jnp.int32)
        return actions[jnp.argmax(legal_so_far > scale_bits(bits, legal_so_far[-1]))]

    def symmetries(self, state: S) -> tuple[S, Int32[Array, "S A"]]:
        """Equivalent states of a position without history, the first of them `state`. The default is `state` alone.

        Returns:
          states: the same pytree with a leading axis S.
          permutation: action a of `state` is action `permutation[s, a]` of `states[s]`.
        """
        states: S = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
        return states, jnp.arange(self.num_actions, dtype=jnp.int32)[None]


AnyGame: TypeAlias = Game[Any]
"""A game of any state."""


def random_legal_action(game: Game[S], key: PRNGKeyArray, state: S) -> Int32[Array, ""]:
    """A legal action of one state, drawn uniformly; 0 after the end."""
    return game.sample_legal_action(state, jax.random.bits(key, dtype=jnp.uint32))


def reward_of_mover(state: State, following: State) -> Float32[Array, "*B"]:
    """The reward of the step from `state` to `following`, for the player who made it.

    Both may be batched; `following` may have more axes behind those of `state`, such as one for the actions.
    """
    mover, rewards = state.current_player, following.rewards
    if mover.ndim < rewards.ndim - 1:
        mover = mover.reshape(*mover.shape, *[1] * (rewards.ndim - 1 - mover.ndim))
    return jnp.where(mover == 0, rewards[..., 0], rewards[..., 1])


def rewards_of_winner(won: Bool[Array, ""], winner: Int32[Array, ""]) -> Float32[Array, "2"]:
    """+1 for `winner` and -1 for the other player where the game is won; zero elsewhere."""
    sign = 1.0 - 2.0 * jnp.abs(jnp.arange(2) - winner).astype(jnp.float32)
    return jnp.where(won, sign, 0.0)
