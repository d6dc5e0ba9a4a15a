"""Search with a learned model, given as in mctx: a `root` and a `recurrent_fn`, which run here unchanged.

A program that calls `mctx.gumbel_muzero_policy` or `mctx.muzero_policy` changes the module that it calls them from.
Roots and outputs may be mctx's own classes, or anything with their fields:

  root: `prior_logits` [B, A], `value` [B], and `embedding`, a pytree of numbers or bools with every leaf [B, ...].
  recurrent_fn: `recurrent_fn(params, rng_key, action int32 [B], embedding) -> (output, embedding)`, where `output`
    has `reward` [B], `discount` [B], `prior_logits` [B, A] and `value` [B].

The return of a step is reward + discount * value, all the way down. Nothing is searched after a discount of 0, which
makes the value irrelevant; mctx searches on, with the same results above. Below the root every action is legal.

These functions are not jitted, as mctx's are not: call them inside a `jax.jit` of your own. Axis letters: see
`tree.py`; here K is A; `R` nodes.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float32, Int32, PRNGKeyArray, PyTree, Real, Shaped

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.search.draws import add_dirichlet_noise, keys_of_states, sample_by_visits
from azjax.search.dynamics import Evaluation, Occurred, Root, Step
from azjax.search.gumbel import check_considered, gumbel_search
from azjax.search.hyper import traced
from azjax.search.policy import check_num_simulations
from azjax.search.priors import legal_logits, legal_softmax
from azjax.search.result import root_statistics
from azjax.search.rules.completed_q import CompletedQ
from azjax.search.rules.improved_policy import ImprovedPolicy
from azjax.search.rules.min_max_puct import MinMaxPuct
from azjax.search.search import new_tree, search
from azjax.search.tree import ROOT, Tree


@runtime_checkable
class RecurrentRoot(Protocol):
    """mctx's `RootFnOutput`."""

    @property
    def prior_logits(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def embedding(self) -> Any: ...


@runtime_checkable
class RecurrentOutput(Protocol):
    """mctx's `RecurrentFnOutput`."""

    @property
    def reward(self) -> Any: ...
    @property
    def discount(self) -> Any: ...
    @property
    def prior_logits(self) -> Any: ...
    @property
    def value(self) -> Any: ...


RecurrentFn: TypeAlias = Callable[[Any, Any, Any, Any], tuple[RecurrentOutput, Any]]


@pytree_dataclass
class PolicyOutput:
    """The fields of mctx's `PolicyOutput`, and those of its `search_tree.summary()`.

    action_weights: the training target.
    value: mean value of the root.
    visits: of the root's actions.
    q_values: mean return of each action, 0 where it was not visited.
    search_tree: the search trees; azjax's `Tree`, whose states are the embeddings.
    """

    action: Int32[Array, "B"]
    action_weights: Float32[Array, "B A"]
    value: Float32[Array, "B"]
    visits: Int32[Array, "B A"]
    q_values: Float32[Array, "B A"]
    search_tree: Tree


def gumbel_muzero_policy(
    params: PyTree,
    rng_key: PRNGKeyArray,
    root: RecurrentRoot,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: Shaped[ArrayLike, "..."] | None = None,
    max_depth: int | None = None,
    *,
    max_num_considered_actions: int = 16,
    gumbel_scale: Real[ArrayLike, ""] = 1.0,
    maxvisit_init: Real[ArrayLike, ""] = 50.0,
    value_scale: Real[ArrayLike, ""] = 0.1,
    rescale_values: Shaped[ArrayLike, ""] = True,
) -> PolicyOutput:
    """Gumbel MuZero's search (Danihelka et al. 2022), as `mctx.gumbel_muzero_policy`.

    Visits, actions and weights are mctx's up to rounding, with the same Gumbel noise for the same key; `recurrent_fn`
    gets other keys. The options of mctx's default `qtransform` are arguments here.

    Args:
      params: for `recurrent_fn`.
      rng_key: consumed by the Gumbel noise and `recurrent_fn`.
      root: where the search starts; see above.
      recurrent_fn: the model; see above.
      num_simulations: in each tree, at least 1.
      invalid_actions: [B, A]; nonzero for actions that are illegal at the root.
      max_depth: must be None, which is mctx's default.
      max_num_considered_actions: actions that the root tries at most, at least 1.
      gumbel_scale: of the noise in the root's logits.
      maxvisit_init: of the completed Q; see `azjax.search.gumbel_policy`.
      value_scale: likewise.
      rescale_values: likewise.

    Raises:
      InputError: an argument out of its range, or an array of another shape.
    """
    check_num_simulations(num_simulations)
    check_considered(max_num_considered_actions)
    loop_key, noise_key = jax.random.split(rng_key)  # as in mctx, so that the noise is the same
    start = root_of(root, invalid_actions)
    # Drawn along one axis: XLA compiles a draw of two for a second.
    draws = jax.random.gumbel(noise_key, (start.prior.size,), jnp.float32).reshape(start.prior.shape)
    noise = jnp.asarray(gumbel_scale, jnp.float32) * draws
    numbers = traced(maxvisit_init), traced(value_scale)
    rule = ImprovedPolicy(CompletedQ(*numbers, jnp.asarray(rescale_values, bool), start.prior.shape[1]))
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
    return _output(searched.tree, searched.winner, searched.improved_policy)


def muzero_policy(
    params: PyTree,
    rng_key: PRNGKeyArray,
    root: RecurrentRoot,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: Shaped[ArrayLike, "..."] | None = None,
    max_depth: int | None = None,
    *,
    dirichlet_fraction: Real[ArrayLike, ""] = 0.25,
    dirichlet_alpha: Real[ArrayLike, ""] = 0.3,
    pb_c_init: Real[ArrayLike, ""] = 1.25,
    pb_c_base: Real[ArrayLike, ""] = 19652.0,
    temperature: Real[ArrayLike, ""] = 1.0,
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
      invalid_actions: [B, A]; nonzero for actions that are illegal at the root.
      max_depth: must be None, which is mctx's default.
      dirichlet_fraction: share of the noise in the root's priors, 0..1.
      dirichlet_alpha: concentration of the noise.
      pb_c_init: c_1 of the paper.
      pb_c_base: c_2 of the paper.
      temperature: the action is drawn from visits^(1 / temperature); 0 takes the most visited.

    Raises:
      InputError: see `gumbel_muzero_policy`.
    """
    check_num_simulations(num_simulations)
    start_key, loop_key = jax.random.split(rng_key)
    start = root_of(root, invalid_actions)
    noise_keys, action_keys = keys_of_states(start_key, len(start.prior), 2)
    start = start._replace(prior=add_dirichlet_noise(noise_keys, start.prior, dirichlet_fraction, dirichlet_alpha))
    rule = MinMaxPuct(traced(pb_c_init), traced(pb_c_base))
    dynamics = RecurrentDynamics.create(recurrent_fn, start, num_simulations, max_depth)
    tree = new_tree(start, rule, num_simulations + 1)
    tree = search(dynamics, params, loop_key, tree, rule, num_simulations)
    visits, _ = root_statistics(tree)
    weights = visits / jnp.maximum(jnp.sum(visits, axis=1, keepdims=True), 1)
    return _output(tree, sample_by_visits(action_keys, visits, start.prior >= 0, temperature), weights)


def _output(tree: Tree, action: Int32[Array, "B"], action_weights: Float32[Array, "B A"]) -> PolicyOutput:
    visits, q_values = root_statistics(tree)
    return PolicyOutput(action, action_weights, tree.nodes.q[ROOT], visits, q_values, tree)


def root_of(root: RecurrentRoot, invalid_actions: Shaped[ArrayLike, "..."] | None) -> Root:
    """The roots of a search, from mctx's `root`. A row without a valid action counts as terminated."""
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
        evaluation=Evaluation(None, logits, value),
    )


@dataclasses.dataclass(frozen=True)
class RecurrentDynamics:
    """`recurrent_fn` as `azjax.search.dynamics.Dynamics`. Hashable by value."""

    recurrent_fn: RecurrentFn
    num_actions: int
    max_depth: int

    @classmethod
    def create(
        cls, recurrent_fn: RecurrentFn, root: Root, num_simulations: int, max_depth: int | None
    ) -> "RecurrentDynamics":
        """For a search from `root`."""
        if max_depth is not None:
            raise InputError(f"max_depth must be None, got {max_depth!r}: a search is as deep as its simulations go")
        return cls(recurrent_fn, root.prior.shape[1], num_simulations)

    def step(
        self, params: PyTree, key: PRNGKeyArray, states: PyTree, action: Int32[Array, "B"], occurred: Occurred | None
    ) -> Step:
        """Takes `action` at the embeddings `states`."""
        del occurred
        output, following = self.recurrent_fn(params, key, action, states)
        # A tree stores embeddings in the types of the root's.
        following = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), following, states)
        reward, discount, value = (
            jnp.asarray(number, jnp.float32) for number in (output.reward, output.discount, output.value)
        )
        prior_logits = jnp.asarray(output.prior_logits, jnp.float32)
        chex.assert_shape([reward, discount, value], action.shape)
        chex.assert_shape(prior_logits, (*action.shape, self.num_actions))
        logits = legal_logits(prior_logits.T, jnp.bool_(True))
        return Step(following, reward, discount, Evaluation(None, logits, value))

    def evaluate(self, params: PyTree, key: PRNGKeyArray, states: PyTree, output: Evaluation) -> Evaluation:
        """The evaluation that came with the step."""
        del params, key, states
        return output
