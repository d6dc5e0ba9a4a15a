"""UCT (Kocsis and Szepesvari 2006) with random rollouts. Axis letters: see `tree.py`."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray, PyTree, Real

from azjax.core.pytree import replace_fields
from azjax.games.game import AnyGame, State
from azjax.search import evaluators
from azjax.search.draws import Keys, first_key, keys_of_states
from azjax.search.dynamics import Evaluator, GameDynamics, evaluate_root
from azjax.search.hyper import SearchHyper, traced
from azjax.search.policy import SearchPolicy
from azjax.search.result import SearchResult, summarize, to_action
from azjax.search.rules.ucb1 import Ucb1
from azjax.search.solver import playable, proven_root_returns
from azjax.search.tree import Tree


@dataclasses.dataclass(frozen=True)
class WithoutPriors:
    """An evaluator with equal priors."""

    evaluator: Evaluator

    def __call__(
        self, params: PyTree, key: PRNGKeyArray, states: State
    ) -> tuple[Float[Array, "B A"], Float[Array, "B"]]:
        prior_logits, value, *_ = self.evaluator(params, key, states)
        return jnp.zeros_like(prior_logits), value


@dataclasses.dataclass(frozen=True)
class Uct(SearchPolicy):
    """UCT: UCB1 from the root down, without priors. The evaluator is random rollouts for UCT proper.

    The action is the one of the highest mean return, or of the true return where that is proven, the first in
    `legal_slots` on ties; nothing explores but the rule. The root itself is not evaluated. `Nodes.sums` of the trees
    counts decided visits, from which the wins of each player follow.
    """

    @property
    def dynamics(self) -> GameDynamics:
        return GameDynamics(self.game, WithoutPriors(self.evaluator))

    @property
    def evaluates_root(self) -> bool:
        return False

    def selection(self, hyper: SearchHyper, explore: bool) -> Ucb1:
        del explore
        return Ucb1(traced(hyper.exploration))

    def search(
        self, params: PyTree, key: Keys, states: State, hyper: SearchHyper, explore: bool, tree: Tree | None
    ) -> SearchResult:
        root_key, loop_key, action_key = jax.random.split(first_key(key), 3)
        (action_keys,) = keys_of_states(action_key, len(states.terminated), 1)
        root = evaluate_root(self.dynamics, params, root_key, states)
        selection = self.selection(hyper, explore)
        tree = self.grow(params, loop_key, self.begin(root, selection, tree), selection)
        result = summarize(self.game, tree, selection, root.prior, action_keys, 0.0)
        children = tree.root_children()
        q, among = proven_root_returns(tree, children), playable(tree, children, root.prior >= 0) & children.exists
        best = jnp.argmax(jnp.where(among, q, -jnp.inf), axis=1).astype(jnp.int32)
        # Where every visited action is proven to lose, the action is one of the others.
        action = jnp.where(jnp.any(among, axis=1), to_action(tree, best), result.action)
        return replace_fields(result, action=action)


def uct_policy(
    params: PyTree,
    key: Keys,
    states: State,
    *,
    game: AnyGame,
    evaluator: Evaluator | None = None,
    num_simulations: int,
    exploration: Real[ArrayLike, ""] = 2**0.5,
    leaves_per_step: int = 1,
    solver: bool = False,
    tree: Tree | None = None,
    max_nodes: int | None = None,
) -> SearchResult:
    """`Uct` in one call, jitted.

    Args:
      params: what the evaluator reads; None for rollouts.
      key: consumed by the rollouts; of one key for each state, the first alone.
      states: a batch of states; every leaf [B, ...].
      game: see `SearchPolicy` (static).
      evaluator: `evaluators.rollout(game)` by default. Its priors are ignored (static).
      num_simulations: see `SearchPolicy` (static).
      exploration: see `SearchHyper`.
      leaves_per_step: see `SearchPolicy` (static).
      solver: likewise (static).
      tree: see `SearchPolicy.__call__`.
      max_nodes: see `SearchPolicy` (static).

    Raises:
      InputError: num_simulations below 1 or not a multiple of leaves_per_step, or options that disagree with `tree`.
    """
    evaluator = evaluators.rollout(game) if evaluator is None else evaluator
    policy = Uct(game, evaluator, num_simulations, leaves_per_step, solver, max_nodes)
    result: SearchResult = policy(params, key, states, hyper=SearchHyper(exploration=exploration), tree=tree)
    return result
