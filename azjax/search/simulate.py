"""One simulation in every tree of a batch: select, expand and evaluate, back up.

The path is recorded on the way down and added along on the way up, so no tree array is ever carried through a
loop over depth that is vmapped (which would copy it at each step). Axis letters: see `tree.py`; `D` depth.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import Game, History
from azjax.search.tree import ROOT, UNVISITED, Tree, legal_slots, to_slots


class Evaluator(Protocol):
    """`evaluator(params, key, states) -> (prior_logits float32 [B, A], value float32 [B])`.

    Values are seen by the player to move, in -1..1. Logits of illegal actions are ignored. Hashable by value.
    """

    def __call__(self, params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]: ...


Score = Callable[[chex.Array, chex.Array, chex.Array, chex.Array], chex.Array]
"""`score(q, prior, child_visits, visits) -> [B, K]`: what selection maximises; `visits` [B, 1] is the node's own."""


class Path(NamedTuple):
    """Where a simulation went, below the root; row d is depth d + 1.

    nodes: int32 [D, B]; N, which no row has, where the path is shorter.
    reward, discount: float32 [D, B]; of those nodes.
    length: int32 []; of the longest.
    """

    nodes: chex.Array
    reward: chex.Array
    discount: chex.Array
    length: chex.Array


class Leaf(NamedTuple):
    """Where a simulation leaves the tree.

    parent, slot: int32 [B]; the edge to expand.
    expand: bool [B]; False where the path ended at a terminal node, which is never expanded.
    """

    parent: chex.Array
    slot: chex.Array
    expand: chex.Array


def puct(c_puct: chex.Array) -> Score:
    """Q + c P sqrt(max(sum N, 1)) / (1 + N), Silver et al. 2017 (AlphaGo Zero), Methods, "Select".

    The maximum makes the first simulation of a node follow its priors. An unvisited child has Q = 0.
    """

    def score(q: chex.Array, prior: chex.Array, child_visits: chex.Array, visits: chex.Array) -> chex.Array:
        exploration = c_puct * prior * jnp.sqrt(jnp.maximum(visits - 1, 1).astype(jnp.float32))
        return q + exploration / (1 + child_visits).astype(jnp.float32)

    return score


def evaluate(
    game: Game, evaluator: Evaluator, params: Any, key: chex.PRNGKey, states: Any, node: chex.Array
) -> tuple[chex.Array | None, chex.Array, chex.Array]:
    """Judges states [B, ...]; `node` is the one that a simulation makes of them, or any but the root's number.

    Returns:
      actions: int32 [B, K], or None where slot a is action a.
      prior: float32 [B, K]; normalised over the legal slots, -1 in holes.
      value: float32 [B]; 0 after the end.
    """
    prior_logits, value = evaluator(params, key, states)
    actions, valid = legal_slots(game, states)
    prior = legal_softmax(to_slots(prior_logits, actions), valid, node)
    return actions, prior, jnp.where(states.terminated, 0.0, value)


def rows_of(leaves: chex.Array, node: chex.Array) -> chex.Array:
    """Reads `leaves` [N, B, ...] at node [B] or [B, K] of each tree; nodes must be in range."""
    num_nodes, batch = leaves.shape[:2]
    tree_index = jnp.arange(batch, dtype=jnp.int32).reshape(-1, *[1] * (node.ndim - 1))
    flat = leaves.reshape(num_nodes * batch, *leaves.shape[2:])
    return flat.at[node * batch + tree_index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def read_row(rows: chex.Array, index: chex.Array) -> chex.Array:
    """`rows[index]` without the check that the index is in range."""
    return jax.lax.dynamic_index_in_dim(rows, index, keepdims=False)


def write_row(rows: chex.Array, row: chex.Array, index: chex.Array) -> chex.Array:
    """`rows` with `row` at `index`, which is in range: a check would read the old row to keep it."""
    return jax.lax.dynamic_update_index_in_dim(rows, row.astype(rows.dtype), index, axis=0)


def add_to_rows(leaves: chex.Array, node: chex.Array, values: chex.Array) -> chex.Array:
    """Adds `values` [B] to `leaves` [N, B] at node [B] of each tree; node N, which no tree has, drops its value."""
    flat = node * leaves.shape[1] + jnp.arange(leaves.shape[1], dtype=jnp.int32)
    cells = leaves.reshape(-1).at[flat]
    return cells.add(values, mode="drop", unique_indices=True, wrap_negative_indices=False).reshape(leaves.shape)


def apart(function: Callable[[Any], Any], operand: Any, node: chex.Array) -> Any:
    """`function(operand)`, the operand being computed once and laid out as it stands.

    XLA's CPU fusion would compute it again for every element that reads it. Nothing is fused through a branch that
    depends on the `node` which a simulation makes: it is never the root, but the compiler does not know.
    """

    def branch(operand: Any) -> Any:
        def nothing(operand: Any) -> Any:
            return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(function, operand))

        return jax.lax.cond(node > ROOT, function, nothing, operand)

    def barrier(operand: Any) -> Any:
        return function(jax.lax.optimization_barrier(operand))

    return jax.lax.platform_dependent(operand, cpu=branch, default=barrier)


