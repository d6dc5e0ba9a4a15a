"""One simulation in every tree of a batch: descend, expand and evaluate, back up.

The path is recorded on the way down and added along on the way up, so no tree array is ever carried through a
loop over depth that is vmapped (which would copy it at each step). Axis letters: see `tree.py`; `D` depth, `R` places.
"""

import dataclasses
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import Game, History
from azjax.search.arrays import add, apart, places, put, read, read_row, write_row
from azjax.search.dynamics import GameDynamics, Judgement
from azjax.search.edges import NO_CHILD, edges_for, legal_logits, legal_softmax
from azjax.search.packing import Packing
from azjax.search.selection import Selection
from azjax.search.tree import DISCOUNT, PRIOR, RETURNS, REWARD, ROOT, VISITS, Tree


class Path(NamedTuple):
    """Where a simulation went, below the root; row d is depth d + 1.

    nodes: int32 [D * B]; N, which no node has, where the path is shorter.
    edges: int32 [D * B]; the edges to them.
    longest: int32 []; the length of the longest.
    """

    nodes: chex.Array
    edges: chex.Array
    longest: chex.Array


class Leaf(NamedTuple):
    """Where a simulation leaves the tree.

    node: int32 [B]; the last one of the path.
    edge: int32 [B]; the edge that is to get a child, where it exists.
    expand: bool [B]; False where the path ended at a terminal node, which is never expanded.
    """

    node: chex.Array
    edge: chex.Array
    expand: chex.Array


class Root(NamedTuple):
    """Positions to search from.

    histories: of their games, every leaf [B, ...]; None for a game in which all positions may come back.
    positions: the states without their history, every leaf [B, ...].
    terminated: bool [B]; the roots that have nothing below them.
    prior: float32 [B, K]; probabilities over the legal slots, -1 in holes.
    judgement: see `Judgement`.
    """

    histories: History | None
    positions: Any
    terminated: chex.Array
    prior: chex.Array
    judgement: Judgement


def judge_root(dynamics: GameDynamics, params: Any, key: chex.PRNGKey, states: Any) -> Root:
    """Judges the states [B, ...] that a search starts from."""
    judgement = dynamics.judge(params, key, states)
    prior = legal_softmax(legal_logits(judgement.prior_logits, judgement.valid)).T
    game = dynamics.game
    histories, positions = jax.vmap(game.earlier_positions)(states), jax.vmap(game.without_history)(states)
    return Root(histories, positions, states.terminated, prior, judgement)


def search(
    dynamics: GameDynamics, params: Any, key: chex.PRNGKey, root: Root, selection: Selection, num_simulations: int
) -> Tree:
    """The trees after so many simulations; `key` is consumed by the evaluator."""
    tree = new_tree(root, selection, num_simulations + 1)

    def one_simulation(simulation: chex.Array, runs: Tree) -> Tree:
        evaluator_key = jax.random.fold_in(key, simulation)
        # Node i + 1 is made by simulation i.
        return simulate(dynamics, params, evaluator_key, runs, selection, simulation + 1)

    return jax.lax.fori_loop(0, num_simulations, one_simulation, tree.as_runs()).shaped_as(tree)


def new_tree(root: Root, selection: Selection, num_nodes: int) -> Tree:
    """Trees that hold their roots alone, with room for N nodes."""
    batch, slots = root.prior.shape
    judgement = root.judgement

    def room(row: chex.Array) -> chex.Array:
        # What no node was made for is never read.
        return jax.lax.empty((num_nodes, *row.shape), row.dtype).at[ROOT].set(row)

    ones, zeros = jnp.ones(batch, jnp.float32), jnp.zeros(batch, jnp.int32)
    value, discount = jnp.where(root.terminated, 0.0, judgement.value), jnp.where(root.terminated, 0.0, 1.0)
    packing = Packing.of(root.positions)
    return Tree(
        histories=root.histories,
        positions=room(packing.pack(root.positions)),
        sums=jnp.zeros((num_nodes, batch, 2), jnp.float32).at[ROOT].set(jnp.stack([ones, value], axis=1)),
        facts=room(jnp.stack([0 * ones, discount, ones], axis=1)),
        links=room(jnp.stack([zeros, zeros], axis=1)),
        prior=room(root.prior),
        actions=None if judgement.actions is None else room(judgement.actions),
        edges=edges_for(selection, root.prior, num_nodes),
        packing=packing,
        num_nodes=num_nodes,
        batch=batch,
        num_slots=slots,
    )


