"""Players: what maps positions to the probabilities that it moves with.

Axis letters: `B` batch, `A` actions, `K` slots of the compact table of legal actions.
"""

import dataclasses
import functools
from typing import Any, NamedTuple, Protocol, runtime_checkable

import chex
import jax
import jax.numpy as jnp

from azjax.core.errors import InputError
from azjax.evaluation.solution import BestMoves, Solution
from azjax.games.game import Game
from azjax.networks import Network, Variables
from azjax.search import Evaluator, SearchResult, Tree, alphazero_policy, search_within, uct_policy
from azjax.search.tree_memory import by_game, by_node, empty_tree, follow

_CHUNK = 16  # simulations between two looks at the clock
_MAX_NODES = 1 << 14  # of a search for a time


class Judgement(NamedTuple):
    """What a player makes of B positions.

    Attributes:
      probabilities: float32 [B, A]; what it moves with; they sum to one over the legal actions, zero after the end.
      value: float32 [B]; its own estimate of the result for the side to move, in -1..1; NaN where it has none.
      preferences: float32 [B, A]; what it thinks of the actions before it chooses: the network's policy, or the
        search's share of visits. For people to look at; they sum as the probabilities do.
    """

    probabilities: chex.Array
    value: chex.Array
    preferences: chex.Array


@runtime_checkable
class Policy(Protocol):
    """A pure, jittable function of a batch, hashable by value: equal policies share one compilation."""

    def __call__(self, params: Any, key: chex.PRNGKey, states: Any) -> Judgement:
        """Judges positions.

        Args:
          params: the player's own.
          key: consumed by a policy that draws.
          states: every leaf [B, ...].
        """


@runtime_checkable
class RememberingPolicy(Policy, Protocol):
    """A policy that can keep something from move to move of a game: a memory, a pytree with every leaf [B, ...]."""

    def start(self, params: Any, states: Any) -> Any:
        """The memory before the first move of B games."""

    def think(self, params: Any, key: chex.PRNGKey, states: Any, memory: Any) -> tuple[Judgement, Any]:
        """Judges the positions that the games have come to; and the memory with what was thought."""

    def observe(self, memory: Any, action: chex.Array) -> Any:
        """The memory after `action` int32 [B], by whoever played it."""


@runtime_checkable
class SearchingPolicy(Policy, Protocol):
    """A policy that searches, and can show what it found."""

    def search(self, params: Any, key: chex.PRNGKey, states: Any, memory: Any = None) -> SearchResult:
        """The search that it judges the positions by; `memory` is that of a `RememberingPolicy`."""


@runtime_checkable
class TimedPolicy(Policy, Protocol):
    """A policy that can also search for a time, in a host loop."""

    def search_within(self, params: Any, key: chex.PRNGKey, states: Any, seconds: float) -> SearchResult:
        """Searches the positions anew, for so many seconds in place of its simulations.

        Args:
          params: the player's own.
          key: consumed by the search.
          states: every leaf [B, ...].
          seconds: above 0; see `azjax.search.search_within`.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class Player:
    """Somebody who plays.

    Attributes:
      name: for people.
      policy: how it moves (static under jit).
      params: what the policy reads: any pytree of arrays.
    """

    name: str
    policy: Policy
    params: Any = None


def act(player: Player, key: chex.PRNGKey, states: Any, memory: Any = None) -> tuple[chex.Array, Judgement, Any]:
    """Draws a move in each position, jitted.

    Args:
      player: whose move it is.
      key: consumed by the player and the draw.
      states: every leaf [B, ...].
      memory: of these games, of `start_memory` and `observe`; None to think of the positions alone.

    Returns:
      the moves, int32 [B] (0 after the end); the judgement that they are drawn from; and the memory with it.
    """
    return _act(player.policy, player.params, key, states, memory)


@functools.partial(jax.jit, static_argnums=0)
def _act(policy: Policy, params: Any, key: chex.PRNGKey, states: Any, memory: Any) -> tuple[chex.Array, Judgement, Any]:
    policy_key, action_key = jax.random.split(key)
    if memory is not None and isinstance(policy, RememberingPolicy):
        judgement, memory = policy.think(params, policy_key, states, memory)
    else:
        judgement = policy(params, policy_key, states)
    return draw(action_key, judgement.probabilities), judgement, memory


def search(player: Player, key: chex.PRNGKey, states: Any, memory: Any = None) -> SearchResult | None:
    """The search behind what `act` answers to the same arguments, jitted; None for a player that does not search."""
    if isinstance(player.policy, SearchingPolicy):
        return _search(player.policy, player.params, key, states, memory)
    return None


@functools.partial(jax.jit, static_argnums=0)
def _search(policy: SearchingPolicy, params: Any, key: chex.PRNGKey, states: Any, memory: Any) -> SearchResult:
    policy_key, _ = jax.random.split(key)
    return policy.search(params, policy_key, states, memory)


def start_memory(player: Player, states: Any) -> Any:
    """What the player remembers before the first move from `states` [B, ...]; None if it never does."""
    if isinstance(player.policy, RememberingPolicy):
        return _start(player.policy, player.params, states)
    return None


@functools.partial(jax.jit, static_argnums=0)
def _start(policy: RememberingPolicy, params: Any, states: Any) -> Any:
    return policy.start(params, states)


def observe(player: Player, memory: Any, action: chex.Array) -> Any:
    """The player's memory after `action` int32 [B], by whoever played it."""
    return None if memory is None else _observe(player.policy, memory, action)


