"""The players of the package: random, optimal, the network alone, and searches; those without parameters by name.

Axis letters: `B` batch, `A` actions.
"""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, PyTree

from azjax.core.errors import InputError
from azjax.core.pytree import replace_fields
from azjax.core.text import whole_number
from azjax.evaluation.players import MoveChoice, Player
from azjax.evaluation.retrograde import EndingSolution
from azjax.evaluation.solution import BestMoves, Solution
from azjax.evaluation.solver import solve
from azjax.games.game import AnyGame, Game, State
from azjax.networks import Network, Variables, summarize
from azjax.search import (
    AlphaZero,
    Evaluator,
    SearchHyper,
    SearchPolicy,
    SearchResult,
    Tree,
    Uct,
    evaluators,
    search_within,
)
from azjax.search.policy import check_num_simulations
from azjax.search.reuse import by_game, by_node, follow

_CHUNK = 16  # simulations between two looks at the clock
_MAX_NODES = 1 << 14  # of a search for a time
_MOST_LEAVES = 16  # evaluated at once

_EVALUATORS: dict[str, Callable[[AnyGame], Evaluator]] = {
    "uniform": evaluators.uniform,
    "rollout": evaluators.rollout,
    "random": evaluators.random,
}
_SEARCHES = ("uct", *_EVALUATORS)
PLAYER_NAMES = ("random", "optimal", *(f"{name}:SIMULATIONS" for name in _SEARCHES))
"""The forms of the names that `named_player` takes."""


def random_player(game: AnyGame) -> Player:
    """Moves uniformly at random; it has no value estimates."""
    return Player("random", _Random(game))


@dataclasses.dataclass(frozen=True)
class _Random:
    game: AnyGame

    def __call__(self, params: PyTree, key: PRNGKeyArray, states: State) -> MoveChoice:
        del params, key
        uniform = _uniform(jax.vmap(self.game.legal_action_mask)(states))
        return MoveChoice(uniform, jnp.full(states.terminated.shape, jnp.nan), uniform)


def optimal_player(solution: Solution | EndingSolution) -> Player:
    """Moves uniformly among the best moves of a solved game or of solved endings, with exact values.

    In other positions it moves at random, without a value.
    """
    return Player("optimal", _Optimal(solution.game), solution.best_moves())


@dataclasses.dataclass(frozen=True)
class _Optimal:
    game: AnyGame

    def __call__(self, params: BestMoves, key: PRNGKeyArray, states: State) -> MoveChoice:
        at_random, no_value, _ = _Random(self.game)(None, key, states)
        known, values, actions, best = params.best_moves(self.game, states)
        batch = jnp.arange(len(known))[:, None]
        among_best = jnp.zeros_like(at_random).at[batch, actions].add(_uniform(best))
        probabilities = jnp.where(known[:, None], among_best, at_random)
        return MoveChoice(probabilities, jnp.where(known, values, no_value), probabilities)


def network_player(game: AnyGame, network: Network, variables: Variables, *, temperature: float = 0.0) -> Player:
    """The network alone, without search.

    Args:
      game: the game.
      network: see `azjax.networks`.
      variables: of the network.
      temperature: 0 takes the legal action with the largest prior (the lowest action on ties), 1 draws from the
        prior, infinity draws uniformly.

    Raises:
      InputError: a negative temperature.
    """
    if not temperature >= 0:
        raise InputError(f"temperature must be 0 or more, got {temperature}")
    return Player("network", _Network(game, network, temperature), variables)


@dataclasses.dataclass(frozen=True)
class _Network:
    game: AnyGame
    network: Network
    temperature: float

    def __call__(self, params: PyTree, key: PRNGKeyArray, states: State) -> MoveChoice:
        del key
        output, _ = self.network.apply(params, jax.vmap(self.game.observe)(states), train=False)
        legal = jax.vmap(self.game.legal_action_mask)(states)
        policy = _softmax(output.prior_logits, legal)
        if self.temperature == 0:
            best = jnp.argmax(jnp.where(legal, output.prior_logits, -jnp.inf), axis=1)
            probabilities = jnp.where(legal, jax.nn.one_hot(best, self.game.num_actions), 0.0)
        else:
            probabilities = _softmax(output.prior_logits / self.temperature, legal)
        return MoveChoice(probabilities, output.value, policy)


def policy_player(
    policy: SearchPolicy,
    params: PyTree = None,
    *,
    hyper: SearchHyper | None = None,
    reuse_tree: bool = False,
    name: str | None = None,
) -> Player:
    """Plays the moves of a search, without exploration.

    Args:
      policy: the search.
      params: of its evaluator.
      hyper: its numbers, as Python numbers; the defaults if None.
      reuse_tree: keep the tree below the moves that are played, in whole games (`RememberingPolicy`).
      name: `search:SIMULATIONS` by default.
    """
    kind = _ReusingSearch if reuse_tree else _Search
    name = f"search:{policy.num_simulations}" if name is None else name
    return Player(name, kind(policy, SearchHyper() if hyper is None else hyper), params)


