"""Search with a learned model as mctx is given one: a `root` and a `recurrent_fn`, which run here unchanged.

A program that calls `mctx.gumbel_muzero_policy` or `mctx.muzero_policy` changes the module that it calls them from.
Roots and outputs may be mctx's own classes, or anything with their fields:

  root: `prior_logits` [B, A], `value` [B], and `embedding`, a pytree of numbers or bools with every leaf [B, ...].
  recurrent_fn: `recurrent_fn(params, rng_key, action int32 [B], embedding) -> (output, embedding)`, where `output`
    has `reward` [B], `discount` [B], `prior_logits` [B, A] and `value` [B].

The return of a step is reward + discount * value, all the way down. After a discount of 0 nothing is searched, since it
counts for nothing; mctx goes on there, with the same results above. Below the root every action is legal.

These functions are not jitted, as mctx's are not: call them in a `jax.jit` of yours. Axis letters: see `tree.py`; here
K is A.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.core.arrays import read
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.search.draws import add_dirichlet_noise, keys_of_states, sample_by_visits
from azjax.search.dynamics import Judgement, Occurred, Step
from azjax.search.gumbel import search_from
from azjax.search.lanes import legal_logits, legal_softmax
from azjax.search.policies import check_num_simulations
from azjax.search.root import Root
from azjax.search.selection import Fold
from azjax.search.tree import RETURNS, ROOT, VISITS, Tree, root_statistics
from azjax.search.value_search import root_values, search_with_values

RecurrentFn = Callable[[Any, chex.PRNGKey, chex.Array, Any], tuple[Any, Any]]

_SMALLEST_SPREAD = 1e-8  # of Q that is stretched to 0..1, as in mctx


@pytree_dataclass
class PolicyOutput:
    """What a search found: the fields of mctx's `PolicyOutput`, and those of its `search_tree.summary()`.

    action: int32 [B].
    action_weights: float32 [B, A]; the training target.
    value: float32 [B]; mean value of the root.
    visits: int32 [B, A]; of the root's actions.
    q_values: float32 [B, A]; mean return of each action, 0 where it was not visited.
    search_tree: the search trees; our `Tree`, whose states are the embeddings.
    """

    action: chex.Array
    action_weights: chex.Array
    value: chex.Array
    visits: chex.Array
    q_values: chex.Array
    search_tree: Tree


def gumbel_muzero_policy(
    params: Any,
    rng_key: chex.PRNGKey,
    root: Any,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: chex.Array | None = None,
    max_depth: None = None,
    *,
    max_num_considered_actions: int = 16,
    gumbel_scale: chex.Numeric = 1.0,
    maxvisit_init: chex.Numeric = 50.0,
    value_scale: chex.Numeric = 0.1,
    rescale_values: chex.Numeric = True,
) -> PolicyOutput:
    """Gumbel MuZero's search (Danihelka et al. 2022), as `mctx.gumbel_muzero_policy`.

    Visits, actions and weights are mctx's up to rounding, with the same Gumbel noise for the same key; `recurrent_fn`
    is handed other keys. In place of `qtransform` there are options of mctx's default one.

    Args:
      params: handed to `recurrent_fn`.
      rng_key: consumed by the Gumbel noise and `recurrent_fn`.
      root: where the search starts; see above.
      recurrent_fn: the model; see above.
      num_simulations: in each tree, at least 1.
      invalid_actions: [B, A]; nonzero for actions that the root may not choose.
      max_depth: None alone, which is mctx's default.
      max_num_considered_actions: actions that the root tries at most, at least 1.
      gumbel_scale: of the noise in the root's logits.
      maxvisit_init: of the completed Q; see `azjax.search.gumbel_policy`.
      value_scale: likewise.
      rescale_values: likewise.

    Raises:
      ValueError: an argument out of its range, or an array of another shape.
    """
    loop_key, noise_key = jax.random.split(rng_key)  # as in mctx, so that the noise is the same
    start = root_of(root, invalid_actions)
    # Drawn along one axis: XLA compiles a draw of two for a second.
    draws = jax.random.gumbel(noise_key, (start.prior.size,), jnp.float32).reshape(start.prior.shape)
    noise = jnp.asarray(gumbel_scale, jnp.float32) * draws
    found = search_from(
        RecurrentDynamics.of(recurrent_fn, start, num_simulations, max_depth),
        params,
        loop_key,
        start,
        noise,
        num_simulations=num_simulations,
        max_num_considered_actions=max_num_considered_actions,
        maxvisit_init=maxvisit_init,
        value_scale=value_scale,
        rescale_values=rescale_values,
    )
    return _output(found.tree, found.winner, found.improved)


def muzero_policy(
    params: Any,
    rng_key: chex.PRNGKey,
    root: Any,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: chex.Array | None = None,
    max_depth: None = None,
    *,
    dirichlet_fraction: chex.Numeric = 0.25,
    dirichlet_alpha: chex.Numeric = 0.3,
    pb_c_init: chex.Numeric = 1.25,
    pb_c_base: chex.Numeric = 19652.0,
    temperature: chex.Numeric = 1.0,
) -> PolicyOutput:
    """MuZero's search (Schrittwieser et al. 2020), as `mctx.muzero_policy`; see `MinMaxPuct`.

    Without Dirichlet noise the visits are mctx's, ties apart: mctx breaks them at random, this takes the first action.
    The noise is drawn over the valid actions alone, where mctx draws it over all of them. There is no `qtransform`.

    Args:
      params: see `gumbel_muzero_policy`.
      rng_key: consumed by the root's noise, `recurrent_fn` and the choice of action.
      root: see `gumbel_muzero_policy`.
      recurrent_fn: see `gumbel_muzero_policy`.
      num_simulations: in each tree, at least 1.
      invalid_actions: [B, A]; nonzero for actions that the root may not choose.
      max_depth: None alone, which is mctx's default.
      dirichlet_fraction: share of the noise in the root's priors, 0..1.
      dirichlet_alpha: concentration of the noise.
      pb_c_init: c_1 of the paper.
      pb_c_base: c_2 of the paper.
      temperature: the action is drawn from visits^(1 / temperature); 0 takes the most visited.

    Raises:
      ValueError: see `gumbel_muzero_policy`.
    """
    check_num_simulations(num_simulations)
    start_key, loop_key = jax.random.split(rng_key)
    start = root_of(root, invalid_actions)
    noise_keys, action_keys = keys_of_states(start_key, len(start.prior), 2)
    start = start._replace(prior=add_dirichlet_noise(noise_keys, start.prior, dirichlet_fraction, dirichlet_alpha))
    rule = MinMaxPuct(
        values=root_values(start, num_simulations),
        pb_c_init=jnp.asarray(pb_c_init, jnp.float32),
        pb_c_base=jnp.asarray(pb_c_base, jnp.float32),
    )
    dynamics = RecurrentDynamics.of(recurrent_fn, start, num_simulations, max_depth)
    tree = search_with_values(dynamics, params, loop_key, start, rule, num_simulations)
    visits, _ = root_statistics(tree)
    weights = visits / jnp.maximum(jnp.sum(visits, axis=1, keepdims=True), 1)
    return _output(tree, sample_by_visits(action_keys, visits, start.prior >= 0, temperature), weights)


def _output(tree: Tree, action: chex.Array, action_weights: chex.Array) -> PolicyOutput:
    visits, q_values = root_statistics(tree)
    value = tree.sums[ROOT, :, RETURNS] / tree.sums[ROOT, :, VISITS]
    return PolicyOutput(action, action_weights, value, visits, q_values, tree)


def root_of(root: Any, invalid_actions: chex.Array | None) -> Root:
    """The roots of a search, from mctx's `root`. A row without a valid action is over."""
    prior_logits = jnp.asarray(root.prior_logits, jnp.float32)
    value = jnp.asarray(root.value, jnp.float32)
    if prior_logits.ndim != 2:
        raise InputError(f"root.prior_logits must have the shape [B, A], got {prior_logits.shape}")
    shape = prior_logits.shape
    if value.shape != shape[:1]:
        raise InputError(f"root.value must have the shape {shape[:1]} of the batch, got {value.shape}")
    valid = jnp.ones(shape, bool) if invalid_actions is None else jnp.logical_not(invalid_actions)
    if valid.shape != shape:
        raise InputError(f"invalid_actions must have the shape {shape} of root.prior_logits, got {valid.shape}")
    logits = legal_logits(prior_logits.T, valid.T)
    return Root(
        histories=None,
        keys=None,
        positions=jax.tree.map(jnp.asarray, root.embedding),
        terminated=~jnp.any(valid, axis=1),
        prior=legal_softmax(logits).T,
        judgement=Judgement(None, logits, value),
    )


