"""The searches that a user calls. Axis letters: see `tree.py`."""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import Game
from azjax.search.dynamics import Evaluator, GameDynamics
from azjax.search.selection import Puct
from azjax.search.simulate import judge_root, search
from azjax.search.tree import PARENT, RETURNS, ROOT, SLOT, VISITS, SearchResult, Tree


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
    check_num_simulations(num_simulations)
    root_key, noise_key, loop_key, action_key = jax.random.split(key, 4)
    dynamics = GameDynamics(game, evaluator)
    root = judge_root(dynamics, params, root_key, states)
    prior = jax.lax.cond(
        jnp.asarray(dirichlet_fraction) > 0,
        lambda: add_dirichlet_noise(noise_key, root.prior, dirichlet_fraction, dirichlet_alpha),
        lambda: root.prior,
    )
    selection = Puct(jnp.asarray(c_puct, jnp.float32))
    tree = search(dynamics, params, loop_key, root._replace(prior=prior), selection, num_simulations)
    return summarise(game, tree, action_key, temperature)


def check_num_simulations(num_simulations: int) -> None:
    """Raises ValueError below 1."""
    if num_simulations < 1:
        raise ValueError(f"num_simulations must be at least 1, got {num_simulations}")


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
    visits, q = root_statistics(tree)
    actions = None if tree.actions is None else tree.actions[ROOT]
    valid = (tree.prior[ROOT] >= 0) | (visits > 0)
    slot = sample_by_visits(key, visits, valid, temperature)
    policy = visits / jnp.maximum(jnp.sum(visits, axis=1, keepdims=True), 1)
    return SearchResult(
        action=slot if actions is None else jnp.take_along_axis(actions, slot[:, None], axis=1)[:, 0],
        policy=to_actions(game, policy, actions),
        value=tree.sums[ROOT, :, RETURNS] / tree.sums[ROOT, :, VISITS],
        visits=to_actions(game, visits, actions),
        q_values=to_actions(game, q, actions),
        tree=tree,
    )


def root_statistics(tree: Tree) -> tuple[chex.Array, chex.Array]:
    """Visits int32 [B, K] and mean returns float32 [B, K] of the roots' slots, 0 where there is no child."""
    num_nodes, batch, slots = tree.prior.shape
    visits, returns = tree.visits, tree.sums[..., RETURNS]
    made = (visits > 0) & (jnp.arange(num_nodes, dtype=jnp.int32) != ROOT)[:, None]
    cell = jnp.arange(batch, dtype=jnp.int32)[None] * slots + tree.links[..., SLOT]
    cell = jnp.where(made & (tree.links[..., PARENT] == ROOT), cell, batch * slots).reshape(-1)

    def by_slot(values: chex.Array) -> chex.Array:
        cells = jnp.zeros(batch * slots, values.dtype).at[cell]
        return cells.set(values.reshape(-1), mode="drop").reshape(batch, slots)

    slot_visits = by_slot(visits)
    return slot_visits, by_slot(returns) / jnp.maximum(slot_visits, 1)


def to_actions(game: Game, values: chex.Array, actions: chex.Array | None) -> chex.Array:
    """[B, K] by slot -> [B, A] by action; holes must hold zero."""
    if actions is None:
        return values
    rows = jnp.arange(len(values))[:, None]
    return jnp.zeros((len(values), game.num_actions), values.dtype).at[rows, actions].add(values)