def search_player(
    game: AnyGame,
    evaluator: Evaluator,
    params: PyTree = None,
    *,
    num_simulations: int,
    c_puct: float = 1.25,
    solver: bool = False,
    reuse_tree: bool = False,
    leaves_per_step: int = 1,
    name: str | None = None,
) -> Player:
    """`policy_player` of `AlphaZero`, which plays the most visited move.

    Args:
      game: the game.
      evaluator: see `azjax.search.evaluators`.
      params: of the evaluator.
      num_simulations: of each search, at least 1; new ones where the tree is reused.
      c_puct: weight of exploration.
      solver: prove wins, losses and draws in the search.
      reuse_tree: see `policy_player`.
      leaves_per_step: see `azjax.search.SearchPolicy`.
      name: `search:SIMULATIONS` by default.
    """
    policy = AlphaZero(game, evaluator, num_simulations, leaves_per_step, solver)
    return policy_player(policy, params, hyper=SearchHyper(c_puct=c_puct), reuse_tree=reuse_tree, name=name)


def uct_player(
    game: AnyGame, *, num_simulations: int, solver: bool = False, reuse_tree: bool = False, name: str | None = None
) -> Player:
    """`policy_player` of `Uct` with random rollouts, which plays the move of the highest mean return.

    Args:
      game: the game.
      num_simulations: of each search, at least 1.
      solver: prove wins, losses and draws in the search.
      reuse_tree: see `policy_player`.
      name: `uct:SIMULATIONS` by default.
    """
    policy = Uct(game, evaluators.rollout(game), num_simulations, solver=solver)
    return policy_player(policy, reuse_tree=reuse_tree, name=f"uct:{num_simulations}" if name is None else name)


@dataclasses.dataclass(frozen=True)
class _Search:
    """A search, whose action is played."""

    policy: SearchPolicy
    hyper: SearchHyper

    def __call__(self, params: PyTree, key: PRNGKeyArray, states: State) -> MoveChoice:
        return self._choice(states, self.search(params, key, states))

    def search(self, params: PyTree, key: PRNGKeyArray, states: State, memory: Tree | None = None) -> SearchResult:
        """See `SearchingPolicy`."""
        tree = None if memory is None else by_node(memory)
        result: SearchResult = self.policy(params, key, states, hyper=self.hyper, tree=tree)
        return result

    def search_within(self, params: PyTree, key: PRNGKeyArray, states: State, seconds: float) -> SearchResult:
        """See `TimedPolicy`."""
        policy = dataclasses.replace(self.policy, num_simulations=_CHUNK * self.policy.leaves_per_step)
        return search_within(policy, params, key, states, hyper=self.hyper, seconds=seconds, max_nodes=_MAX_NODES)

    def _choice(self, states: State, result: SearchResult) -> MoveChoice:
        played = jax.nn.one_hot(result.action, self.policy.game.num_actions)
        return MoveChoice(jnp.where(states.terminated[:, None], 0.0, played), result.value, result.policy)


@dataclasses.dataclass(frozen=True)
class _ReusingSearch(_Search):
    """A search whose memory is the tree below the moves that were played."""

    def start(self, params: PyTree, states: State) -> Tree:
        return by_game(self.policy.empty_tree(params, states, self.hyper))

    def think(self, params: PyTree, key: PRNGKeyArray, states: State, memory: Tree) -> tuple[MoveChoice, Tree]:
        result = self.search(params, key, states, memory)
        return self._choice(states, result), by_game(replace_fields(result.tree, histories=None))

    def observe(self, memory: Tree, action: Int32[Array, "B"]) -> Tree:
        return by_game(follow(by_node(memory), action, self.policy.num_simulations))


def with_simulations(player: Player, num_simulations: int) -> Player:
    """The same player under the same name, with another number of simulations.

    Raises:
      InputError: the player does not search, or `num_simulations` is below 1.
    """
    if not isinstance(player.policy, _Search):
        raise InputError(f"{player.name} does not search")
    if num_simulations < 1:
        raise InputError(f"num_simulations must be at least 1, got {num_simulations}")
    leaves = math.gcd(player.policy.policy.leaves_per_step, num_simulations)
    policy = dataclasses.replace(player.policy.policy, num_simulations=num_simulations, leaves_per_step=leaves)
    return dataclasses.replace(player, policy=dataclasses.replace(player.policy, policy=policy))


def for_one_position(player: Player) -> Player:
    """The same player for positions that come one at a time, as in play.

    A network takes little longer for several positions than for one, and so its search evaluates several leaves at
    once: as many as are a hundredth of its simulations or less, at most 16. `experiments/leaves_per_step.py` measures
    speed and strength. Other players are returned as they are.
    """
    if not isinstance(player.policy, _Search):
        return player
    policy = several_leaves(player.policy.policy, player.policy.policy.num_simulations)
    return dataclasses.replace(player, policy=dataclasses.replace(player.policy, policy=policy))