@functools.partial(jax.jit, static_argnums=0)
def _observe(policy: RememberingPolicy, memory: Any, action: chex.Array) -> Any:
    return policy.observe(memory, action)


def draw(key: chex.PRNGKey, probabilities: chex.Array) -> chex.Array:
    """int32 [B]: an action by its probability [B, A], never one without any; 0 where none has any."""
    cumulative = jnp.cumsum(probabilities, axis=1)
    draw = jax.random.uniform(key, (len(probabilities), 1)) * cumulative[:, -1:]
    reached = (cumulative > draw) & (probabilities > 0)
    # Rounding can leave a draw beyond the last action; the likeliest one takes it.
    first, likeliest = jnp.argmax(reached, axis=1), jnp.argmax(probabilities, axis=1)
    return jnp.where(jnp.any(reached, axis=1), first, likeliest).astype(jnp.int32)


def judge(player: Player, key: chex.PRNGKey, states: Any) -> Judgement:
    """What the player makes of the positions, jitted."""
    return _judge(player.policy, player.params, key, states)


@functools.partial(jax.jit, static_argnums=0)
def _judge(policy: Policy, params: Any, key: chex.PRNGKey, states: Any) -> Judgement:
    return policy(params, key, states)


def random_player(game: Game) -> Player:
    """Moves uniformly at random; has no opinion on values."""
    return Player("random", _Random(game))


@dataclasses.dataclass(frozen=True)
class _Random:
    game: Game

    def __call__(self, params: Any, key: chex.PRNGKey, states: Any) -> Judgement:
        del params, key
        uniform = _uniform(jax.vmap(self.game.legal_action_mask)(states))
        return Judgement(uniform, jnp.full(states.terminated.shape, jnp.nan), uniform)


def optimal_player(solution: Solution) -> Player:
    """Moves uniformly among the best moves of a solved game and knows the exact values.

    In a position that the start does not lead to it moves at random, without a value.
    """
    return Player("optimal", _Optimal(solution.game), solution.best_moves())


@dataclasses.dataclass(frozen=True)
class _Optimal:
    game: Game

    def __call__(self, params: BestMoves, key: chex.PRNGKey, states: Any) -> Judgement:
        at_random, no_value, _ = _Random(self.game)(None, key, states)
        known, values, actions, best = params.best_moves(self.game, states)
        batch = jnp.arange(len(known))[:, None]
        of_best = jnp.zeros_like(at_random).at[batch, actions].add(_uniform(best))
        probabilities = jnp.where(known[:, None], of_best, at_random)
        return Judgement(probabilities, jnp.where(known, values, no_value), probabilities)


def network_player(game: Game, network: Network, variables: Variables, *, temperature: float = 0.0) -> Player:
    """The network alone, without search.

    Args:
      game: the game.
      network: see `azjax.networks`.
      variables: of the network.
      temperature: 0 takes the legal action with the largest prior (the lowest action on ties), 1 draws from the
        prior, infinity draws uniformly.

    Raises:
      ValueError: a negative temperature.
    """
    if not temperature >= 0:
        raise InputError(f"temperature must be 0 or more, got {temperature}")
    return Player("network", _Network(game, network, temperature), variables)


@dataclasses.dataclass(frozen=True)
class _Network:
    game: Game
    network: Network
    temperature: float

    def __call__(self, params: Any, key: chex.PRNGKey, states: Any) -> Judgement:
        del key
        prior_logits, value, _ = self.network.apply(params, jax.vmap(self.game.observe)(states), train=False)
        legal = jax.vmap(self.game.legal_action_mask)(states)
        policy = _softmax(prior_logits, legal)
        if self.temperature == 0:
            best = jnp.argmax(jnp.where(legal, prior_logits, -jnp.inf), axis=1)
            probabilities = jnp.where(legal, jax.nn.one_hot(best, self.game.num_actions), 0.0)
        else:
            probabilities = _softmax(prior_logits / self.temperature, legal)
        return Judgement(probabilities, value, policy)


def _softmax(logits: chex.Array, legal: chex.Array) -> chex.Array:
    """float32 [B, A]: over the legal actions, zero after the end."""
    return jnp.where(legal, jax.nn.softmax(jnp.where(legal, logits, -jnp.inf), axis=1), 0.0)


