"""The searches that a user calls. Axis letters: see `tree.py`."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.search import evaluators
from azjax.search.draws import add_dirichlet_noise, keys_of_states, sample_by_visits
from azjax.search.dynamics import Evaluator, GameDynamics
from azjax.search.forced_playouts import ForcedPuct, puct, without_forced
from azjax.search.reuse import go_on
from azjax.search.root import judge_root, new_tree
from azjax.search.selection import Ucb1
from azjax.search.simulate import search
from azjax.search.tree import DISCOUNT, RETURNS, REWARD, ROOT, VISITS, SearchResult, Tree, by_root_slot, root_statistics


@functools.partial(
    jax.jit, static_argnames=("game", "evaluator", "num_simulations", "leaves_per_step", "solver", "max_nodes")
)
def alphazero_policy(
    params: Any,
    key: chex.PRNGKey,
    states: Any,
    *,
    game: Game,
    evaluator: Evaluator,
    num_simulations: int,
    c_puct: chex.Numeric = 1.25,
    first_play_urgency: chex.Numeric = 0.0,
    forced_playouts: chex.Numeric | None = None,
    dirichlet_fraction: chex.Numeric = 0.0,
    dirichlet_alpha: chex.Numeric | None = None,
    temperature: chex.Numeric = 0.0,
    leaves_per_step: int = 1,
    solver: bool = False,
    tree: Tree | None = None,
    max_nodes: int | None = None,
) -> SearchResult:
    """AlphaZero's search (Silver et al. 2018) from each state of a batch.

    Args:
      params: what the evaluator reads, such as a network's variables.
      key: consumed by root noise, evaluator and choice of action; [], or [B] for a key of each state, on which its
        noise and choice then depend alone. The evaluator has what comes of the first.
      states: a batch of states; every leaf [B, ...].
      game: the rules (static).
      evaluator: judges new leaves; see `azjax.search.evaluators` (static).
      num_simulations: new simulations in each tree, at least 1 (static).
      c_puct: weight of exploration, [] or [B].
      first_play_urgency: what an action that was not tried yet is taken to be worth to the player to move.
      forced_playouts: each visited action of the root gets sqrt(forced_playouts * prior * visits of all) visits at
        least, and `SearchResult.policy` is without those that it got for that alone (Wu 2019, section 3.2, where it
        is 2); None for the plain search.
      dirichlet_fraction: share of the noise in the root's priors, 0..1; [] or [B].
      dirichlet_alpha: concentration of the noise over the legal actions, [] or [B]; 10 / (their number) by default.
      temperature: [] or [B]; the action is drawn from visits^(1 / temperature): 0 takes the most visited (the first
        in `legal_slots` on ties), infinity draws uniformly from the legal actions.
      leaves_per_step: so many leaves of each tree are found, with a virtual loss, before the evaluator judges them
        together, for few trees and a costly evaluator. 1 is the plain search. It must divide `num_simulations`
        (static).
      solver: prove wins, losses and draws on the way; a proven root is searched no more, and a proven loss is not
        played while anything else stands. Returns must lie in -1..1 (static).
      tree: trees of this policy to go on with, of an earlier call or from `advance`. A tree whose root is another
        position than its state begins anew.
      max_nodes: room in each tree, with the root; enough for `num_simulations` by default, and that of `tree`. A full
        tree goes on without making nodes (static).

    Raises:
      ValueError: num_simulations below 1 or not a multiple of leaves_per_step, or options that disagree with `tree`.
    """
    check_num_simulations(num_simulations, leaves_per_step)
    root_keys, noise_keys, loop_keys, action_keys = keys_of_states(key, len(states.terminated), 4)
    dynamics = GameDynamics(game, evaluator)
    root = judge_root(dynamics, params, root_keys[0], states)
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
    tree = fresh if tree is None else go_on(tree, fresh, selection)
    tree = search(dynamics, params, loop_keys[0], tree, selection, num_simulations, leaves_per_step)
    prune = functools.partial(without_forced, selection, prior) if isinstance(selection, ForcedPuct) else None
    return summarise(game, tree, action_keys, temperature, prune)


@functools.partial(jax.jit, static_argnames=("game", "evaluator", "num_simulations", "leaves_per_step", "solver"))
def uct_policy(
    params: Any,
    key: chex.PRNGKey,
    states: Any,
    *,
    game: Game,
    evaluator: Evaluator | None = None,
    num_simulations: int,
    exploration: chex.Numeric = 2**0.5,
    leaves_per_step: int = 1,
    solver: bool = False,
) -> SearchResult:
    """UCT (Kocsis and Szepesvari 2006) with random rollouts, without priors.

    The action is that of the highest mean return, found without exploration, the first in `legal_slots` on ties. The
    root itself is not judged. `SearchResult.tree` counts decided visits, so that wins of each player can be told.

    Args:
      params: what the evaluator reads; None for rollouts.
      key: consumed by the rollouts.
      states: a batch of states; every leaf [B, ...].
      game: the rules (static).
      evaluator: judges new leaves; `evaluators.rollout(game)` by default. Its priors are ignored (static).
      num_simulations: new simulations in each tree, at least 1 (static).
      exploration: weight of exploration, c in mean + c sqrt(ln N / n).
      leaves_per_step: see `alphazero_policy` (static).
      solver: see `alphazero_policy` (static).

    Raises:
      ValueError: num_simulations below 1 or not a multiple of leaves_per_step.
    """
    check_num_simulations(num_simulations, leaves_per_step)
    root_key, loop_key, action_key = jax.random.split(key, 3)
    (action_keys,) = keys_of_states(action_key, len(states.terminated), 1)
    dynamics = GameDynamics(game, WithoutPriors(evaluators.rollout(game) if evaluator is None else evaluator))
    root = judge_root(dynamics, params, root_key, states)
    selection = Ucb1(jnp.asarray(exploration, jnp.float32))
    tree = new_tree(
        root, selection, num_simulations + 1, leaves_per_step=leaves_per_step, solver=solver, counts_decided=True
    )
    tree = dataclasses.replace(tree, sums=jnp.zeros_like(tree.sums))
    tree = search(dynamics, params, loop_key, tree, selection, num_simulations, leaves_per_step)
    result = summarise(game, tree, action_keys, 0.0)
    visits, q = root_statistics(tree)
    best = jnp.argmax(jnp.where(playable(tree, visits, root.prior >= 0) & (visits > 0), q, -jnp.inf), axis=1)
    return dataclasses.replace(result, action=to_action(tree, best.astype(jnp.int32)))


@dataclasses.dataclass(frozen=True)
class WithoutPriors:
    """The evaluator with equal priors."""

    evaluator: Evaluator

    def __call__(self, params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        prior_logits, value = self.evaluator(params, key, states)
        return jnp.zeros_like(prior_logits), value


def check_num_simulations(num_simulations: int, leaves_per_step: int = 1) -> None:
    """Raises ValueError below 1, and where steps do not add up to the simulations."""
    if num_simulations < 1:
        raise InputError(f"num_simulations must be at least 1, got {num_simulations}")
    if leaves_per_step < 1 or num_simulations % leaves_per_step:
        raise InputError(f"leaves_per_step must divide num_simulations = {num_simulations}, got {leaves_per_step}")


def summarise(
    game: Game,
    tree: Tree,
    keys: chex.PRNGKey,
    temperature: chex.Numeric,
    prune: Callable[[chex.Array, chex.Array], chex.Array] | None = None,
) -> SearchResult:
    """Reads the result off the roots and draws the action by keys [B].

    `prune(visits, q)` are the visits that make the policy.
    """
    visits, q = root_statistics(tree)
    valid = (tree.prior[ROOT] >= 0) | (visits > 0)
    standing = playable(tree, visits, valid)
    # Where all that was visited is lost, what was not stands.
    visited = jnp.where(standing, visits, 0)
    tried = jnp.any(visited > 0, axis=1, keepdims=True)
    weights = jnp.where(tried, visited, (standing & valid).astype(jnp.int32))
    slot = sample_by_visits(keys, weights, standing, temperature)
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


def to_action(tree: Tree, slot: chex.Array) -> chex.Array:
    """int32 [B]: the actions of the roots' slots [B]."""
    return slot if tree.actions is None else jnp.take_along_axis(tree.actions[ROOT], slot[:, None], axis=1)[:, 0]


def playable(tree: Tree, visits: chex.Array, valid: chex.Array) -> chex.Array:
    """bool [B, K]: the roots' slots that may be played for what is proven of them; all the valid ones in its absence.

    Of a proven root those that reach its value; else those that are not proven lost.
    """
    if tree.bounds is None:
        return valid
    lower, upper = tree.bounds[..., 0], tree.bounds[..., 1]
    ends = [tree.facts[..., REWARD] + tree.facts[..., DISCOUNT] * bound for bound in (lower, upper)]
    slot_lower = by_root_slot(tree, jnp.minimum(*ends))
    slot_upper = by_root_slot(tree, jnp.maximum(*ends))
    proven, value = (lower[ROOT] == upper[ROOT])[:, None], lower[ROOT][:, None]
    stands = jnp.where(proven, slot_lower >= value, slot_upper > -1)
    return valid & jnp.where(visits > 0, stands, ~proven)


def to_actions(game: Game, values: chex.Array, actions: chex.Array | None) -> chex.Array:
    """[B, K] by slot -> [B, A] by action; holes must hold zero."""
    if actions is None:
        return values
    rows = jnp.arange(len(values))[:, None]
    return jnp.zeros((len(values), game.num_actions), values.dtype).at[rows, actions].add(values)
