"""The two policies of mctx. Axis letters: see `azjax/search/tree.py`; here K is A.

The return of a step is reward + discount * value, all the way down. Nothing is searched after a discount of 0, which
makes the value irrelevant; mctx searches on, with the same results above. Below the root every action is legal.

These functions are not jitted, as mctx's are not: call them inside a `jax.jit` of your own.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float32, Int32, PRNGKeyArray, PyTree, Real, Shaped

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.search.draws import add_dirichlet_noise, keys_of_states, sample_by_visits
from azjax.search.gumbel import check_considered, gumbel_search
from azjax.search.hyper import SearchHyper, traced
from azjax.search.mctx.model import RecurrentDynamics, RecurrentFn, RecurrentRoot, root_of
from azjax.search.mctx.qtransforms import (
    MakeTransform,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
    transform_of,
)
from azjax.search.mctx.replaceable import Replaceable
from azjax.search.mctx.tree import GumbelMuZeroExtraData, Tree
from azjax.search.policy import check_num_simulations
from azjax.search.result import root_statistics
from azjax.search.rules.improved_policy import ImprovedPolicy
from azjax.search.rules.muzero_puct import MuZeroPuct
from azjax.search.search import new_tree, search


@pytree_dataclass
class PolicyOutput(Replaceable):
    """The result of a search.

    action: the action to take.
    action_weights: the training target; sums to one over the valid actions, 0 in a row without any.
    search_tree: `search_tree.summary()` has the visits and values of the roots.
    """

    action: Int32[Array, "B"]
    action_weights: Float32[Array, "B A"]
    search_tree: Tree


def gumbel_muzero_policy(
    params: PyTree,
    rng_key: PRNGKeyArray,
    root: RecurrentRoot,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: Shaped[ArrayLike, "..."] | None = None,
    max_depth: int | None = None,
    loop_fn: Callable[..., Any] = jax.lax.fori_loop,
    *,
    qtransform: MakeTransform = qtransform_completed_by_mix_value,
    max_num_considered_actions: int = 16,
    gumbel_scale: Real[ArrayLike, ""] = 1.0,
) -> PolicyOutput:
    """Gumbel MuZero's search (Danihelka et al. 2022), as `mctx.gumbel_muzero_policy`.

    Visits, actions and weights are mctx's up to rounding, with the same Gumbel noise for the same key; `recurrent_fn`
    gets other keys.

    Args:
      params: for `recurrent_fn`.
      rng_key: consumed by the Gumbel noise and `recurrent_fn`.
      root: where the search starts; see `RootFnOutput`.
      recurrent_fn: the model; see `RecurrentFn`.
      num_simulations: in each tree, at least 1.
      invalid_actions: [B, A]; nonzero for actions that are illegal at the root.
      max_depth: steps below the root, at least 1; a node there is evaluated once, and not expanded. None for any depth.
      loop_fn: must be `jax.lax.fori_loop`.
      qtransform: one of this module's, or `functools.partial` of one.
      max_num_considered_actions: actions that the root tries at most, at least 1.
      gumbel_scale: of the noise in the root's logits.

    Raises:
      InputError: an argument out of its range, or an array of another shape.
    """
    check_num_simulations(num_simulations)
    check_considered(max_num_considered_actions)
    _check_loop(loop_fn)
    loop_key, noise_key = jax.random.split(rng_key)  # as in mctx, so that the noise is the same
    params, root = _without_gradient(params, root)
    start = root_of(root, invalid_actions)
    # Drawn along one axis: XLA compiles a draw of two for a second.
    draws = jax.random.gumbel(noise_key, (start.prior.size,), jnp.float32).reshape(start.prior.shape)
    noise = jnp.asarray(gumbel_scale, jnp.float32) * draws
    rule = ImprovedPolicy(transform_of(qtransform, start.prior.shape[1]))
    searched = gumbel_search(
        RecurrentDynamics.create(recurrent_fn, start, num_simulations, max_depth),
        params,
        loop_key,
        start,
        noise,
        rule,
        new_tree(start, rule, num_simulations + 1),
        num_simulations=num_simulations,
        max_num_considered_actions=max_num_considered_actions,
    )
    tree = Tree(searched.tree, GumbelMuZeroExtraData(noise))
    return PolicyOutput(searched.winner, searched.improved_policy, tree)


def muzero_policy(
    params: PyTree,
    rng_key: PRNGKeyArray,
    root: RecurrentRoot,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: Shaped[ArrayLike, "..."] | None = None,
    max_depth: int | None = None,
    loop_fn: Callable[..., Any] = jax.lax.fori_loop,
    *,
    qtransform: MakeTransform = qtransform_by_parent_and_siblings,
    dirichlet_fraction: Real[ArrayLike, ""] = 0.25,
    dirichlet_alpha: Real[ArrayLike, ""] = 0.3,
    pb_c_init: Real[ArrayLike, ""] = 1.25,
    pb_c_base: Real[ArrayLike, ""] = 19652.0,
    temperature: Real[ArrayLike, ""] = 1.0,
) -> PolicyOutput:
    """MuZero's search (Schrittwieser et al. 2020), as `mctx.muzero_policy`; see `MuZeroPuct`.

    Without Dirichlet noise the visits are mctx's, ties apart: mctx breaks them at random, this takes the first action.
    The noise is drawn over the valid actions alone, where mctx draws it over all of them.

    Args:
      params: see `gumbel_muzero_policy`.
      rng_key: consumed by the root's noise, `recurrent_fn` and the choice of action.
      root: see `gumbel_muzero_policy`.
      recurrent_fn: likewise.
      num_simulations: likewise.
      invalid_actions: likewise.
      max_depth: likewise.
      loop_fn: likewise.
      qtransform: likewise.
      dirichlet_fraction: share of the noise in the root's priors, 0..1.
      dirichlet_alpha: concentration of the noise.
      pb_c_init: c_1 of the paper.
      pb_c_base: c_2 of the paper.
      temperature: the action is drawn from visits^(1 / temperature); 0 takes the most visited.

    Raises:
      InputError: see `gumbel_muzero_policy`.
    """
    check_num_simulations(num_simulations)
    _check_loop(loop_fn)
    numbers = {"dirichlet_fraction": dirichlet_fraction, "dirichlet_alpha": dirichlet_alpha, "temperature": temperature}
    SearchHyper(**numbers)  # refuses what is out of range
    start_key, loop_key = jax.random.split(rng_key)
    params, root = _without_gradient(params, root)
    start = root_of(root, invalid_actions)
    noise_keys, action_keys = keys_of_states(start_key, len(start.prior), 2)
    start = start._replace(prior=add_dirichlet_noise(noise_keys, start.prior, dirichlet_fraction, dirichlet_alpha))
    rule = MuZeroPuct(transform_of(qtransform, start.prior.shape[1]), traced(pb_c_init), traced(pb_c_base))
    dynamics = RecurrentDynamics.create(recurrent_fn, start, num_simulations, max_depth)
    tree = new_tree(start, rule, num_simulations + 1)
    tree = search(dynamics, params, loop_key, tree, rule, num_simulations)
    visits, _ = root_statistics(tree)
    weights = visits / jnp.maximum(jnp.sum(visits, axis=1, keepdims=True), 1)
    action = sample_by_visits(action_keys, visits, start.prior >= 0, temperature)
    return PolicyOutput(action, weights, Tree(tree, None))


def _without_gradient(params: PyTree, root: RecurrentRoot) -> tuple[PyTree, RecurrentRoot]:
    """No gradient flows through a search, whose loops JAX could not differentiate.

    Raises:
      InputError: a leaf of `params` is no array.
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        if not isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex)):
            name = f"params{jax.tree_util.keystr(path)}"
            raise InputError(f"{name} must be an array, got a {type(leaf).__name__}: let recurrent_fn hold it")
    stopped: tuple[PyTree, RecurrentRoot] = jax.lax.stop_gradient((params, root))
    return stopped


def _check_loop(loop_fn: Callable[..., Any]) -> None:
    if loop_fn is not jax.lax.fori_loop:
        raise InputError(f"loop_fn must be jax.lax.fori_loop, got {loop_fn!r}")
