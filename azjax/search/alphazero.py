"""AlphaZero's search (Silver et al. 2018). Axis letters: see `tree.py`."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike, PyTree, Real

from azjax.core.errors import InputError
from azjax.games.game import AnyGame, State
from azjax.search.draws import Keys, Number, add_dirichlet_noise, keys_of_states
from azjax.search.dynamics import Evaluator, evaluate_root
from azjax.search.hyper import SearchHyper
from azjax.search.policy import SearchPolicy
from azjax.search.result import SearchResult, summarize
from azjax.search.rules import Rule, puct
from azjax.search.selection import Selection
from azjax.search.tree import Tree


@dataclasses.dataclass(frozen=True)
class AlphaZero(SearchPolicy):
    """AlphaZero's search: `rule` from the root down, Dirichlet noise at the root, the action by its visits.

    rule: makes the rule of selection; PUCT by default. See `azjax.search.rules`.
    """

    rule: Rule = puct

    def selection(self, hyper: SearchHyper, explore: bool) -> Selection:
        # Without exploration nothing is forced, by the same rule: a tree may be continued by either.
        if not explore and hyper.forced_playouts is not None:
            hyper = dataclasses.replace(hyper, forced_playouts=0.0)
        selection = self.rule(hyper, self.game) if callable(self.rule) else None
        if not isinstance(selection, Selection):
            raise InputError(
                "rule must be a function of (hyper, game) that returns a Selection, such as azjax.search.rules.puct; "
                f"got {self.rule!r}"
            )
        return selection

    def search(
        self, params: PyTree, key: Keys, states: State, hyper: SearchHyper, explore: bool, tree: Tree | None
    ) -> SearchResult:
        root_keys, noise_keys, loop_keys, action_keys, rule_keys = keys_of_states(key, len(states.terminated), 5)
        root = evaluate_root(self.dynamics, params, root_keys[0], states)
        if explore:
            fraction, alpha = hyper.dirichlet_fraction, hyper.dirichlet_alpha
            prior = jax.lax.cond(
                jnp.any(jnp.asarray(fraction) > 0),
                lambda: add_dirichlet_noise(noise_keys, root.prior, fraction, alpha),
                lambda: root.prior,
            )
            root = root._replace(prior=prior)
        selection = self.selection(hyper, explore)
        tree = self.grow(params, loop_keys[0], self.begin(root, selection, tree), selection, rule_keys)
        return summarize(self.game, tree, selection, root.prior, action_keys, hyper.temperature if explore else 0.0)


def alphazero_policy(
    params: PyTree,
    key: Keys,
    states: State,
    *,
    game: AnyGame,
    evaluator: Evaluator,
    num_simulations: int,
    c_puct: Number = 1.25,
    first_play_urgency: Real[ArrayLike, ""] = 0.0,
    forced_playouts: Real[ArrayLike, ""] | None = None,
    dirichlet_fraction: Number = 0.0,
    dirichlet_alpha: Number | None = None,
    temperature: Number = 0.0,
    leaves_per_step: int = 1,
    solver: bool = False,
    tree: Tree | None = None,
    max_nodes: int | None = None,
) -> SearchResult:
    """`AlphaZero` in one call, jitted, without noise and chance unless they are asked for.

    Args:
      params: see `SearchPolicy.__call__`.
      key: likewise.
      states: likewise; every leaf [B, ...].
      game: see `SearchPolicy` (static).
      evaluator: likewise (static).
      num_simulations: likewise (static).
      c_puct: see `SearchHyper`.
      first_play_urgency: likewise.
      forced_playouts: likewise.
      dirichlet_fraction: likewise.
      dirichlet_alpha: likewise.
      temperature: likewise.
      leaves_per_step: see `SearchPolicy` (static).
      solver: likewise (static).
      tree: see `SearchPolicy.__call__`.
      max_nodes: see `SearchPolicy` (static).

    Raises:
      InputError: num_simulations below 1 or not a multiple of leaves_per_step, or options that disagree with `tree`.
    """
    policy = AlphaZero(game, evaluator, num_simulations, leaves_per_step, solver, max_nodes)
    hyper = SearchHyper(
        c_puct=c_puct,
        first_play_urgency=first_play_urgency,
        forced_playouts=forced_playouts,
        dirichlet_fraction=dirichlet_fraction,
        dirichlet_alpha=dirichlet_alpha,
        temperature=temperature,
    )
    result: SearchResult = policy(params, key, states, hyper=hyper, explore=True, tree=tree)
    return result
