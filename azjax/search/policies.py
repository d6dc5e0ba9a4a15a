"""The policies that a user calls. Axis letters: see `tree.py`."""

import dataclasses
import functools
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Float32, Int32, Key, PRNGKeyArray, PyTree, Real, Shaped

from azjax.core.errors import InputError
from azjax.games.game import AnyGame, State
from azjax.search import evaluators
from azjax.search.draws import Keys, Number, add_dirichlet_noise, keys_of_states, sample_by_visits
from azjax.search.dynamics import Evaluator, GameDynamics, evaluate_root
from azjax.search.forced_playouts import ForcedPuct, prune_forced, puct
from azjax.search.reuse import continue_tree
from azjax.search.selection import Ucb1
from azjax.search.simulate import search
from azjax.search.tree import (
    DISCOUNT,
    RETURNS,
    REWARD,
    ROOT,
    VISITS,
    SearchResult,
    Tree,
    by_root_slot,
    new_tree,
    root_statistics,
)


@functools.partial(
    jax.jit, static_argnames=("game", "evaluator", "num_simulations", "leaves_per_step", "solver", "max_nodes")
)
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
    """AlphaZero's search (Silver et al. 2018) from each state of a batch.

    Numbers may be one for all states or [B], one for each, where their type says so.

    Args:
      params: what the evaluator reads, such as a network's variables.
      key: consumed by root noise, evaluator and choice of action. With a key for each state, its noise and choice
        depend on that key alone; the evaluator consumes the first.
      states: a batch of states; every leaf [B, ...].
      game: the rules (static).
      evaluator: evaluates new leaves; see `azjax.search.evaluators` (static).
      num_simulations: new simulations in each tree, at least 1 (static).
      c_puct: weight of exploration.
      first_play_urgency: the value of an action without visits, seen by the player to move.
      forced_playouts: each visited action of the root gets at least sqrt(forced_playouts * prior * visits of all)
        visits, and `SearchResult.policy` leaves out those that were forced (Wu 2019, section 3.2, where it is 2); None
        for the plain search.
      dirichlet_fraction: share of the noise in the root's priors, 0..1.
      dirichlet_alpha: concentration of the noise over the legal actions; 10 / (their number) by default.
      temperature: the action is drawn from visits^(1 / temperature): 0 takes the most visited (the first in
        `legal_slots` on ties), infinity draws uniformly from the legal actions.
      leaves_per_step: leaves of each tree that are selected, with a virtual loss, before the evaluator is called once
        for all of them; for few trees and a costly evaluator. 1 is the plain search. It must divide `num_simulations`
        (static).
      solver: prove wins, losses and draws during the search. A proven root is searched no further, and a proven loss is
        played only where every action is one. Returns must lie in -1..1 (static).
      tree: trees of this policy to continue, from an earlier call or from `advance`. A tree whose root is not its
        state is replaced by a new one.
      max_nodes: capacity of each tree, root included; by default enough for `num_simulations`, or that of `tree`. A
        full tree goes on without making nodes (static).

    Raises:
      InputError: num_simulations below 1 or not a multiple of leaves_per_step, or options that disagree with `tree`.
    """
    check_num_simulations(num_simulations, leaves_per_step)
    root_keys, noise_keys, loop_keys, action_keys = keys_of_states(key, len(states.terminated), 4)
    dynamics = GameDynamics(game, evaluator)
    root = evaluate_root(dynamics, params, root_keys[0], states)
    prior = jax.lax.cond(
        jnp.any(jnp.asarray(dirichlet_fraction) > 0),
        lambda: add_dirichlet_noise(noise_keys, root.prior, dirichlet_fraction, dirichlet_alpha),
        lambda: root.prior,
    )
    selection = puct(c_puct, first_play_urgency, forced_playouts)
    if tree is not None and max_nodes is None:
        max_nodes = tree.max_nodes
    fresh = new_tree(
        root._replace(prior=prior),
        selection,
        max_nodes or num_simulations + 1,
        leaves_per_step=leaves_per_step,
        solver=solver,
    )
    tree = fresh if tree is None else continue_tree(tree, fresh, selection)
    tree = search(dynamics, params, loop_keys[0], tree, selection, num_simulations, leaves_per_step)
    prune = functools.partial(prune_forced, selection, prior) if isinstance(selection, ForcedPuct) else None
    return summarize(game, tree, action_keys, temperature, prune)