def descend(tree: Tree, selection: Selection, max_depth: int, node: chex.Array) -> tuple[Path, Leaf]:
    """Walks each tree from its root to an edge that has no node yet, or to a terminal node."""
    num_nodes, batch = tree.num_nodes, tree.batch
    depth_limit = max(1, min(num_nodes - 1, max_depth))

    def goes_on(carry: tuple) -> chex.Array:
        return jnp.any(carry[1])

    def go_down(carry: tuple) -> tuple:
        path, on, leaf = carry
        place = places(leaf.node, batch)
        terms = selection.terms(read(tree.sums, place * 2 + VISITS))
        edge, child = tree.edges.best(selection, terms, place, tree.num_slots, batch, node)
        is_new = child == NO_CHILD
        path = Path(
            nodes=write_row(path.nodes, jnp.where(on & ~is_new, jnp.abs(child), num_nodes), path.longest),
            edges=write_row(path.edges, edge, path.longest),
            longest=path.longest + 1,
        )
        below = on & (child > 0)
        # A path that ends keeps the node above its last edge: there a new node is hung up.
        leaf = Leaf(jnp.where(below, child, leaf.node), jnp.where(on, edge, leaf.edge), leaf.expand | (on & is_new))
        return path, below, leaf

    zeros = jnp.zeros(batch, jnp.int32)
    room = (depth_limit + 1) * batch
    path = Path(jnp.full(room, num_nodes, jnp.int32), jnp.zeros(room, jnp.int32), jnp.int32(0))
    running = read(tree.facts, places(zeros, batch) * 3 + DISCOUNT) != 0
    path, _, leaf = jax.lax.while_loop(goes_on, go_down, (path, running, Leaf(zeros, zeros, zeros > 0)))
    return path, leaf


def occurred_before(game: Game, tree: Tree, histories: History, path: Path, keys: chex.Array) -> chex.Array:
    """bool [B]: positions of these keys, uint32 [B, 2], occurred on the path, or before its root."""
    num_nodes, batch = tree.num_nodes, tree.batch

    def look(step: chex.Array, found: chex.Array) -> chex.Array:
        node = read_row(path.nodes, step, batch)
        passed = read(tree.positions, places(jnp.minimum(node, num_nodes - 1), batch), tree.packing.num_words)
        same = jnp.all(jax.vmap(game.position_key)(tree.packing.unpack(passed)) == keys, axis=1)
        return found | (same & (node < num_nodes))

    occurred = jax.vmap(History.contains)(histories, keys)
    return jax.lax.fori_loop(0, path.longest, look, occurred)


