"""Gumbel AlphaZero: policy improvement by planning with Gumbel (Danihelka et al. 2022).

The root tries its most promising actions by sequential halving, below it selection follows an improved policy, and
that of the root is the training target. Axis letters: see `tree.py`; `J` considered slots of the root, `L` rows.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.arrays import places, read, write_rows
from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.search.backward import LOST
from azjax.search.descend import FirstStep
from azjax.search.draws import gumbel_noise, keys_of_states
from azjax.search.dynamics import Dynamics, Evaluator, GameDynamics
from azjax.search.lanes import NO_CHILD
from azjax.search.policies import check_num_simulations, playable, root_statistics, summarise, to_action, to_actions
from azjax.search.root import Root, judge_root
from azjax.search.selection import Fold
from azjax.search.tree import DISCOUNT, RETURNS, REWARD, ROOT, VISITS, SearchResult, Tree, by_root_slot
from azjax.search.value_search import root_values, search_with_values

_TINY = float(np.finfo(np.float32).tiny)
_SMALLEST_SPREAD = 1e-8  # of Q that is stretched to 0..1, as in mctx
_HIGHEST_EXPONENT = 80.0  # e^80 is within the range of float32; 1 is nothing beside it
_LOWEST_SCORE = -1e9  # of a legal slot, however low its prior: holes are below it


@functools.partial(
    jax.jit, static_argnames=("game", "evaluator", "num_simulations", "max_num_considered_actions", "solver")
)
def gumbel_policy(
    params: Any,
    key: chex.PRNGKey,
    states: Any,
    *,
    game: Game,
    evaluator: Evaluator,
    num_simulations: int,
    max_num_considered_actions: int = 16,
    gumbel_scale: chex.Numeric = 1.0,
    maxvisit_init: chex.Numeric = 50.0,
    value_scale: chex.Numeric = 0.1,
    rescale_values: chex.Numeric = True,
    solver: bool = False,
) -> SearchResult:
    """Gumbel AlphaZero's search (Danihelka et al. 2022) from each state of a batch.

    `SearchResult.action` is the winner of sequential halving: a draw from the improved policy, or with a
    `gumbel_scale` of 0 the best action found. `SearchResult.policy` is the improved policy, the softmax of
    logits + sigma(completed Q), where sigma(Q) = (maxvisit_init + most visits) * value_scale * Q, and a slot without
    visits takes the mixed value (the paper's appendix D).

    Args:
      params: what the evaluator reads, such as a network's variables.
      key: consumed by the Gumbel noise and the evaluator; [] or [B], see `alphazero_policy`.
      states: a batch of states; every leaf [B, ...].
      game: the rules (static).
      evaluator: judges new leaves; see `azjax.search.evaluators` (static).
      num_simulations: new simulations in each tree, at least 1 (static).
      max_num_considered_actions: actions that the root tries at most, at least 1 (static).
      gumbel_scale: [] or [B]; of the noise in the root's logits; 0 for play without chance.
      maxvisit_init: c_visit of the paper.
      value_scale: c_scale of the paper.
      rescale_values: stretch the completed Q of a node to 0..1, as mctx does; otherwise take them as they are.
      solver: see `alphazero_policy`; what is proven of an action stands for its Q (static).

    Raises:
      ValueError: num_simulations or max_num_considered_actions below 1.
    """
    root_keys, noise_keys, loop_keys = keys_of_states(key, len(states.terminated), 3)
    dynamics = GameDynamics(game, evaluator)
    root = judge_root(dynamics, params, root_keys[0], states)
    found = search_from(
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
    return dataclasses.replace(
        summarise(game, found.tree, noise_keys, 0.0),
        action=to_action(found.tree, found.winner),
        policy=to_actions(game, found.improved, None if found.tree.actions is None else found.tree.actions[ROOT]),
    )


class Found(NamedTuple):
    """What sequential halving found.

    tree: the search trees.
    winner: int32 [B]; the slot that is left.
    improved: float32 [B, K]; the improved policy.
    """

    tree: Tree
    winner: chex.Array
    improved: chex.Array


def search_from(
    dynamics: Dynamics,
    params: Any,
    key: chex.PRNGKey,
    root: Root,
    noise: chex.Array,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    maxvisit_init: chex.Numeric,
    value_scale: chex.Numeric,
    rescale_values: chex.Numeric,
    solver: bool = False,
) -> Found:
    """The search of `gumbel_policy`, from any roots with `noise` [B, K] in their logits."""
    check_num_simulations(num_simulations)
    if max_num_considered_actions < 1:
        raise InputError(f"max_num_considered_actions must be at least 1, got {max_num_considered_actions}")
    batch, num_slots = root.prior.shape
    valid = root.prior.T >= 0
    logits = root.judgement.logits
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
    halving = SequentialHalving.of(noisy_logits, valid, root.prior, num_considered, num_simulations)
    tree = search_with_values(dynamics, params, key, root, rule, num_simulations, halving, solver)

    visits, q = root_statistics(tree)
    if tree.bounds is not None:
        means = tree.sums[..., RETURNS] / jnp.maximum(tree.sums[..., VISITS], 1)
        q = by_root_slot(tree, with_proven(tree.facts, tree.bounds, means))
    standing = playable(tree, visits, root.prior >= 0).T
    visits, q = visits.T, q.T
    lanes = jnp.where(valid, q, -jnp.inf), root.prior.T, visits.astype(jnp.float32)
    node_visits = 1 + jnp.sum(lanes[2], axis=0)
    scaled_q = rule.scaled_q(rule.seen(node_visits, places(jnp.zeros(batch, jnp.int32), batch), of_lanes(lanes)), lanes)
    scores = jnp.maximum(noisy_logits + scaled_q, _LOWEST_SCORE)
    most_visits = jnp.max(jnp.where(standing, visits, 0), axis=0)
    winner = jnp.argmax(jnp.where(standing & (visits == most_visits[None]), scores, -jnp.inf), axis=0)
    improved = jnp.where(standing, jax.nn.softmax(jnp.where(standing, logits + scaled_q, _LOWEST_SCORE), axis=0), 0.0)
    return Found(tree, winner.astype(jnp.int32), improved.T)


def with_proven(facts: chex.Array, bounds: chex.Array, returns: chex.Array) -> chex.Array:
    """float32 [...]: mean `returns` [...] of nodes of `facts` [..., 3] and `bounds` [..., 2], or the proven ones."""
    lower, upper = bounds[..., 0], bounds[..., 1]
    return jnp.where(lower == upper, facts[..., REWARD] + facts[..., DISCOUNT] * lower, returns)


class Seen(NamedTuple):
    """What the edges of nodes [R] have in common. Every leaf is float32 [R].

    mixed: the mixed value, the completed Q of edges without visits.
    lowest: of the completed Qs.
    highest: of the Qs of edges with visits; the mixed value where there are none.
    scale: of the completed Qs.
    """

    mixed: chex.Array
    lowest: chex.Array
    highest: chex.Array
    scale: chex.Array


class Terms(NamedTuple):
    """Terms of `ImprovedPolicy.score`. Every leaf is float32 [R].

    seen: see `Seen`.
    inverse_total: 1 / the sum of the weights of all edges.
    inverse_visits: 1 / the visits of the node.
    """

    seen: Seen
    inverse_total: chex.Array
    inverse_visits: chex.Array


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["values", "maxvisit_init", "value_scale", "rescale_values"],
    meta_fields=["num_actions"],
)
@dataclasses.dataclass(frozen=True)
class ImprovedPolicy:
    """pi'(a) - N(a) / (1 + sum N), Danihelka et al. 2022, equation 14: visits follow the improved policy pi'.

    pi' is the softmax of logits + sigma(completed Q). Features are Q, prior and visits.

    values: float32 [N * B]; what the evaluator said of each node.
    maxvisit_init, value_scale: float32 []; see `gumbel_policy`.
    rescale_values: bool []; see `gumbel_policy`.
    num_actions: A (static). As in mctx, the mixed value counts for the range of Q where any action has no visits,
      and illegal ones have none.
    """

    values: chex.Array
    maxvisit_init: chex.Array
    value_scale: chex.Array
    rescale_values: chex.Array
    num_actions: int

    @property
    def folds(self) -> bool:
        return True

    def features(self, value: chex.Array, prior: chex.Array, visits: chex.Array) -> tuple[chex.Array, ...]:
        # The range of Q is stretched to 0..1: what stands for a proven loss elsewhere would leave no room in it.
        return jnp.where(value <= LOST, -1.0, value), prior, visits

    def untried_features(self, prior: chex.Array) -> tuple[chex.Array, ...]:
        return jnp.zeros_like(prior), prior, jnp.zeros_like(prior)

    def terms(self, visits: chex.Array, place: chex.Array, fold: Fold) -> Terms:
        seen = self.seen(visits, place, fold)

        def add_weights(total: chex.Array, lanes: tuple[chex.Array, ...]) -> chex.Array:
            there = lanes[0] > -jnp.inf
            return total + jnp.sum(jnp.where(there, self._weight(_in_rows(seen), lanes), 0.0), axis=0)

        total = fold(add_weights, jnp.zeros_like(visits))
        return Terms(seen, 1 / jnp.maximum(total, _TINY), 1 / visits)

    def score(self, terms: Terms, features: tuple[chex.Array, ...]) -> chex.Array:
        q, _, visits = features
        improved = self._weight(terms.seen, features) * terms.inverse_total
        return jnp.where(q > -jnp.inf, improved - visits * terms.inverse_visits, -jnp.inf)

    def seen(self, visits: chex.Array, place: chex.Array, fold: Fold) -> Seen:
        """Of nodes at `place` [R] with `visits` [R], whose edges `fold` goes through."""
        value = read(self.values, place)

        def see(carry: tuple, lanes: tuple[chex.Array, ...]) -> tuple:
            num_tried, most_visits, prior_tried, excess, lowest, highest = carry
            q, prior, lane_visits = lanes
            tried = lane_visits > 0
            return (
                num_tried + jnp.sum(tried, axis=0),
                jnp.maximum(most_visits, jnp.max(lane_visits, axis=0)),
                prior_tried + jnp.sum(jnp.where(tried, prior, 0.0), axis=0),
                excess + jnp.sum(jnp.where(tried, prior * (q - value[None]), 0.0), axis=0),
                jnp.minimum(lowest, jnp.min(jnp.where(tried, q, jnp.inf), axis=0)),
                jnp.maximum(highest, jnp.max(jnp.where(tried, q, -jnp.inf), axis=0)),
            )

        none, zeros = jnp.zeros(visits.shape, jnp.int32), jnp.zeros_like(visits)
        start = none, zeros, zeros, zeros, zeros + jnp.inf, zeros - jnp.inf
        num_tried, most_visits, prior_tried, excess, lowest, highest = fold(see, start)
        # (value + sum N * sum(P Q) / sum P) / (1 + sum N), in a way that is exact where all Q equal the value: their
        # range, to which all is stretched, is then 0 and not a rounding.
        mixed = value + (visits - 1) / visits * (excess / jnp.maximum(prior_tried, _TINY))
        counts = num_tried < self.num_actions
        lowest = jnp.where(counts, jnp.minimum(lowest, mixed), lowest)
        spread = jnp.where(counts, jnp.maximum(highest, mixed), highest) - lowest
        spread = jnp.where(self.rescale_values, jnp.maximum(spread, _SMALLEST_SPREAD), 1.0)
        return Seen(
            mixed=mixed,
            lowest=lowest,
            highest=jnp.where(num_tried > 0, highest, mixed),
            scale=(self.maxvisit_init + most_visits) * self.value_scale / spread,
        )

    def scaled_q(self, seen: Seen, lanes: tuple[chex.Array, ...]) -> chex.Array:
        """float32 [L, R]: sigma(completed Q), less that of the lowest."""
        q, _, visits = lanes
        return (jnp.where(visits > 0, q, seen.mixed[None]) - seen.lowest[None]) * seen.scale[None]

    def _weight(self, seen: Seen, features: tuple[chex.Array, ...]) -> chex.Array:
        """What the improved policy is in proportion to, in float32's range; the exponent of the highest Q is 0."""
        q, prior, visits = features
        completed = jnp.where(visits > 0, q, seen.mixed)
        return prior * jnp.exp(jnp.minimum((completed - seen.highest) * seen.scale, _HIGHEST_EXPONENT))


def _in_rows(terms: Any) -> Any:
    return jax.tree.map(lambda term: term[None], terms)


def of_lanes(lanes: tuple[chex.Array, ...]) -> Fold:
    """Over the edges whose features are `lanes` [L, R]."""
    return lambda function, start: function(start, lanes)


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["slots", "noisy_logits", "prior", "edges", "num_legal", "schedule"],
    meta_fields=["num_considered"],
)
@dataclasses.dataclass(frozen=True)
class SequentialHalving:
    """The step that each simulation begins with (Karnin et al. 2013; Danihelka et al. 2022, algorithm 1).

    A simulation visits, of the considered slots with a stated number of visits, the one with the highest
    noise + logits + sigma(completed Q). Slots without visits all have the same Q, so that the first J simulations try
    the J slots of highest noise + logits in turn: the child in lane j is node j + 1.

    slots: int32 [J, B]; the considered ones.
    noisy_logits: float32 [J, B]; noise + logits of each.
    prior: float32 [J, B]; of each.
    edges: int32 [J * B]; to the children of those that have one.
    num_legal: int32 [B]; how many of the lanes are legal slots.
    schedule: int32 [num_simulations, B]; the number of visits that is considered.
    num_considered: J (static).
    """

    slots: chex.Array
    noisy_logits: chex.Array
    prior: chex.Array
    edges: chex.Array
    num_legal: chex.Array
    schedule: chex.Array
    num_considered: int

    @classmethod
    def of(
        cls, noisy_logits: chex.Array, valid: chex.Array, prior: chex.Array, num_considered: int, num_simulations: int
    ) -> "SequentialHalving":
        """Of roots with `noisy_logits` [K, B], `valid` [K, B] and `prior` [B, K]."""
        scores = jnp.where(valid, jnp.maximum(noisy_logits, _LOWEST_SCORE), -jnp.inf)
        scores, slots = jax.lax.top_k(scores.T, num_considered)
        num_legal = jnp.minimum(jnp.sum(valid, axis=0, dtype=jnp.int32), num_considered)
        schedules = np.stack([considered_visits(count, num_simulations) for count in range(num_considered + 1)], axis=1)
        batch = len(prior)
        roots = places(jnp.zeros(batch, jnp.int32), batch)
        return cls(
            slots=slots.T,
            noisy_logits=scores.T,
            prior=jnp.take_along_axis(prior, slots, axis=1).T,
            # Right for a table; a chain makes them when it grows.
            edges=(roots[None] * prior.shape[1] + slots.T).reshape(-1),
            num_legal=num_legal,
            schedule=jnp.asarray(schedules)[:, num_legal],
            num_considered=num_considered,
        )

    def first_step(self, tree: Tree, rule: ImprovedPolicy, simulation: chex.Array) -> FirstStep:
        """The root's step in simulation number `simulation` (int32 [])."""
        batch, size = tree.batch, self.num_considered * tree.batch
        lane = jnp.arange(self.num_considered, dtype=jnp.int32)[:, None]
        legal = lane < self.num_legal[None]
        sums = tree.sums[2 * batch : 2 * (size + batch)].reshape(-1, batch, 2)
        visits = jnp.where(legal, sums[..., VISITS], 0.0)
        q = sums[..., RETURNS] / jnp.maximum(visits, 1)
        if tree.bounds is not None:
            facts = tree.facts[3 * batch : 3 * (size + batch)].reshape(-1, batch, 3)
            bounds = tree.bounds[2 * batch : 2 * (size + batch)].reshape(-1, batch, 2)
            q = with_proven(facts, bounds, q)
        q = jnp.where(legal, q, -jnp.inf)
        lanes = q, self.prior, visits
        roots = places(jnp.zeros(batch, jnp.int32), batch)
        seen = rule.seen(1 + jnp.sum(visits, axis=0), roots, of_lanes(lanes))
        scores = jnp.maximum(self.noisy_logits + rule.scaled_q(seen, lanes), _LOWEST_SCORE)
        considered = legal & (visits == self.schedule[simulation][None])
        best = jnp.argmax(jnp.where(considered, scores, -jnp.inf), axis=0).astype(jnp.int32)
        at = best * batch + roots
        edge = read(self.edges, at)
        child = jnp.where(read(visits.reshape(-1), at) > 0, read(tree.edges.child, edge), NO_CHILD)
        return FirstStep(read(self.slots.reshape(-1), at), edge, child)

    def with_edge(self, edge: chex.Array, simulation: chex.Array) -> "SequentialHalving":
        """Takes in that edges [B] lead to the nodes which the simulation made."""
        lane = jnp.minimum(simulation, self.num_considered - 1)
        is_root_child = simulation < self.num_legal
        old = jax.lax.dynamic_slice_in_dim(self.edges, lane * len(edge), len(edge))
        return dataclasses.replace(self, edges=write_rows(self.edges, jnp.where(is_root_child, edge, old), lane))


def considered_visits(num_considered: int, num_simulations: int) -> np.ndarray:
    """int32 [num_simulations]: the number of visits that sequential halving considers in each simulation.

    Half of the slots drop out again and again until two are left. Every phase has its share of the simulations.
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
