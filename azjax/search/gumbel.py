"""Gumbel AlphaZero: policy improvement by planning with Gumbel (Danihelka et al. 2022).

The root tries its most promising actions by sequential halving; below it selection follows an improved policy. The
root's improved policy is the training target. Axis letters: see `tree.py`; `J` considered slots of the root.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float32, Int32, PRNGKeyArray, PyTree, Real, Shaped

from azjax.core.arrays import flat_index, read, write_rows
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.games.game import AnyGame, State
from azjax.search.descend import FirstStep
from azjax.search.draws import Keys, Number, gumbel_noise, keys_of_states
from azjax.search.dynamics import Dynamics, Evaluator, GameDynamics, Root, evaluate_root
from azjax.search.edges import NO_CHILD
from azjax.search.improved_policy import ImprovedPolicy, fold_of, proven_or
from azjax.search.policies import check_num_simulations, playable, summarize, to_action, to_actions
from azjax.search.simulate import root_values, search_with_values
from azjax.search.tree import RETURNS, ROOT, VISITS, SearchResult, Tree, by_root_slot, root_statistics

_LOWEST_SCORE = -1e9  # of a legal slot, however low its prior: holes are below it


@functools.partial(
    jax.jit, static_argnames=("game", "evaluator", "num_simulations", "max_num_considered_actions", "solver")
)
def gumbel_policy(
    params: PyTree,
    key: Keys,
    states: State,
    *,
    game: AnyGame,
    evaluator: Evaluator,
    num_simulations: int,
    max_num_considered_actions: int = 16,
    gumbel_scale: Number = 1.0,
    maxvisit_init: Real[ArrayLike, ""] = 50.0,
    value_scale: Real[ArrayLike, ""] = 0.1,
    rescale_values: Shaped[ArrayLike, ""] = True,
    solver: bool = False,
) -> SearchResult:
    """Gumbel AlphaZero's search (Danihelka et al. 2022) from each state of a batch.

    `SearchResult.action` is the winner of sequential halving: a draw from the improved policy, or with a
    `gumbel_scale` of 0 the best action found. `SearchResult.policy` is the improved policy, the softmax of
    logits + sigma(completed Q), where sigma(Q) = (maxvisit_init + most visits) * value_scale * Q, and a slot without
    visits has the mixed value as its Q (the paper's appendix D).

    Args:
      params: what the evaluator reads, such as a network's variables.
      key: consumed by the Gumbel noise and the evaluator; see `alphazero_policy`.
      states: a batch of states; every leaf [B, ...].
      game: the rules (static).
      evaluator: evaluates new leaves; see `azjax.search.evaluators` (static).
      num_simulations: new simulations in each tree, at least 1 (static).
      max_num_considered_actions: actions that the root tries at most, at least 1 (static).
      gumbel_scale: of the noise in the root's logits, one number or [B]; 0 for play without chance.
      maxvisit_init: c_visit of the paper.
      value_scale: c_scale of the paper.
      rescale_values: stretch the completed Q of a node to 0..1, as mctx does.
      solver: see `alphazero_policy`; a proven return replaces the Q of its action (static).

    Raises:
      InputError: num_simulations or max_num_considered_actions below 1.
    """
    root_keys, noise_keys, loop_keys = keys_of_states(key, len(states.terminated), 3)
    dynamics = GameDynamics(game, evaluator)
    root = evaluate_root(dynamics, params, root_keys[0], states)
    searched = gumbel_search(
        dynamics,
        params,
        loop_keys[0],
        root,
        gumbel_noise(noise_keys, root.prior.shape[1], gumbel_scale),
        num_simulations=num_simulations,
        max_num_considered_actions=max_num_considered_actions,
        maxvisit_init=maxvisit_init,
        value_scale=value_scale,
        rescale_values=rescale_values,
        solver=solver,
    )
    tree = searched.tree
    return dataclasses.replace(
        summarize(game, tree, noise_keys, 0.0),
        action=to_action(tree, searched.winner),
        policy=to_actions(game, searched.improved_policy, None if tree.actions is None else tree.actions[ROOT]),
    )


class GumbelSearch(NamedTuple):
    """The search trees, the slots of the roots that won sequential halving, and the improved policies by slot."""

    tree: Tree
    winner: Int32[Array, "B"]
    improved_policy: Float32[Array, "B K"]


def gumbel_search(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    root: Root,
    noise: Float32[Array, "B K"],
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    maxvisit_init: Real[ArrayLike, ""],
    value_scale: Real[ArrayLike, ""],
    rescale_values: Shaped[ArrayLike, ""],
    solver: bool = False,
) -> GumbelSearch:
    """The search of `gumbel_policy`, from any roots with `noise` in their logits."""
    check_num_simulations(num_simulations)
    if max_num_considered_actions < 1:
        raise InputError(f"max_num_considered_actions must be at least 1, got {max_num_considered_actions}")
    batch, num_slots = root.prior.shape
    valid = root.prior.T >= 0
    logits = root.evaluation.logits
    logits = jnp.where(valid, logits - jnp.max(logits, axis=0, keepdims=True), 0.0)
    noisy_logits = logits + noise.T
    num_considered = min(max_num_considered_actions, num_simulations, num_slots)
    rule = ImprovedPolicy(
        values=root_values(root, num_simulations),
        maxvisit_init=jnp.asarray(maxvisit_init, jnp.float32),
        value_scale=jnp.asarray(value_scale, jnp.float32),
        rescale_values=jnp.asarray(rescale_values, bool),
        num_actions=dynamics.num_actions,
    )
    halving = SequentialHalving.create(noisy_logits, valid, root.prior, num_considered, num_simulations)
    tree = search_with_values(dynamics, params, key, root, rule, num_simulations, halving, solver)

    visits, q = root_statistics(tree)
    if tree.bounds is not None:
        means = tree.sums[..., RETURNS] / jnp.maximum(tree.sums[..., VISITS], 1)
        q = by_root_slot(tree, proven_or(means, tree.facts, tree.bounds))
    remaining = playable(tree, visits, root.prior >= 0).T
    visits, q = visits.T, q.T
    lanes = jnp.where(valid, q, -jnp.inf), root.prior.T, visits.astype(jnp.float32)
    node_visits = 1 + jnp.sum(lanes[2], axis=0)
    summary = rule.summarize(node_visits, flat_index(jnp.zeros(batch, jnp.int32), batch), fold_of(lanes))
    scaled_q = rule.scaled_q(summary, lanes)
    scores = jnp.maximum(noisy_logits + scaled_q, _LOWEST_SCORE)
    most_visits = jnp.max(jnp.where(remaining, visits, 0), axis=0)
    winner = jnp.argmax(jnp.where(remaining & (visits == most_visits[None]), scores, -jnp.inf), axis=0)
    improved = jax.nn.softmax(jnp.where(remaining, logits + scaled_q, _LOWEST_SCORE), axis=0)
    improved = jnp.where(remaining, improved, 0.0)
    return GumbelSearch(tree, winner.astype(jnp.int32), improved.T)


@pytree_dataclass
class SequentialHalving:
    """The step from the root in each simulation (Karnin et al. 2013; Danihelka et al. 2022, algorithm 1).

    Among the considered slots with a scheduled number of visits, a simulation takes the one with the highest
    noise + logits + sigma(completed Q). Slots without visits all have the same Q, so the first J simulations try the J
    slots of highest noise + logits in turn: the child of considered slot j is node j + 1.

    slots: the considered slots.
    noisy_logits, prior: of those slots.
    edges: flat; to the children of those that have one.
    num_legal: how many of them are legal slots.
    schedule: the number of visits that each simulation considers.
    num_considered: J.
    """

    slots: Int32[Array, "J B"]
    noisy_logits: Float32[Array, "J B"]
    prior: Float32[Array, "J B"]
    edges: Int32[Array, "JB"]
    num_legal: Int32[Array, "B"]
    schedule: Int32[Array, "num_simulations B"]
    num_considered: int = static_field()

    @classmethod
    def create(
        cls,
        noisy_logits: Float32[Array, "K B"],
        valid: Bool[Array, "K B"],
        prior: Float32[Array, "B K"],
        num_considered: int,
        num_simulations: int,
    ) -> "SequentialHalving":
        """For roots with these noisy logits, valid slots and priors."""
        scores = jnp.where(valid, jnp.maximum(noisy_logits, _LOWEST_SCORE), -jnp.inf)
        scores, slots = jax.lax.top_k(scores.T, num_considered)
        num_legal = jnp.minimum(jnp.sum(valid, axis=0, dtype=jnp.int32), num_considered)
        schedules = np.stack([considered_visits(count, num_simulations) for count in range(num_considered + 1)], axis=1)
        batch = len(prior)
        roots = flat_index(jnp.zeros(batch, jnp.int32), batch)
        return cls(
            slots=slots.T,
            noisy_logits=scores.T,
            prior=jnp.take_along_axis(prior, slots, axis=1).T,
            # `DenseEdges` have these edges from the start; `with_edge` adds those of `BlockedEdges`.
            edges=(roots[None] * prior.shape[1] + slots.T).reshape(-1),
            num_legal=num_legal,
            schedule=jnp.asarray(schedules)[:, num_legal],
            num_considered=num_considered,
        )

    def first_step(self, tree: Tree, rule: ImprovedPolicy, simulation: Int32[Array, ""]) -> FirstStep:
        """The step of simulation number `simulation`."""
        batch, size = tree.batch, self.num_considered * tree.batch
        lane = jnp.arange(self.num_considered, dtype=jnp.int32)[:, None]
        legal = lane < self.num_legal[None]
        sums = tree.sums[2 * batch : 2 * (size + batch)].reshape(-1, batch, 2)
        visits = jnp.where(legal, sums[..., VISITS], 0.0)
        q = sums[..., RETURNS] / jnp.maximum(visits, 1)
        if tree.bounds is not None:
            facts = tree.facts[3 * batch : 3 * (size + batch)].reshape(-1, batch, 3)
            bounds = tree.bounds[2 * batch : 2 * (size + batch)].reshape(-1, batch, 2)
            q = proven_or(q, facts, bounds)
        q = jnp.where(legal, q, -jnp.inf)
        lanes = q, self.prior, visits
        roots = flat_index(jnp.zeros(batch, jnp.int32), batch)
        summary = rule.summarize(1 + jnp.sum(visits, axis=0), roots, fold_of(lanes))
        scores = jnp.maximum(self.noisy_logits + rule.scaled_q(summary, lanes), _LOWEST_SCORE)
        considered = legal & (visits == self.schedule[simulation][None])
        best = jnp.argmax(jnp.where(considered, scores, -jnp.inf), axis=0).astype(jnp.int32)
        at = best * batch + roots
        edge = read(self.edges, at)
        child = jnp.where(read(visits.reshape(-1), at) > 0, read(tree.edges.child, edge), NO_CHILD)
        return FirstStep(read(self.slots.reshape(-1), at), edge, child)

    def with_edge(self, edge: Int32[Array, "B"], simulation: Int32[Array, ""]) -> "SequentialHalving":
        """Takes in the edges to the nodes that the simulation made."""
        lane = jnp.minimum(simulation, self.num_considered - 1)
        is_root_child = simulation < self.num_legal
        old = jax.lax.dynamic_slice_in_dim(self.edges, lane * len(edge), len(edge))
        return dataclasses.replace(self, edges=write_rows(self.edges, jnp.where(is_root_child, edge, old), lane))


def considered_visits(num_considered: int, num_simulations: int) -> Int32[np.ndarray, "num_simulations"]:
    """The number of visits that sequential halving considers in each simulation.

    In every phase half of the slots drop out, until two are left. The phases share the simulations evenly.
    """
    if num_considered <= 1:
        return np.arange(num_simulations, dtype=np.int32)
    num_phases = (num_considered - 1).bit_length()
    sequence: list[int] = []
    visits, left = 0, num_considered
    while len(sequence) < num_simulations:
        for _ in range(max(1, num_simulations // (num_phases * left))):
            sequence += [visits] * left
            visits += 1
        left = max(2, left // 2)
    return np.array(sequence[:num_simulations], np.int32)