def expand(
    dynamics: GameDynamics,
    params: Any,
    key: chex.PRNGKey,
    tree: Tree,
    selection: Selection,
    path: Path,
    leaf: Leaf,
    node: chex.Array,
) -> tuple[Tree, chex.Array, chex.Array]:
    """Makes `node` (int32 []) below the leaves that are to be expanded.

    Returns:
      the trees, the edges [B] to the new nodes, and what the positions at the ends of the paths are worth to their
      players to move, float32 [B].
    """
    batch, num_slots = tree.batch, tree.num_slots
    histories = tree.histories
    occurred = None
    if histories is not None:

        def occurred(keys: chex.Array) -> chex.Array:
            return occurred_before(dynamics.game, tree, histories, path, keys)

    place = places(leaf.node, batch)
    new = tree.edges.new_edge(tree.prior, place, leaf.edge, num_slots)
    action = new.slot if tree.actions is None else read(tree.actions, place * num_slots + new.slot)
    step = dynamics.step(tree.packing.unpack(read(tree.positions, place, tree.packing.num_words)), action, occurred)
    # All is read before anything is written: otherwise XLA copies what is written.
    step, new = apart(lambda values: values, (step, new), node)
    judgement = dynamics.judge(params, key, step.states)
    logits = legal_logits(judgement.prior_logits, judgement.valid)
    judged = apart(lambda operand: tree.edges.judge(*operand), (new, logits), node)
    # Where the path ended at a terminal node the row is written too, but nothing leads to it.
    at = jnp.where(leaf.expand, place, tree.prior.size)
    child = jnp.where(step.discount == 0, -node, node)
    edges, prior, edge = tree.edges.grow(selection, tree.prior, new, judged, at, child, node)

    def write(run: chex.Array, columns: list[chex.Array]) -> chex.Array:
        return write_row(run, jnp.stack(columns, axis=1), node)

    tree = dataclasses.replace(
        tree,
        positions=write_row(tree.positions, tree.packing.pack(step.states), node),
        facts=write(tree.facts, [step.reward, step.discount, new.prior]),
        links=write(tree.links, [leaf.node, new.slot]),
        prior=prior,
        actions=None if tree.actions is None else write_row(tree.actions, judgement.actions, node),
        edges=edges,
    )
    value = jnp.where(leaf.expand & (step.discount != 0), judgement.value, 0.0)
    return tree, edge, value


def back_up(
    tree: Tree, selection: Selection, path: Path, leaf: Leaf, edge: chex.Array, node: chex.Array, value: chex.Array
) -> Tree:
    """Adds a visit and its return to `node` where it was made, to every node of the path, and to the root.

    `value` [B] is that of the path's end, `edge` [B] leads to `node`.
    """
    num_nodes, batch = tree.num_nodes, tree.batch
    tree_index = jnp.arange(batch, dtype=jnp.int32)
    nowhere = num_nodes * batch

    def visit(sums: chex.Array, features: tuple, nodes: chex.Array, edge: chex.Array, value: chex.Array) -> tuple:
        on = nodes < num_nodes
        place = jnp.where(on, nodes * batch + tree_index, nowhere)
        at = jnp.minimum(place, nowhere - 1)
        value = jnp.where(on, read(tree.facts, at * 3 + REWARD) + read(tree.facts, at * 3 + DISCOUNT) * value, value)
        sums = add(sums, place * 2 + RETURNS, value)
        sums = add(sums, place * 2 + VISITS, jnp.ones_like(value))
        visits, returns = read(sums, at * 2 + VISITS), read(sums, at * 2 + RETURNS)
        edge = jnp.where(on, edge, features[0].size)
        changed = selection.features(returns / visits, read(tree.facts, at * 3 + PRIOR), visits)
        features = tuple(put(run, edge, feature) for run, feature in zip(features, changed, strict=True))
        return sums, features, value

    def go_up(step: chex.Array, carry: tuple) -> tuple:
        depth = path.longest - 1 - step
        sums, features, value = carry
        return visit(sums, features, read_row(path.nodes, depth, batch), read_row(path.edges, depth, batch), value)

    made = jnp.where(leaf.expand, node, num_nodes)
    carry = visit(tree.sums, tree.edges.features, made, edge, value)
    sums, features, value = jax.lax.fori_loop(0, path.longest, go_up, carry)
    sums = add(sums, tree_index * 2 + RETURNS, value)
    sums = add(sums, tree_index * 2 + VISITS, jnp.ones_like(value))
    return dataclasses.replace(tree, sums=sums, edges=dataclasses.replace(tree.edges, features=features))


def simulate(
    dynamics: GameDynamics, params: Any, key: chex.PRNGKey, tree: Tree, selection: Selection, node: chex.Array
) -> Tree:
    """One simulation in every tree; the nodes that it makes are number `node`."""
    path, leaf = descend(tree, selection, dynamics.max_depth, node)
    tree, edge, value = expand(dynamics, params, key, tree, selection, path, leaf, node)
    return back_up(tree, selection, path, leaf, edge, node, value)