@dataclasses.dataclass(frozen=True)
class RecurrentDynamics:
    """`recurrent_fn` as a simulation asks it; see `azjax.search.dynamics.Dynamics`. Hashable by value."""

    recurrent_fn: RecurrentFn
    num_actions: int
    max_depth: int

    @classmethod
    def of(cls, recurrent_fn: RecurrentFn, root: Root, num_simulations: int, max_depth: None) -> "RecurrentDynamics":
        """Of a search from `root`."""
        if max_depth is not None:
            raise InputError(f"max_depth must be None, got {max_depth!r}: a search is as deep as its simulations go")
        return cls(recurrent_fn, root.prior.shape[1], num_simulations)

    def step(self, params: Any, key: chex.PRNGKey, states: Any, action: chex.Array, occurred: Occurred | None) -> Step:
        """Takes `action` [B] at embeddings, every leaf [B, ...]."""
        del occurred
        output, following = self.recurrent_fn(params, key, action, states)
        # A tree stores them as it stores the root's.
        following = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), following, states)
        reward, discount, value = (
            jnp.asarray(number, jnp.float32) for number in (output.reward, output.discount, output.value)
        )
        prior_logits = jnp.asarray(output.prior_logits, jnp.float32)
        chex.assert_shape([reward, discount, value], action.shape)
        chex.assert_shape(prior_logits, (*action.shape, self.num_actions))
        logits = legal_logits(prior_logits.T, jnp.bool_(True))
        return Step(following, reward, discount, Judgement(None, logits, value))

    def judge(self, params: Any, key: chex.PRNGKey, states: Any, output: Judgement) -> Judgement:
        """What came with the step."""
        del params, key, states
        return output


