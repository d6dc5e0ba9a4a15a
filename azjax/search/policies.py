"""The searches that a user calls. Axis letters: see `tree.py`."""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import Game
from azjax.search.simulate import Evaluator, child_statistics, evaluate, puct, simulate
from azjax.search.tree import ROOT, SearchResult, Tree, new_tree, to_actions


@functools.partial(jax.jit, static_argnames=("game", "evaluator", "num_simulations"))
def alphazero_policy(
    params: Any,
    key: chex.PRNGKey,
    states: Any,
    *,
    game: Game,
    evaluator: Evaluator,
    num_simulations: int,
    c_puct: chex.Numeric = 1.25,
    dirichlet_fraction: chex.Numeric = 0.0,
    dirichlet_alpha: chex.Numeric | None = None,
    temperature: chex.Numeric = 0.0,
) -> SearchResult:
    """AlphaZero's search (Silver et al. 2018) from each state of a batch.

    Args:
      params: what the evaluator reads, such as a network's variables.
      key: consumed by root noise, evaluator and choice of action.
      states: a batch of states; every leaf [B, ...].
      game: the rules (static).
      evaluator: judges new leaves; see `azjax.search.evaluators` (static).
      num_simulations: new simulations in each tree, at least 1 (static).
      c_puct: weight of exploration.
      dirichlet_fraction: share of the noise in the root's priors, 0..1.
      dirichlet_alpha: concentration of the noise over the legal actions; 10 / (their number) by default.
      temperature: the action is drawn from visits^(1 / temperature): 0 takes the most visited (the lowest
        action on ties), infinity draws uniformly from the legal actions.

    Raises:
      ValueError: num_simulations below 1.
    """
    if num_simulations < 1:
        raise ValueError(f"num_simulations must be at least 1, got {num_simulations}")
    root_key, noise_key, loop_key, action_key = jax.random.split(key, 4)
    actions, prior, value = evaluate(game, evaluator, params, root_key, states, jnp.int32(ROOT + 1))
    prior = jax.lax.cond(
        jnp.asarray(dirichlet_fraction) > 0,
        lambda: add_dirichlet_noise(noise_key, prior, dirichlet_fraction, dirichlet_alpha),
        lambda: prior,
    )
    tree = new_tree(game, states, actions, prior, value, num_simulations + 1)
    score = puct(jnp.asarray(c_puct, jnp.float32))

    def one_simulation(simulation: chex.Array, tree: Tree) -> Tree:
        evaluator_key = jax.random.fold_in(loop_key, simulation)
        # Node i + 1 is made by simulation i.
        return simulate(game, evaluator, params, evaluator_key, tree, score, simulation + 1)

    tree = jax.lax.fori_loop(0, num_simulations, one_simulation, tree)
    return summarise(game, tree, action_key, temperature)


def add_dirichlet_noise(
    key: chex.PRNGKey, prior: chex.Array, fraction: chex.Numeric, alpha: chex.Numeric | None
) -> chex.Array:
    """Mixes noise into a prior [B, K] over its legal slots alone; holes stay -1."""
    valid = prior >= 0
    num_legal = jnp.sum(valid, axis=1, keepdims=True)
    concentration = 10.0 / jnp.maximum(num_legal, 1) if alpha is None else jnp.asarray(alpha, jnp.float32)
    # In logarithms: draws at a small alpha underflow.
    draws = jax.random.loggamma(key, jnp.broadcast_to(concentration, prior.shape))
    noise = jax.nn.softmax(jnp.where(valid, draws, -jnp.inf), axis=1)
    return jnp.where(valid, (1 - fraction) * prior + fraction * noise, prior)


def sample_by_visits(key: chex.PRNGKey, visits: chex.Array, valid: chex.Array, temperature: chex.Numeric) -> chex.Array:
    """int32 [B]: a slot drawn from visits^(1 / temperature); `visits` and `valid` are [B, K]."""
    temperature = jnp.asarray(temperature, jnp.float32)
    # Relative to the most visited, so that no power overflows; 0 ** 0 is 1, which infinity needs.
    share = visits / jnp.maximum(jnp.max(visits, axis=1, keepdims=True), 1)
    weights = jnp.where(valid, share ** (1 / temperature), 0.0)
    # By the cumulative sum: `jax.random.categorical` takes most of a second to compile.
    up_to = jnp.cumsum(weights, axis=1)
    total = up_to[:, -1:]
    draw = jnp.minimum(jax.random.uniform(key, total.shape) * total, jnp.nextafter(total, 0.0))
    drawn = jnp.minimum(jnp.sum(up_to <= draw, axis=1), visits.shape[1] - 1)
    return jnp.where(temperature == 0, jnp.argmax(visits, axis=1), drawn).astype(jnp.int32)


def summarise(game: Game, tree: Tree, key: chex.PRNGKey, temperature: chex.Numeric) -> SearchResult:
    """Reads the result off the roots and draws the action."""
    root = jnp.full(tree.visits.shape[1], ROOT)
    _, visits, q = child_statistics(tree, root)
    actions = None if tree.actions is None else tree.actions[ROOT]
    slot = sample_by_visits(key, visits, tree.prior[ROOT] >= 0, temperature)
    policy = visits / jnp.maximum(jnp.sum(visits, axis=1, keepdims=True), 1)
    return SearchResult(
        action=slot if actions is None else jnp.take_along_axis(actions, slot[:, None], axis=1)[:, 0],
        policy=to_actions(game, policy, actions),
        value=tree.returns[ROOT] / tree.visits[ROOT],
        visits=to_actions(game, visits, actions),
        q_values=to_actions(game, q, actions),
        tree=tree,
    )