def several_leaves(policy: SearchPolicy, num_simulations: int) -> SearchPolicy:
    """The search with the leaves per step of `for_one_position`, for so many simulations in all."""
    if _network_of(policy) is None:
        return policy
    most, leaves = min(num_simulations // 100, _MOST_LEAVES), 1
    while 2 * leaves <= most and policy.num_simulations % (2 * leaves) == 0:
        leaves *= 2
    return dataclasses.replace(policy, leaves_per_step=leaves)


def _network_of(policy: SearchPolicy) -> object:
    """The network that a search evaluates its leaves with, perhaps beside a table; None if there is none."""
    evaluator = getattr(policy.evaluator, "evaluator", policy.evaluator)
    return evaluator.net if isinstance(evaluator, evaluators.NetworkEvaluator) else None


def player_facts(player: Player) -> dict[str, str]:
    """What people should know of a player of the package, by label: its game, search and network, if it has them."""
    policy = player.policy
    search = policy.policy if isinstance(policy, _Search) else None
    network: object = policy.network if isinstance(policy, _Network) else None
    told = {"player": player.name, **player.about}
    if search is not None:
        told["search"] = search_in_words(search, search.num_simulations)
        network = _network_of(search)
    game = getattr(search or policy, "game", None)
    if isinstance(game, Game):
        told["game"] = f"{game.name}: {game}"
        if isinstance(network, Network):
            told["network"] = summarize(network, game)
    return told


def search_in_words(policy: SearchPolicy, num_simulations: int) -> str:
    """The kind of a search and its simulations."""
    return f"{type(policy).__name__}, {num_simulations:,} simulations"


def is_player_name(name: str) -> bool:
    """Whether the name has one of the forms `PLAYER_NAMES`; its number of simulations is not checked."""
    search, colon, _ = name.partition(":")
    return name in ("random", "optimal") or (bool(colon) and search in _SEARCHES)


def num_simulations_of(name: str) -> int:
    """Simulations per move of the player of that name; 0 for a player that does not search.

    Raises:
      InputError: an unknown name.
    """
    if not is_player_name(name):
        raise InputError(f"unknown player {name!r}; available: {', '.join(PLAYER_NAMES)}")
    if name in ("random", "optimal"):
        return 0
    count = name.partition(":")[2]
    number = whole_number(count)
    if not number:
        raise InputError(f"{name!r}: SIMULATIONS must be a whole number of at least 1, got {count!r}")
    check_num_simulations(number)
    return number


def named_player(name: str, game: AnyGame, *, solver: bool = False, reuse_tree: bool = False) -> Player:
    """Makes a player without parameters.

    Args:
      name: `random`, `optimal` (which solves the game first), `uct:1000`, or with equal priors `uniform:64`,
        `rollout:1000`, `random:64`.
      game: the game to play.
      solver: the search proves wins, losses and draws.
      reuse_tree: the search keeps the tree below the moves that are played.

    Raises:
      InputError: an unknown name, or a search option that the player does not have.
    """
    num_simulations = num_simulations_of(name)
    if not num_simulations:
        if solver or reuse_tree:
            raise InputError(f"solver and reuse_tree are for players that search; {name} does not")
        return random_player(game) if name == "random" else optimal_player(solve(game))
    kind = name.partition(":")[0]
    options: dict[str, Any] = {"num_simulations": num_simulations, "solver": solver, "reuse_tree": reuse_tree}
    options["name"] = name_with_options(name, solver=solver, reuse_tree=reuse_tree)
    if kind == "uct":
        return uct_player(game, **options)
    return search_player(game, _EVALUATORS[kind](game), **options)


def name_with_options(
    name: str,
    *,
    policy: str | None = None,
    solver: bool = False,
    reuse_tree: bool = False,
    leaves_per_step: int = 1,
    tables: str | Path | None = None,
) -> str:
    """The name of a player, with those options of its search that are not the default."""
    leaves = f"{leaves_per_step} leaves a step"
    options = [policy, "solver" * solver, "reused tree" * reuse_tree, leaves * (leaves_per_step > 1)]
    options.append(None if tables is None else f"tables {Path(tables).name}")
    return " + ".join([name, *filter(None, options)])


def _softmax(logits: Float32[Array, "B A"], legal: Bool[Array, "B A"]) -> Float32[Array, "B A"]:
    """Over the legal actions; zero after the end."""
    return jnp.where(legal, jax.nn.softmax(jnp.where(legal, logits, -jnp.inf), axis=1), 0.0)


def _uniform(mask: Bool[Array, "B K"]) -> Float32[Array, "B K"]:
    """Equal weights where the mask is set, zero elsewhere."""
    return mask / jnp.maximum(jnp.sum(mask, axis=1, keepdims=True), 1).astype(jnp.float32)