@pytree_dataclass
class MinMaxPuct:
    """Q + P sqrt(N) / (1 + n) (c_1 + log((1 + N + c_2) / c_2)), Schrittwieser et al. 2020, appendix B.

    N are the visits of the node, its own evaluation included, and n those of the child. Q is stretched to 0..1 between
    the lowest and the highest of the node's value and its children's Qs, as mctx does; an unvisited child has 0.
    Features are Q, P / (1 + n) and n.

    values: float32 [N * B]; what the model said of each node.
    pb_c_init, pb_c_base: float32 []; c_1 and c_2.
    """

    values: chex.Array
    pb_c_init: chex.Array
    pb_c_base: chex.Array

    @property
    def folds(self) -> bool:
        return True

    def features(self, value: chex.Array, prior: chex.Array, visits: chex.Array) -> tuple[chex.Array, ...]:
        return value, prior / (1 + visits), visits

    def untried_features(self, prior: chex.Array) -> tuple[chex.Array, ...]:
        return jnp.zeros_like(prior), prior, jnp.zeros_like(prior)

    def terms(self, visits: chex.Array, place: chex.Array, fold: Fold) -> tuple[chex.Array, ...]:
        def see(carry: tuple, lanes: tuple[chex.Array, ...]) -> tuple:
            total, lowest, highest = carry
            q, _, lane_visits = lanes
            tried = lane_visits > 0
            return (
                total + jnp.sum(jnp.where(tried, lane_visits * q, 0.0), axis=0),
                jnp.minimum(lowest, jnp.min(jnp.where(tried, q, jnp.inf), axis=0)),
                jnp.maximum(highest, jnp.max(jnp.where(tried, q, -jnp.inf), axis=0)),
            )

        zeros = jnp.zeros_like(visits)
        total, lowest, highest = fold(see, (zeros, zeros + jnp.inf, zeros - jnp.inf))
        mean = (read(self.values, place) + total) / visits
        lowest, highest = jnp.minimum(lowest, mean), jnp.maximum(highest, mean)
        exploration = self.pb_c_init + jnp.log((visits + self.pb_c_base + 1) / self.pb_c_base)
        return lowest, 1 / jnp.maximum(highest - lowest, _SMALLEST_SPREAD), exploration * jnp.sqrt(visits)

    def score(self, terms: tuple[chex.Array, ...], features: tuple[chex.Array, ...]) -> chex.Array:
        lowest, scale, exploration = terms
        q, weight, visits = features
        return jnp.where(visits > 0, (q - lowest) * scale, q) + exploration * weight
