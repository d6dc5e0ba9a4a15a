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
from azjax.search.dynamics import Dynamics, GameDynamics, Judgement
from azjax.search.edges import edges_for
from azjax.search.lanes import NO_CHILD, legal_logits, legal_softmax
from azjax.search.packing import Packing
from azjax.search.selection import Selection
from azjax.search.tree import DISCOUNT, PRIOR, RETURNS, REWARD, ROOT, VISITS, Tree

LOST = -1e6
"""The value of an edge that is proven lost: it is not gone while anything else stands."""


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
    running: bool [B]; False where the root itself is over, or proven.
    """

    node: chex.Array
    edge: chex.Array
    expand: chex.Array
    running: chex.Array


class FirstStep(NamedTuple):
    """A step from the roots.

    slot: int32 [B].
    edge: int32 [B]; of the slot; anything where edges are kept in chains and the slot has no child yet.
    child: int32 [B]; where the edge leads, see `Table.child`.
    """

    slot: chex.Array
    edge: chex.Array
    child: chex.Array


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
    dynamics: Dynamics, params: Any, key: chex.PRNGKey, tree: Tree, selection: Selection, num_simulations: int
) -> Tree:
    """The trees after so many more simulations; `key` is consumed by the evaluator.

    A tree without room for a node goes on without making any.
    """

    def one_simulation(simulation: chex.Array, runs: Tree) -> Tree:
        evaluator_key = jax.random.fold_in(key, simulation)
        return simulate(dynamics, params, evaluator_key, runs, selection)

    return jax.lax.fori_loop(0, num_simulations, one_simulation, tree.as_runs()).shaped_as(tree)


def new_tree(
    root: Root, selection: Selection, max_nodes: int, *, solver: bool = False, counts_decided: bool = False
) -> Tree:
    """Trees that hold their roots alone.

    Args:
      root: the positions.
      selection: the rule of selection.
      max_nodes: for so many there is room; N is one more, since a full tree writes to the last row.
      solver: keep `Tree.bounds`.
      counts_decided: keep `Tree.decided`.
    """
    batch, slots = root.prior.shape
    judgement = root.judgement
    num_nodes = max_nodes + 1

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
        edges=edges_for(selection, root.prior, num_nodes, solver),
        decided=jnp.zeros((num_nodes, batch), jnp.float32) if counts_decided else None,
        bounds=room(new_bounds(root.terminated)) if solver else None,
        num_made=jnp.int32(1),
        packing=packing,
        num_nodes=num_nodes,
        batch=batch,
        num_slots=slots,
    )


def new_bounds(terminated: chex.Array) -> chex.Array:
    """float32 [B, 2]: what is known of the values of new nodes: all after the end, nothing before."""
    bound = jnp.where(terminated, 0.0, 1.0)
    return jnp.stack([-bound, bound], axis=1)


def descend(
    tree: Tree, selection: Selection, max_depth: int, node: chex.Array, first: FirstStep | None = None
) -> tuple[Path, Leaf]:
    """Walks each tree from its root to an edge that has no node yet, or to a terminal node.

    `first` is the step from the root, where the rule of selection is not to choose it.
    """
    num_nodes, batch = tree.num_nodes, tree.batch
    depth_limit = max(1, min(num_nodes - 1, max_depth))

    def goes_on(carry: tuple) -> chex.Array:
        return jnp.any(carry[1])

    def go_down(carry: tuple) -> tuple:
        place = places(carry[2].node, batch)
        fold = tree.edges.fold(selection, place, tree.num_slots, batch, node)
        terms = selection.terms(read(tree.sums, place * 2 + VISITS), place, fold)
        if selection.folds:
            terms = apart(lambda terms: terms, terms, node)
        return take(carry, *tree.edges.best(selection, terms, place, tree.num_slots, batch, node))

    def take(carry: tuple, edge: chex.Array, child: chex.Array) -> tuple:
        path, on, leaf = carry
        is_new = child == NO_CHILD
        path = Path(
            nodes=write_row(path.nodes, jnp.where(on & ~is_new, jnp.abs(child), num_nodes), path.longest),
            edges=write_row(path.edges, edge, path.longest),
            longest=path.longest + 1,
        )
        below = on & (child > 0)
        # A path that ends keeps the node above its last edge: there a new node is hung up.
        leaf = Leaf(
            node=jnp.where(below, child, leaf.node),
            edge=jnp.where(on, edge, leaf.edge),
            expand=leaf.expand | (on & is_new),
            running=leaf.running,
        )
        return path, below, leaf

    zeros = jnp.zeros(batch, jnp.int32)
    room = (depth_limit + 1) * batch
    path = Path(jnp.full(room, num_nodes, jnp.int32), jnp.zeros(room, jnp.int32), jnp.int32(0))
    roots = places(zeros, batch)
    running = read(tree.facts, roots * 3 + DISCOUNT) != 0
    if tree.bounds is not None:
        running &= read(tree.bounds, roots * 2) != read(tree.bounds, roots * 2 + 1)
    start = path, running, Leaf(zeros, zeros, zeros > 0, running)
    if first is not None:
        start = take(start, first.edge, first.child)
    path, _, leaf = jax.lax.while_loop(goes_on, go_down, start)
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
    dynamics: Dynamics,
    params: Any,
    key: chex.PRNGKey,
    tree: Tree,
    selection: Selection,
    path: Path,
    leaf: Leaf,
    node: chex.Array,
    first: FirstStep | None = None,
) -> tuple[Tree, chex.Array, Leaf, chex.Array]:
    """Makes `node` (int32 []) below the leaves that are to be expanded, if it is not the last row.

    Returns:
      the trees, the edges [B] to the new nodes, the leaves that were expanded, and what the positions at the ends of
      the paths are worth to their players to move, float32 [B].
    """
    wanted, leaf = leaf.expand, leaf._replace(expand=leaf.expand & (node < tree.num_nodes - 1))
    batch, num_slots = tree.batch, tree.num_slots
    histories = tree.histories
    occurred = None
    if histories is not None:
        assert isinstance(dynamics, GameDynamics)  # only games have histories
        game = dynamics.game

        def occurred(keys: chex.Array) -> chex.Array:
            return occurred_before(game, tree, histories, path, keys)

    place = places(leaf.node, batch)
    slot = None if first is None else jnp.where(leaf.node == ROOT, first.slot, -1)
    new = tree.edges.new_edge(tree.prior, place, leaf.edge, num_slots, slot)
    action = new.slot if tree.actions is None else read(tree.actions, place * num_slots + new.slot)
    states = tree.packing.unpack(read(tree.positions, place, tree.packing.num_words))
    step = dynamics.step(params, key, states, action, occurred)
    # All is read before anything is written: otherwise XLA copies what is written.
    step, new = apart(lambda values: values, (step, new), node)
    judgement = dynamics.judge(params, key, step.states, step.output)
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
        bounds=None if tree.bounds is None else write_row(tree.bounds, new_bounds(step.discount == 0), node),
    )
    value = jnp.where(step.discount != 0, judgement.value, 0.0)
    # What the leaf is worth for the sake of the new position, where the tree has no room for it.
    of_leaf = jnp.where(wanted, step.reward + step.discount * value, 0.0)
    return tree, edge, leaf, jnp.where(leaf.expand, value, of_leaf)


def back_up(
    tree: Tree, selection: Selection, path: Path, leaf: Leaf, edge: chex.Array, node: chex.Array, value: chex.Array
) -> Tree:
    """Adds a visit and its return to `node` where it was made, to every node of the path, and to the root.

    `value` [B] is that of the path's end, `edge` [B] leads to `node`.
    """
    num_nodes, batch = tree.num_nodes, tree.batch
    tree_index = jnp.arange(batch, dtype=jnp.int32)
    nowhere = num_nodes * batch

    def add_visit(tree: Tree, place: chex.Array, value: chex.Array) -> Tree:
        sums = add(tree.sums, place * 2 + RETURNS, value)
        sums = add(sums, place * 2 + VISITS, jnp.ones_like(value))
        decided = tree.decided
        if decided is not None:
            decided = add(decided, place, (value != 0).astype(jnp.float32))
        return dataclasses.replace(tree, sums=sums, decided=decided)

    def visit(tree: Tree, nodes: chex.Array, edge: chex.Array, above: chex.Array, value: chex.Array) -> tuple:
        """Of `nodes` [B] behind edges [B] of the nodes `above` [B], which are worth `value` [B] to their players."""
        on = nodes < num_nodes
        place = jnp.where(on, nodes * batch + tree_index, nowhere)
        at = jnp.minimum(place, nowhere - 1)
        reward, discount = read(tree.facts, at * 3 + REWARD), read(tree.facts, at * 3 + DISCOUNT)
        edge = jnp.where(on, edge, tree.edges.child.size)
        if tree.bounds is not None:
            tree, value, exact = prove(tree, at, edge, above * batch + tree_index, reward, discount, value)
        value = jnp.where(on, reward + discount * value, value)
        tree = add_visit(tree, place, value)
        visits = read(tree.sums, at * 2 + VISITS)
        mean = read(tree.sums, at * 2 + RETURNS) / visits
        if tree.bounds is not None:
            mean = jnp.where(jnp.isnan(exact), mean, exact)
        changed = selection.features(mean, read(tree.facts, at * 3 + PRIOR), visits)
        features = tuple(put(run, edge, feature) for run, feature in zip(tree.edges.features, changed, strict=True))
        return dataclasses.replace(tree, edges=dataclasses.replace(tree.edges, features=features)), value

    def go_up(step: chex.Array, carry: tuple) -> tuple:
        tree, value = carry
        depth = path.longest - 1 - step
        nodes, edges = read_row(path.nodes, depth, batch), read_row(path.edges, depth, batch)
        above = jnp.where(depth > 0, read_row(path.nodes, jnp.maximum(depth - 1, 0), batch), ROOT)
        return visit(tree, nodes, edges, above, value)

    made = jnp.where(leaf.expand, node, num_nodes)
    tree, value = jax.lax.fori_loop(0, path.longest, go_up, visit(tree, made, edge, leaf.node, value))
    return add_visit(tree, jnp.where(leaf.running, tree_index, nowhere), value)


def prove(
    tree: Tree,
    place: chex.Array,
    edge: chex.Array,
    above: chex.Array,
    reward: chex.Array,
    discount: chex.Array,
    value: chex.Array,
) -> tuple[Tree, chex.Array, chex.Array]:
    """Carries what is proven of nodes at places [B] over their edges [B] to the nodes above them, at places [B].

    Score-bounded search (Cazenave and Saffidine 2010): a node is worth at least what one of its edges is, and at most
    what all of them are. Where both are equal the node is proven, and nothing is searched below it any more.

    Returns:
      the trees; `value` [B], or the proven one; and what stands in for the mean return of the edge, float32 [B]: its
      proven return, `LOST` in place of -1, and NaN where nothing is proven.
    """
    lower, upper = read(tree.bounds, place * 2), read(tree.bounds, place * 2 + 1)
    on = edge < tree.edges.child.size
    proven = on & (lower == upper)
    value = jnp.where(proven, lower, value)
    ends = reward + discount * lower, reward + discount * upper
    edge_lower, edge_upper = jnp.minimum(*ends), jnp.maximum(*ends)
    exact = jnp.where(proven, jnp.where(edge_upper <= -1, LOST, edge_upper), jnp.nan)
    uppers = put(tree.edges.upper, edge, edge_upper)
    node = place // tree.batch
    child = put(tree.edges.child, jnp.where(proven, edge, tree.edges.child.size), -node)
    lower_above = jnp.maximum(read(tree.bounds, above * 2), edge_lower)
    upper_above = tree.edges.upper_of(uppers, above, tree.num_slots, tree.batch)
    above = jnp.where(on, above, tree.num_nodes * tree.batch)
    bounds = put(put(tree.bounds, above * 2, lower_above), above * 2 + 1, upper_above)
    edges = dataclasses.replace(tree.edges, child=child, upper=uppers)
    return dataclasses.replace(tree, bounds=bounds, edges=edges), value, exact


def simulate(
    dynamics: Dynamics,
    params: Any,
    key: chex.PRNGKey,
    tree: Tree,
    selection: Selection,
    first: FirstStep | None = None,
) -> Tree:
    """One simulation in every tree; the nodes that it makes have the same number in all of them."""
    # A full tree writes to its last row, which nothing leads to.
    node = jnp.minimum(tree.num_made, tree.num_nodes - 1)
    path, leaf = descend(tree, selection, dynamics.max_depth, node, first)
    tree, edge, leaf, value = expand(dynamics, params, key, tree, selection, path, leaf, node, first)
    tree = dataclasses.replace(tree, num_made=jnp.minimum(node + 1, tree.num_nodes - 1))
    return back_up(tree, selection, path, leaf, edge, node, value)