def child_statistics(tree: Tree, node: chex.Array) -> tuple[chex.Array, chex.Array, chex.Array]:
    """Of the slots of `node` [B]: children int32, visits int32 and mean return float32, each [B, K]."""
    children = rows_of(tree.children, node)
    visited = children != UNVISITED
    visits = jnp.where(visited, rows_of(tree.visits, children), 0)
    returns = jnp.where(visited, rows_of(tree.returns, children), 0.0)
    return children, visits, returns / jnp.maximum(visits, 1)


def ordered_bits(values: chex.Array) -> chex.Array:
    """float32 to int32 in the same order (-0 below +0). Its own inverse on bits: see `legal_softmax`.

    On CPU, XLA's code for an integer maximum is six times faster than that for a float one.
    """
    bits = jax.lax.bitcast_convert_type(values, jnp.int32)
    return _turn_negative(bits)


def _turn_negative(bits: chex.Array) -> chex.Array:
    # A float's bits are in the floats' order, once the lower ones of negative numbers are turned over.
    return jnp.where(bits < 0, bits ^ jnp.int32(0x7FFFFFFF), bits)


def best_slot(score: chex.Array, node: chex.Array) -> chex.Array:
    """int32 [B]: the slot of the highest score [B, K], the lowest such slot on ties. No score may be -0."""

    # Two plain reductions over the first axis: XLA vectorises those, and not the paired one behind argmax.
    def reduce(order: chex.Array) -> chex.Array:
        slots = jnp.arange(len(order), dtype=jnp.int32)[:, None]
        return jnp.min(jnp.where(order == jnp.max(order, axis=0, keepdims=True), slots, len(order) - 1), axis=0)

    return apart(reduce, ordered_bits(score).T, node)


def legal_softmax(logits: chex.Array, valid: chex.Array, node: chex.Array) -> chex.Array:
    """Probabilities over the valid slots of [B, K], -1 in holes."""

    def normalise(logits: chex.Array) -> chex.Array:
        highest = _turn_negative(jnp.max(ordered_bits(logits), axis=0, keepdims=True))
        # Where no slot is valid this is NaN: the last line keeps it out.
        weights = jnp.exp(logits - jax.lax.bitcast_convert_type(highest, jnp.float32))
        return weights / jnp.sum(weights, axis=0, keepdims=True)

    # Slots first, as in `best_slot`.
    logits = jnp.where(valid, logits, -jnp.inf).T
    return jnp.where(valid, apart(normalise, logits, node).T, -1.0)


def select(game: Game, tree: Tree, score: Score, node: chex.Array) -> tuple[Path, Leaf]:
    """Walks each tree from its root to an edge that has no node yet, or to a terminal node."""
    num_nodes, batch = tree.visits.shape
    depth_limit = max(1, min(num_nodes - 1, game.max_plies))

    def descending(carry: tuple) -> chex.Array:
        return jnp.any(carry[1])

    def descend(carry: tuple) -> tuple:
        path, active, leaf = carry
        children, child_visits, q = child_statistics(tree, leaf.parent)
        prior = rows_of(tree.prior, leaf.parent)
        scores = score(q, prior, child_visits, rows_of(tree.visits, leaf.parent)[:, None])
        slot = jnp.where(active, best_slot(jnp.where(prior < 0, -jnp.inf, scores), node), leaf.slot)
        child = jnp.take_along_axis(children, slot[:, None], axis=1)[:, 0]
        is_new = child == UNVISITED
        reward, discount = rows_of(tree.reward, child), rows_of(tree.discount, child)
        path = Path(
            nodes=write_row(path.nodes, jnp.where(active & ~is_new, child, num_nodes), path.length),
            reward=write_row(path.reward, reward, path.length),
            discount=write_row(path.discount, discount, path.length),
            length=path.length + 1,
        )
        goes_on = active & ~is_new & (discount != 0)
        # A path that ends keeps the node above its last edge: there a new node is hung up.
        leaf = Leaf(jnp.where(goes_on, child, leaf.parent), slot, leaf.expand | (active & is_new))
        return path, goes_on, leaf

    zeros = jnp.zeros(batch, jnp.int32)
    empty = jnp.zeros((depth_limit + 1, batch), jnp.float32)
    path = Path(jnp.full((depth_limit + 1, batch), num_nodes, jnp.int32), empty, empty, jnp.int32(0))
    leaf = Leaf(parent=zeros + ROOT, slot=zeros, expand=zeros > 0)
    path, _, leaf = jax.lax.while_loop(descending, descend, (path, tree.discount[ROOT] != 0, leaf))
    return path, leaf


