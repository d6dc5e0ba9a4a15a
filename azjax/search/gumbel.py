"""Gumbel AlphaZero: policy improvement by planning with Gumbel (Danihelka et al. 2022).

The root tries its most promising actions by sequential halving; below it selection follows an improved policy. The
root's improved policy is the training target. Axis letters: see `tree.py`; `J` considered slots of the root.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float32, Int32, PRNGKeyArray, PyTree, Real, Shaped

from azjax.core.arrays import argmax_over_slots, read
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, replace_fields
from azjax.core.whole_numbers import whole
from azjax.games.game import AnyGame, State
from azjax.search.draws import Keys, Number, gumbel_noise, keys_of_states
from azjax.search.dynamics import Dynamics, Evaluator, Root, evaluate_root
from azjax.search.edges import NO_CHILD
from azjax.search.hyper import SearchHyper, traced
from azjax.search.path import FirstStep
from azjax.search.policy import SearchPolicy, grow
from azjax.search.result import SearchResult, root_statistics, statistics_of, summarize, to_action, to_actions
from azjax.search.rules.completed_q import CompletedQ
from azjax.search.rules.improved_policy import ImprovedPolicy
from azjax.search.selection import VisitedTerms
from azjax.search.solver import playable, proven_root_returns
from azjax.search.tree import Tree

_C = TypeVar("_C")

_LOWEST_SCORE = -1e9  # of a legal slot, however low its prior: holes are below it


@dataclasses.dataclass(frozen=True)
class GumbelAlphaZero(SearchPolicy):
    """Gumbel AlphaZero's search.

    `SearchResult.action` is the winner of sequential halving: a draw from the improved policy, or without noise the
    best action found. `SearchResult.policy` is the improved policy, the softmax of logits + sigma(completed Q), where
    sigma(Q) = (maxvisit_init + most visits) * value_scale * Q, and a slot without visits has the mixed value as its Q
    (the paper's appendix D). `SearchResult.value` is the mean of completed Q under that policy. With a solver a proven
    return replaces the Q of its action. With a `tree` to continue, the halving counts the visits of this search alone,
    and the Qs all of them.

    max_num_considered_actions: actions that the root tries at most, at least 1.
    """

    max_num_considered_actions: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_considered(self.max_num_considered_actions)

    def selection(self, hyper: SearchHyper, explore: bool) -> ImprovedPolicy:
        del explore
        numbers = traced(hyper.maxvisit_init), traced(hyper.value_scale)
        return ImprovedPolicy(CompletedQ(*numbers, jnp.asarray(hyper.rescale_values, bool), self.game.num_actions))

    def search(
        self, params: PyTree, key: Keys, states: State, hyper: SearchHyper, explore: bool, tree: Tree | None
    ) -> SearchResult:
        root_keys, noise_keys, loop_keys, action_keys = keys_of_states(key, len(states.terminated), 4)
        root = evaluate_root(self.dynamics, params, root_keys[0], states)
        rule = self.selection(hyper, explore)
        noise = gumbel_noise(noise_keys, root.prior.shape[1], hyper.gumbel_scale if explore else 0.0)
        searched = gumbel_search(
            self.dynamics,
            params,
            loop_keys[0],
            root,
            noise,
            rule,
            self.begin(root, rule, tree),
            num_simulations=self.num_simulations,
            max_num_considered_actions=self.max_num_considered_actions,
            leaves_per_step=self.leaves_per_step,
        )
        tree = searched.tree
        result = summarize(self.game, tree, rule, root.prior, action_keys, 0.0)
        # The mean of the visits is no estimate: the halving visits bad actions as often as good ones at first.
        completed_q = jnp.where(searched.visits > 0, searched.q, searched.summary.mixed[:, None])
        value = jnp.sum(searched.improved_policy * completed_q, axis=1)
        return replace_fields(
            result,
            value=jnp.where(result.bounds[:, 0] == result.bounds[:, 1], result.bounds[:, 0], value),
            action=to_action(tree, searched.winner),
            policy=to_actions(self.game.num_actions, tree, searched.improved_policy),
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
    leaves_per_step: int = 1,
    solver: bool = False,
    tree: Tree | None = None,
    max_nodes: int | None = None,
) -> SearchResult:
    """`GumbelAlphaZero` in one call, jitted.

    Args:
      params: see `SearchPolicy.__call__`.
      key: likewise.
      states: likewise; every leaf [B, ...].
      game: see `SearchPolicy` (static).
      evaluator: likewise (static).
      num_simulations: likewise (static).
      max_num_considered_actions: see `GumbelAlphaZero` (static).
      gumbel_scale: of the noise in the root's logits, one number or [B]; 0 for play without chance.
      maxvisit_init: see `SearchHyper`.
      value_scale: likewise.
      rescale_values: likewise.
      leaves_per_step: see `SearchPolicy` (static).
      solver: likewise (static).
      tree: see `SearchPolicy.__call__`.
      max_nodes: see `SearchPolicy` (static).

    Raises:
      InputError: num_simulations or max_num_considered_actions below 1, num_simulations not a multiple of
        leaves_per_step, or options that disagree with `tree`.
    """
    counts = num_simulations, leaves_per_step, solver, max_nodes, max_num_considered_actions
    hyper = SearchHyper(
        gumbel_scale=gumbel_scale, maxvisit_init=maxvisit_init, value_scale=value_scale, rescale_values=rescale_values
    )
    policy = GumbelAlphaZero(game, evaluator, *counts)
    result: SearchResult = policy(params, key, states, hyper=hyper, explore=True, tree=tree)
    return result


class GumbelSearch(NamedTuple):
    """The search trees, and of their roots by slot: who won sequential halving, the improved policies, and the returns.

    visits, q: visits and mean returns of the slots, or their true returns where those are proven.
    summary: of the roots, by the rule's `q_transform`.
    """

    tree: Tree
    winner: Int32[Array, "B"]
    improved_policy: Float32[Array, "B K"]
    visits: Float32[Array, "B K"]
    q: Float32[Array, "B K"]
    summary: PyTree


def gumbel_search(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    root: Root,
    noise: Float32[Array, "B K"],
    rule: ImprovedPolicy,
    tree: Tree,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    leaves_per_step: int = 1,
) -> GumbelSearch:
    """The search of `GumbelAlphaZero`, from any roots with `noise` in their logits, in trees that begin with them."""
    valid = root.prior.T >= 0
    logits = root.evaluation.logits
    logits = jnp.where(valid, logits - jnp.max(logits, axis=0, keepdims=True), 0.0)
    noisy_logits = logits + noise.T
    num_considered = min(max_num_considered_actions, num_simulations, root.prior.shape[1])
    before, _ = root_statistics(tree)
    halving = SequentialHalving.create(rule, tree, noisy_logits, valid, before.T, num_considered, num_simulations)
    counts = num_simulations, leaves_per_step
    tree = grow(dynamics, params, key, tree, rule, *counts, root_rule=halving)

    children = tree.root_children()
    visits, q = statistics_of(tree, children)[0], proven_root_returns(tree, children)
    remaining = playable(tree, children, root.prior >= 0).T
    new_visits, visits, q = (visits - before).T, visits.T.astype(jnp.float32), q.T
    edges = VisitedTerms(jnp.where(valid, q, -jnp.inf), root.prior.T, visits)

    def fold(function: Callable[[_C, VisitedTerms], _C], start: _C) -> _C:
        return function(start, edges)

    node = tree.node_statistics(tree.index(jnp.zeros(tree.batch, jnp.int32)), jnp.int32(0))
    summary = rule.q_transform.summarize(node._replace(visits=1 + jnp.sum(visits, axis=0)), fold)
    scaled_q = rule.q_transform.scaled(_of_each_slot(summary), edges)
    scores = jnp.maximum(noisy_logits + scaled_q, _LOWEST_SCORE)
    most_visits = jnp.max(jnp.where(remaining, new_visits, 0), axis=0)
    winner = jnp.argmax(jnp.where(remaining & (new_visits == most_visits[None]), scores, -jnp.inf), axis=0)
    improved = jax.nn.softmax(jnp.where(remaining, jnp.maximum(logits + scaled_q, _LOWEST_SCORE), -jnp.inf), axis=0)
    improved = jnp.where(remaining, improved, 0.0)
    return GumbelSearch(tree, winner.astype(jnp.int32), improved.T, visits.T, q.T, summary)


@pytree_dataclass
class SequentialHalving:
    """The step from the root in each simulation (Karnin et al. 2013; Danihelka et al. 2022, algorithm 1).

    Among the considered slots with a scheduled number of visits, a simulation takes the one with the highest
    noise + logits + sigma(completed Q).

    rule: scales the Qs.
    slots: the considered slots.
    noisy_logits: of those slots.
    before: their visits before this search.
    edges: to the children of those that have one, -1 for the others.
    num_legal: how many of them are legal slots.
    schedule: the number of visits that each simulation considers.
    """

    rule: ImprovedPolicy
    slots: Int32[Array, "J B"]
    noisy_logits: Float32[Array, "J B"]
    before: Int32[Array, "J B"]
    edges: Int32[Array, "J B"]
    num_legal: Int32[Array, "B"]
    schedule: Int32[Array, "num_simulations B"]

    @classmethod
    def create(
        cls,
        rule: ImprovedPolicy,
        tree: Tree,
        noisy_logits: Float32[Array, "K B"],
        valid: Bool[Array, "K B"],
        before: Int32[Array, "K B"],
        num_considered: int,
        num_simulations: int,
    ) -> "SequentialHalving":
        """For roots with these noisy logits, valid slots and visits."""
        scores = jnp.where(valid, jnp.maximum(noisy_logits, _LOWEST_SCORE), -jnp.inf)
        scores, slots = jax.lax.top_k(scores.T, num_considered)
        num_legal = jnp.minimum(jnp.sum(valid, axis=0, dtype=jnp.int32), num_considered)
        schedules = np.stack([considered_visits(count, num_simulations) for count in range(num_considered + 1)], axis=1)
        roots = tree.index(jnp.zeros(tree.batch, jnp.int32))
        return cls(
            rule=rule,
            slots=slots.T,
            noisy_logits=scores.T,
            before=jnp.take_along_axis(before, slots.T, axis=0),
            edges=tree.edges.find(roots, slots.T),
            num_legal=num_legal,
            schedule=jnp.asarray(schedules)[:, num_legal],
        )

    def first_step(self, tree: Tree, simulation: Int32[Array, ""]) -> FirstStep:
        roots = tree.index(jnp.zeros(tree.batch, jnp.int32))
        legal = jnp.arange(len(self.slots), dtype=jnp.int32)[:, None] < self.num_legal[None]
        has_child = self.edges >= 0
        terms: VisitedTerms = tree.edges.read_terms(jnp.maximum(self.edges, 0))
        visits = jnp.where(has_child, terms.visits, 0.0)
        edges = terms._replace(q=jnp.where(has_child, terms.q, 0.0), visits=visits)
        statistics = tree.node_statistics(roots, jnp.int32(0))
        summary = self.rule.q_transform.summarize(statistics, tree.edges.fold(self.rule, roots))
        scaled_q = self.rule.q_transform.scaled(_of_each_slot(summary), edges)
        scores = jnp.maximum(self.noisy_logits + scaled_q, _LOWEST_SCORE)
        considered = legal & (visits - traced(self.before) == traced(self.schedule[simulation][None]))
        # A full tree adds no visits to a slot that has no child.
        considered = jnp.where(jnp.any(considered, axis=0)[None], considered, legal)
        best = argmax_over_slots(jnp.where(considered, scores, -jnp.inf))
        at = best * tree.batch + roots
        edge = read(self.edges.reshape(-1), at)
        child = jnp.where(edge >= 0, read(tree.edges.child, jnp.maximum(edge, 0)), NO_CHILD)
        return FirstStep(read(self.slots.reshape(-1), at), jnp.maximum(edge, 0), child)

    def with_edge(self, slot: Int32[Array, "B"], edge: Int32[Array, "B"]) -> "SequentialHalving":
        edges = jnp.where(self.slots == slot[None], edge[None], self.edges)
        return replace_fields(self, edges=edges)


def _of_each_slot(summary: PyTree) -> PyTree:
    """A summary [1, R] of nodes, for edges [L, R]."""
    return jax.tree.map(lambda term: term[None], summary)


def check_considered(max_num_considered_actions: int) -> None:
    """Raises InputError unless it is a whole number of at least 1."""
    if (whole(max_num_considered_actions) or 0) < 1:
        raise InputError(
            f"max_num_considered_actions must be a whole number of at least 1, got {max_num_considered_actions!r}"
        )


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
