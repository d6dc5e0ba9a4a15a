"""Players that search: by a number of simulations, or for a time.

Axis letters: `B` batch, `A` actions.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, PRNGKeyArray, PyTree

from azjax.core.errors import InputError
from azjax.evaluation.players import MoveChoice, Player
from azjax.games.game import AnyGame, State
from azjax.search import (
    AlphaZero,
    Evaluator,
    GumbelAlphaZero,
    SearchHyper,
    SearchPolicy,
    SearchResult,
    Tree,
    Uct,
    evaluators,
    search_within,
)
from azjax.search.reuse import by_game, by_node, follow

_STEPS, _MOST_SIMULATIONS = 16, 256  # between two looks at the clock
_LEAST_RATE = 10_000  # simulations a second
_MOST_TIMED_LEAVES = 64
_TREE_BYTES_PER_SECOND, _MOST_TREE_BYTES = 1 << 27, 1 << 30
_LEAST_NODES, _NODES_PER_SECOND = 1 << 12, 100_000


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

    def search_within(
        self, params: PyTree, key: PRNGKeyArray, states: State, seconds: float, tree: Tree | None = None
    ) -> SearchResult:
        """See `TimedPolicy`."""
        leaves = self.policy.leaves_per_step
        steps = max(1, min(_STEPS, _MOST_SIMULATIONS // leaves))
        policy = dataclasses.replace(self.policy, num_simulations=steps * leaves)
        return search_within(policy, params, key, states, hyper=self.hyper, seconds=seconds, tree=tree)

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
        return self._choice(states, result), by_game(result.tree.without_histories())

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
    return _with_policy(player, policy)


def keeping_trees(player: Player) -> Player:
    """The same player under the same name, which keeps its tree below the moves that are played, as in play.

    `experiments/at_play.py` measures what that gains. Other players than those that search are returned as they are.
    """
    if not isinstance(player.policy, _Search):
        return player
    return dataclasses.replace(player, policy=_ReusingSearch(player.policy.policy, player.policy.hyper))


def for_one_position(player: Player) -> Player:
    """The same player for positions that come one at a time, as in play.

    A network takes little longer for several positions than for one, and so its search evaluates several leaves at
    once: as many as are a hundredth of its simulations or less, at most 16. `experiments/leaves_per_step.py` measures
    speed and strength. Other players are returned as they are.
    """
    if not isinstance(player.policy, _Search):
        return player
    return _with_policy(player, several_leaves(player.policy.policy, player.policy.policy.num_simulations))


def for_seconds(player: Player, seconds: float) -> Player:
    """The same player to search one position at a time, for up to this many seconds.

    In place of Gumbel's search, whose halving needs its number of simulations beforehand, it is AlphaZero's. Its trees
    have room for 100,000 positions a second, or as many as 128 MB a second hold, at least 4,096 and at most 1 GB; a
    full tree goes on without new ones. Unless it has a number of leaves per step of its own, a search with a network
    evaluates 100 times as many as it has seconds, a power of two of at most 64. Other players are returned as they are.
    """
    if not isinstance(player.policy, _Search):
        return player
    policy = player.policy.policy
    if isinstance(policy, GumbelAlphaZero):
        fields = {field.name: getattr(policy, field.name) for field in dataclasses.fields(SearchPolicy)}
        policy = AlphaZero(**fields)
    if policy.leaves_per_step == 1:
        policy = dataclasses.replace(policy, num_simulations=_STEPS * _MOST_TIMED_LEAVES)
        policy = several_leaves(policy, int(_LEAST_RATE * seconds), _MOST_TIMED_LEAVES)
    most_bytes = min(_TREE_BYTES_PER_SECOND * seconds, _MOST_TREE_BYTES)
    # More would cost time: the whole tree is copied to keep the part below a move.
    nodes = min(most_bytes / _bytes_per_node(policy, player.params), _NODES_PER_SECOND * seconds)
    nodes = max(int(nodes), _LEAST_NODES)
    # A power of two: few shapes to compile.
    return _with_policy(player, dataclasses.replace(policy, max_nodes=1 << (nodes.bit_length() - 1)))


def _bytes_per_node(policy: SearchPolicy, params: PyTree) -> float:
    start = jax.eval_shape(policy.game.init, jax.random.key(0))
    states = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype), start)
    policy = dataclasses.replace(policy, max_nodes=_LEAST_NODES)
    tree = jax.eval_shape(policy.empty_tree, params, states)
    sizes: list[int] = [leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree)]
    return sum(sizes) / _LEAST_NODES


def several_leaves(policy: SearchPolicy, num_simulations: int, most: int = 16) -> SearchPolicy:
    """The search with as many leaves per step as are a hundredth of its simulations or less.

    Args:
      policy: the search; one without a network is returned as it is.
      num_simulations: of the whole search, which may consist of several of the policy's.
      most: leaves.
    """
    if network_of(policy) is None:
        return policy
    leaves = 1
    while 2 * leaves <= min(num_simulations // 100, most) and policy.num_simulations % (2 * leaves) == 0:
        leaves *= 2
    return dataclasses.replace(policy, leaves_per_step=leaves)


def _with_policy(player: Player, policy: SearchPolicy) -> Player:
    assert isinstance(player.policy, _Search)
    return dataclasses.replace(player, policy=dataclasses.replace(player.policy, policy=policy))


def search_of(player: Player) -> SearchPolicy | None:
    """The search of a player of this module; None of others."""
    return player.policy.policy if isinstance(player.policy, _Search) else None


def network_of(policy: SearchPolicy) -> object:
    """The network that a search evaluates its leaves with, perhaps beside a table; None if there is none."""
    evaluator = getattr(policy.evaluator, "evaluator", policy.evaluator)
    return evaluator.net if isinstance(evaluator, evaluators.NetworkEvaluator) else None