def end_repetitions(game: Game, tree: Tree, path: Path, states: Any) -> Any:
    """New states [B, ...] as the game has them where they occurred on the path, or before its root."""
    if tree.histories is None:
        return states
    num_nodes = len(tree.visits)
    keys = jax.vmap(game.position_key)(states)

    def look(step: chex.Array, found: chex.Array) -> chex.Array:
        node = read_row(path.nodes, step)
        passed = jax.tree.map(lambda leaves: rows_of(leaves, jnp.minimum(node, num_nodes - 1)), tree.states)
        same = jnp.all(jax.vmap(game.position_key)(passed) == keys, axis=1)
        return found | (same & (node < num_nodes))

    occurred = jax.vmap(History.contains)(tree.histories, keys)
    occurred = jax.lax.fori_loop(0, path.length, look, occurred)
    ended = jax.vmap(game.repeated)(states)
    return jax.tree.map(
        lambda end, state: jnp.where(occurred.reshape(-1, *[1] * (state.ndim - 1)), end, state), ended, states
    )


def expand(
    game: Game,
    evaluator: Evaluator,
    params: Any,
    key: chex.PRNGKey,
    tree: Tree,
    path: Path,
    leaf: Leaf,
    node: chex.Array,
) -> tuple[Tree, chex.Array]:
    """Makes `node` (int32 []) behind each leaf's edge. Returns the trees and the new nodes' returns [B]."""
    num_nodes, batch = tree.visits.shape
    rows = jnp.arange(batch)
    parents = jax.tree.map(lambda leaves: rows_of(leaves, leaf.parent), tree.states)
    action = leaf.slot if tree.actions is None else tree.actions[leaf.parent, rows, leaf.slot]
    states = end_repetitions(game, tree, path, jax.vmap(game.step)(parents, action))
    states = apart(lambda states: states, states, node)
    actions, prior, value = evaluate(game, evaluator, params, key, states, node)

    reward = jnp.take_along_axis(states.rewards, parents.current_player[:, None], axis=1)[:, 0]
    same_player = states.current_player == parents.current_player
    discount = jnp.where(states.terminated, 0.0, jnp.where(same_player, 1.0, -1.0))
    returns = reward + discount * value

    # Where the path ended at a terminal node the row is written too, but nothing leads to it.
    def write(leaves: chex.Array, new: chex.Array) -> chex.Array:
        return write_row(leaves, new, node)

    edge_node = jnp.where(leaf.expand, leaf.parent, num_nodes)
    tree = Tree(
        histories=tree.histories,
        states=jax.tree.map(write, tree.states, states),
        visits=write(tree.visits, leaf.expand),
        returns=write(tree.returns, jnp.where(leaf.expand, returns, 0.0)),
        reward=write(tree.reward, reward),
        discount=write(tree.discount, discount),
        children=tree.children.at[edge_node, rows, leaf.slot].set(node, mode="drop"),
        prior=write(tree.prior, prior),
        actions=None if actions is None else write(tree.actions, actions),
    )
    return tree, jnp.where(leaf.expand, returns, 0.0)


def back_up(tree: Tree, path: Path, returns: chex.Array) -> Tree:
    """Adds a visit and its return to every node of the path, and to the root."""
    num_nodes = len(tree.visits)

    def add(step: chex.Array, carry: tuple) -> tuple:
        visits, sums, value = carry
        depth = path.length - 1 - step
        node, reward, discount = (read_row(rows, depth) for rows in (path.nodes, path.reward, path.discount))
        value = jnp.where(node < num_nodes, reward + discount * value, value)
        visits = add_to_rows(visits, node, jnp.ones_like(node))
        return visits, add_to_rows(sums, node, value), value

    visits, sums, value = jax.lax.fori_loop(0, path.length, add, (tree.visits, tree.returns, returns))
    return Tree(
        histories=tree.histories,
        states=tree.states,
        visits=visits.at[ROOT].add(1),
        returns=sums.at[ROOT].add(value),
        reward=tree.reward,
        discount=tree.discount,
        children=tree.children,
        prior=tree.prior,
        actions=tree.actions,
    )


def simulate(
    game: Game, evaluator: Evaluator, params: Any, key: chex.PRNGKey, tree: Tree, score: Score, node: chex.Array
) -> Tree:
    """One simulation in every tree; the nodes that it makes are number `node`."""
    path, leaf = select(game, tree, score, node)
    tree, returns = expand(game, evaluator, params, key, tree, path, leaf, node)
    return back_up(tree, path, returns)