@functools.partial(jax.jit, static_argnames=("game", "evaluator", "num_simulations", "leaves_per_step", "solver"))
def uct_policy(
    params: PyTree,
    key: PRNGKeyArray,
    states: State,
    *,
    game: AnyGame,
    evaluator: Evaluator | None = None,
    num_simulations: int,
    exploration: Real[ArrayLike, ""] = 2**0.5,
    leaves_per_step: int = 1,
    solver: bool = False,
) -> SearchResult:
    """UCT (Kocsis and Szepesvari 2006) with random rollouts, without priors.

    The action is the one of the highest mean return, the first in `legal_slots` on ties. The root itself is not
    evaluated. `SearchResult.tree` counts decided visits, from which the wins of each player follow.

    Args:
      params: what the evaluator reads; None for rollouts.
      key: consumed by the rollouts.
      states: a batch of states; every leaf [B, ...].
      game: the rules (static).
      evaluator: evaluates new leaves; `evaluators.rollout(game)` by default. Its priors are ignored (static).
      num_simulations: new simulations in each tree, at least 1 (static).
      exploration: c in mean + c sqrt(ln N / n).
      leaves_per_step: see `alphazero_policy` (static).
      solver: see `alphazero_policy` (static).

    Raises:
      InputError: num_simulations below 1 or not a multiple of leaves_per_step.
    """
    check_num_simulations(num_simulations, leaves_per_step)
    root_key, loop_key, action_key = jax.random.split(key, 3)
    (action_keys,) = keys_of_states(action_key, len(states.terminated), 1)
    dynamics = GameDynamics(game, WithoutPriors(evaluators.rollout(game) if evaluator is None else evaluator))
    root = evaluate_root(dynamics, params, root_key, states)
    selection = Ucb1(jnp.asarray(exploration, jnp.float32))
    tree = new_tree(
        root, selection, num_simulations + 1, leaves_per_step=leaves_per_step, solver=solver, counts_decided=True
    )
    tree = dataclasses.replace(tree, sums=jnp.zeros_like(tree.sums))
    tree = search(dynamics, params, loop_key, tree, selection, num_simulations, leaves_per_step)
    result = summarize(game, tree, action_keys, 0.0)
    visits, q = root_statistics(tree)
    best = jnp.argmax(jnp.where(playable(tree, visits, root.prior >= 0) & (visits > 0), q, -jnp.inf), axis=1)
    return dataclasses.replace(result, action=to_action(tree, best.astype(jnp.int32)))


@dataclasses.dataclass(frozen=True)
class WithoutPriors:
    """An evaluator with equal priors."""

    evaluator: Evaluator

    def __call__(
        self, params: PyTree, key: PRNGKeyArray, states: State
    ) -> tuple[Float[Array, "B A"], Float[Array, "B"]]:
        prior_logits, value = self.evaluator(params, key, states)
        return jnp.zeros_like(prior_logits), value


def check_num_simulations(num_simulations: int, leaves_per_step: int = 1) -> None:
    """Raises InputError below 1, and where `leaves_per_step` does not divide them."""
    if num_simulations < 1:
        raise InputError(f"num_simulations must be at least 1, got {num_simulations}")
    if leaves_per_step < 1 or num_simulations % leaves_per_step:
        raise InputError(f"leaves_per_step must divide num_simulations = {num_simulations}, got {leaves_per_step}")


Prune: TypeAlias = Callable[[Int32[Array, "B K"], Float32[Array, "B K"]], Int32[Array, "B K"]]
"""`prune(visits, q)`: the visits of the roots' slots that count for the policy target."""


def summarize(
    game: AnyGame, tree: Tree, keys: Key[Array, "B"], temperature: Number, prune: Prune | None = None
) -> SearchResult:
    """The result of the search, with the actions drawn by `keys`."""
    visits, q = root_statistics(tree)
    valid = (tree.prior[ROOT] >= 0) | (visits > 0)
    remaining = playable(tree, visits, valid)
    # Where every visited slot is lost, the others remain.
    visited = jnp.where(remaining, visits, 0)
    tried = jnp.any(visited > 0, axis=1, keepdims=True)
    weights = jnp.where(tried, visited, (remaining & valid).astype(jnp.int32))
    slot = sample_by_visits(keys, weights, remaining, temperature)
    target = weights if prune is None else jnp.where(tried, prune(visited, q), weights)
    policy = target / jnp.maximum(jnp.sum(target, axis=1, keepdims=True), 1)
    mean = tree.sums[ROOT, :, RETURNS] / jnp.maximum(tree.sums[ROOT, :, VISITS], 1)
    unknown = jnp.broadcast_to(jnp.array([-1.0, 1.0]), (tree.batch, 2))
    bounds = unknown if tree.bounds is None else tree.bounds[ROOT]
    actions = None if tree.actions is None else tree.actions[ROOT]
    return SearchResult(
        action=to_action(tree, slot),
        policy=to_actions(game, policy, actions),
        value=jnp.where(bounds[:, 0] == bounds[:, 1], bounds[:, 0], mean),
        visits=to_actions(game, visits, actions),
        q_values=to_actions(game, q, actions),
        bounds=bounds,
        tree=tree,
    )


def to_action(tree: Tree, slot: Int32[Array, "B"]) -> Int32[Array, "B"]:
    """The actions of the roots' slots."""
    return slot if tree.actions is None else jnp.take_along_axis(tree.actions[ROOT], slot[:, None], axis=1)[:, 0]


def playable(tree: Tree, visits: Int32[Array, "B K"], valid: Bool[Array, "B K"]) -> Bool[Array, "B K"]:
    """The valid slots of the roots that no proof rules out.

    They are those that reach the value of a proven root, and otherwise those that are not proven lost.
    """
    if tree.bounds is None:
        return valid
    lower, upper = tree.bounds[..., 0], tree.bounds[..., 1]
    ends = [tree.facts[..., REWARD] + tree.facts[..., DISCOUNT] * bound for bound in (lower, upper)]
    slot_lower = by_root_slot(tree, jnp.minimum(*ends))
    slot_upper = by_root_slot(tree, jnp.maximum(*ends))
    proven, value = (lower[ROOT] == upper[ROOT])[:, None], lower[ROOT][:, None]
    remains = jnp.where(proven, slot_lower >= value, slot_upper > -1)
    return valid & jnp.where(visits > 0, remains, ~proven)


def to_actions(
    game: AnyGame, values: Shaped[Array, "B K"], actions: Int32[Array, "B K"] | None
) -> Shaped[Array, "B A"]:
    """Values by slot, zero in holes, as values by action."""
    if actions is None:
        return values
    rows = jnp.arange(len(values))[:, None]
    return jnp.zeros((len(values), game.num_actions), values.dtype).at[rows, actions].add(values)