def search_player(
    game: Game,
    evaluator: Evaluator,
    params: Any = None,
    *,
    num_simulations: int,
    c_puct: float = 1.25,
    solver: bool = False,
    reuse_tree: bool = False,
    leaves_per_step: int = 1,
    name: str | None = None,
) -> Player:
    """Searches as AlphaZero does and plays the most visited move, without noise.

    Args:
      game: the game.
      evaluator: see `azjax.search.evaluators`.
      params: what the evaluator reads.
      num_simulations: of each search, at least 1; new ones where the tree is reused.
      c_puct: weight of exploration.
      solver: prove wins, losses and draws in the search.
      reuse_tree: go on in the tree below the moves that were played, where a whole game is (`RememberingPolicy`).
      leaves_per_step: see `azjax.search.alphazero_policy`.
      name: `search:SIMULATIONS` by default.
    """
    kind = _SearchOn if reuse_tree else _Search
    policy = kind(game, evaluator, num_simulations, c_puct, solver, leaves_per_step)
    return Player(f"search:{num_simulations}" if name is None else name, policy, params)


@dataclasses.dataclass(frozen=True)
class _Search:
    game: Game
    evaluator: Evaluator
    num_simulations: int
    c_puct: float
    solver: bool
    leaves_per_step: int

    def __call__(self, params: Any, key: chex.PRNGKey, states: Any) -> Judgement:
        return _found(self.game, states, self.search(params, key, states))

    def search(self, params: Any, key: chex.PRNGKey, states: Any, memory: Tree | None = None) -> SearchResult:
        return alphazero_policy(
            params,
            key,
            states,
            game=self.game,
            evaluator=self.evaluator,
            num_simulations=self.num_simulations,
            c_puct=self.c_puct,
            solver=self.solver,
            leaves_per_step=self.leaves_per_step,
            tree=None if memory is None else by_node(memory),
        )

    def search_within(self, params: Any, key: chex.PRNGKey, states: Any, seconds: float) -> SearchResult:
        return search_within(
            params,
            key,
            states,
            game=self.game,
            evaluator=self.evaluator,
            seconds=seconds,
            chunk=_CHUNK * self.leaves_per_step,
            max_nodes=_MAX_NODES,
            c_puct=self.c_puct,
            solver=self.solver,
            leaves_per_step=self.leaves_per_step,
        )


@dataclasses.dataclass(frozen=True)
class _SearchOn(_Search):
    """A search that goes on in the tree below the moves that were played: its memory."""

    def start(self, params: Any, states: Any) -> Tree:
        tree = empty_tree(
            self.game,
            self.evaluator,
            params,
            states,
            num_simulations=self.num_simulations,
            leaves_per_step=self.leaves_per_step,
            solver=self.solver,
        )
        return by_game(tree)

    def think(self, params: Any, key: chex.PRNGKey, states: Any, memory: Tree) -> tuple[Judgement, Tree]:
        result = self.search(params, key, states, memory)
        return _found(self.game, states, result), by_game(dataclasses.replace(result.tree, histories=None))

    def observe(self, memory: Tree, action: chex.Array) -> Tree:
        return by_game(follow(by_node(memory), action, self.num_simulations))


def uct_player(game: Game, *, num_simulations: int, solver: bool = False, name: str | None = None) -> Player:
    """Searches with random rollouts, without priors, and plays the move of the highest mean return.

    Args:
      game: the game.
      num_simulations: of each search, at least 1.
      solver: prove wins, losses and draws in the search.
      name: `uct:SIMULATIONS` by default.
    """
    return Player(f"uct:{num_simulations}" if name is None else name, _Uct(game, num_simulations, solver))


@dataclasses.dataclass(frozen=True)
class _Uct:
    game: Game
    num_simulations: int
    solver: bool

    def __call__(self, params: Any, key: chex.PRNGKey, states: Any) -> Judgement:
        return _found(self.game, states, self.search(params, key, states))

    def search(self, params: Any, key: chex.PRNGKey, states: Any, memory: None = None) -> SearchResult:
        del memory
        return uct_policy(params, key, states, game=self.game, num_simulations=self.num_simulations, solver=self.solver)


def with_simulations(player: Player, num_simulations: int) -> Player:
    """The same player, by name too, with another number of simulations.

    Raises:
      ValueError: it does not search, or `num_simulations` is below 1.
    """
    if not isinstance(player.policy, _Search | _Uct):
        raise InputError(f"{player.name} does not search")
    if num_simulations < 1:
        raise InputError(f"num_simulations must be at least 1, got {num_simulations}")
    policy = dataclasses.replace(player.policy, num_simulations=num_simulations)
    return dataclasses.replace(player, policy=policy)


def _found(game: Game, states: Any, result: SearchResult) -> Judgement:
    """What a player makes of a search, whose action it plays."""
    played = jax.nn.one_hot(result.action, game.num_actions)
    return Judgement(jnp.where(states.terminated[:, None], 0.0, played), result.value, result.policy)


def _uniform(mask: chex.Array) -> chex.Array:
    """float32 [B, A]: equal weights on the actions of bool [B, A]; zero where there are none."""
    return mask / jnp.maximum(jnp.sum(mask, axis=1, keepdims=True), 1).astype(jnp.float32)
