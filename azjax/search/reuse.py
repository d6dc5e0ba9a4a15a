"""Trees that are kept from move to move. Axis letters: see `tree.py`."""

import functools
from collections.abc import Callable
from typing import TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Int32, Shaped

from azjax.core.arrays import read
from azjax.core.errors import InputError
from azjax.core.pytree import replace_fields
from azjax.search.dynamics import Root
from azjax.search.edges import EdgeStore, Index
from azjax.search.selection import Selection
from azjax.search.tree import ROOT, Tree

_Numbers: TypeAlias = tuple[Int32[Array, "N B"], Int32[Array, "N B"], Int32[Array, "B"]]
"""source, number and count: see `Tree.renumber`."""

_Ancestors: TypeAlias = tuple[Bool[Array, "N B"], Int32[Array, "N B"]]
"""Which nodes are known to be below the new root, and an ancestor of each, or `ROOT`."""


def advance(tree: Tree, *actions: Int[Array | np.ndarray, "B"]) -> Tree:
    """The trees below actions that are played one after the other; empty where the search never tried them.

    They keep their capacity. Hand them to a policy with the states after the actions.

    Raises:
      InputError: no tree, or no whole number for each of its games.
    """
    check_tree(tree)
    for action in map(jnp.asarray, actions):
        if action.shape != (tree.batch,) or not jnp.issubdtype(action.dtype, jnp.integer):
            got = f"{action.dtype} {list(action.shape)}"
            raise InputError(f"action must be int [{tree.batch}], one for each game of the tree; got {got}")
    below: Tree = _below(tree, functools.reduce(functools.partial(_child, tree), actions, _root_of(tree)))
    return below


def check_tree(tree: object) -> None:
    """Raises InputError for something else than a tree."""
    if not isinstance(tree, Tree):
        raise InputError(f"tree must be the `tree` of a SearchResult, got a {type(tree).__name__}")


def _root_of(tree: Tree) -> Int32[Array, "B"]:
    return jnp.full(tree.batch, ROOT, jnp.int32)


_child = jax.jit(Tree.child)


@jax.jit
def _below(tree: Tree, node: Int32[Array, "B"]) -> Tree:
    """The trees below `node`; empty where it is `NO_NODE`."""
    return tree.renumber(*_numbers(tree, _is_below(tree, node))).with_free_roots()


@jax.jit
def compact(tree: Tree) -> Tree:
    """The same trees without unused rows between their nodes.

    Simulations make their nodes in all trees at once. So a tree has unused rows if it was begun after others or its
    simulations ended at finished games; without them it has capacity again.
    """
    return tree.renumber(*_numbers(tree, tree.visits > 0))


def continue_tree(tree: Tree, root: Root, make_tree: Callable[[], Tree], selection: Selection) -> Tree:
    """`tree` with the priors of `root`, and a new tree where the root is another position.

    Args:
      tree: the trees so far.
      root: the positions to search.
      make_tree: makes new trees of them.
      selection: the rule of selection.

    Raises:
      InputError: trees of different shapes.
    """
    fresh = jax.eval_shape(make_tree)
    shapes = [jax.tree.map(lambda array: array.shape, t.without_histories()) for t in (tree, fresh)]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"tree has {tree.max_nodes} nodes for {tree.batch} games of {tree.num_slots} slots, "
            f"the search needs {fresh.max_nodes} for {fresh.batch} of {fresh.num_slots}, with the same options"
        )
    roots = tree.index(jnp.zeros(tree.batch, jnp.int32))
    words = read(tree.positions, roots, tree.packing.num_words)
    is_same = jnp.all(words == tree.packing.pack(root.positions), axis=1)
    restarts = ~is_same | (tree.at(roots).visits == 0)
    num_made = jnp.max(jnp.where(restarts, 1, tree.num_made))
    old = replace_fields(tree, histories=None, num_made=num_made)

    def with_new_trees() -> Tree:
        return merge_rows(restarts, replace_fields(make_tree(), histories=None, num_made=num_made), old)

    # Trees are large: new ones are made, and all are read as a whole, only if one of them restarts.
    merged: Tree = jax.lax.cond(jnp.any(restarts), with_new_trees, lambda: old)
    merged = replace_fields(merged, histories=root.histories)
    return _with_root_terms(merged.with_root_priors(root.prior), root.prior, selection)


def _with_root_terms(tree: Tree, prior: Float32[Array, "B K"], selection: Selection) -> Tree:
    """The trees whose edges from the roots have the terms of other priors."""
    roots = tree.index(jnp.zeros(tree.batch, jnp.int32))

    def in_block(edges: EdgeStore, begin: Index, exists: Bool[Array, "B"]) -> EdgeStore:
        lanes = begin[None] + jnp.arange(edges.lanes, dtype=jnp.int32)[:, None]
        on = (edges.read_terms(lanes).q > -jnp.inf) & exists[None]
        slot = jnp.where(on, edges.slot_of(lanes), 0)
        own_prior = jnp.take_along_axis(prior, slot.T, axis=1).T.reshape(-1)
        edge, on = lanes.reshape(-1), on.reshape(-1)
        terms = edges.read_terms(edge)
        # A proven return stays in place of the mean.
        child = tree.index(jnp.where(on, jnp.abs(edges.child[edge]), ROOT))
        statistics = tree.edge_statistics(child, terms.q)._replace(q=terms.q, prior=own_prior)
        return edges.write_terms(jnp.where(on, edge, edges.child.size), selection.update(statistics))

    edges = tree.edges.over_blocks(roots, in_block, tree.edges)
    return replace_fields(tree, edges=edges.with_root_priors(tree.root_prior))


def _numbers(tree: Tree, stays: Bool[Array | np.ndarray, "N B"]) -> _Numbers:
    """Numbers for the nodes that stay, in their order."""
    nodes = jnp.broadcast_to(jnp.arange(tree.num_nodes, dtype=jnp.int32)[:, None], stays.shape)
    number = jnp.where(stays, jnp.cumsum(stays, axis=0, dtype=jnp.int32) - 1, -1)
    row, columns = jnp.where(stays, number, tree.num_nodes), jnp.arange(tree.batch, dtype=jnp.int32)[None]
    source = jnp.full_like(nodes, -1).at[row, columns].set(nodes, mode="drop")
    return source, number, jnp.sum(stays, axis=0, dtype=jnp.int32)


def _is_below(tree: Tree, root: Int32[Array, "B"]) -> Bool[Array, "N B"]:
    """Which nodes are `root` or below it; none where it is `NO_NODE`.

    Each step doubles the number of ancestors that a node knows of.
    """

    def double(carry: _Ancestors) -> _Ancestors:
        below, ancestor = carry
        return below | jnp.take_along_axis(below, ancestor, axis=0), jnp.take_along_axis(ancestor, ancestor, axis=0)

    nodes, made = jnp.arange(tree.num_nodes, dtype=jnp.int32)[:, None], tree.visits > 0
    start = nodes == root[None], jnp.where(made, tree.nodes.parent, ROOT)
    below, _ = jax.lax.while_loop(lambda carry: jnp.any(carry[1] != ROOT), double, start)
    return jnp.logical_and(made, below)


# Trees that a player or self-play keeps for each of its games.


def kept_nodes(num_simulations: int) -> int:
    """Capacity of a tree that is kept: for the next search, and twice as much for what remains of earlier ones."""
    return 3 * num_simulations + 1


def follow(tree: Tree, action: Int[Array | np.ndarray, "B"], num_simulations: int) -> Tree:
    """The trees below `action`, empty where their capacity does not suffice for the next search.

    Simulations make their nodes in all trees at once, so one tree that is nearly full would stop the others too.
    """
    tree = cast(Tree, _below(tree, _child(tree, _root_of(tree), action)))
    num_made = jnp.sum(tree.visits > 0, axis=0, dtype=jnp.int32)
    # The next states bring their histories.
    tree = replace_fields(tree, histories=None, num_made=num_made)
    return tree.without_nodes(num_made + num_simulations > tree.max_nodes)


# The trees of a batch by their rows.


def select_rows(tree: Tree, rows: Int[Array | np.ndarray, "R"]) -> Tree:
    """The trees of those rows."""
    return _by_row(lambda leaf: leaf[rows], tree)


def merge_rows(mask: Bool[Array | np.ndarray, "B"], tree: Tree, other: Tree) -> Tree:
    """Row b of `tree` where `mask[b]` holds, of `other` elsewhere."""

    def merge(new: Shaped[Array, "B ..."], old: Shaped[Array, "B ..."]) -> Shaped[Array, "B ..."]:
        return jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    merged = _by_row(merge, tree, other)
    return replace_fields(merged, num_made=jnp.maximum(tree.num_made, other.num_made))


def by_game(tree: Tree) -> Tree:
    """The trees with every leaf [B, ...], so that games can be taken and put by their number.

    Their `batch` is 0: batches of any size have one structure.
    """
    leaves: Tree = jax.tree.map(_swapped, replace_fields(tree.grids(), histories=None, num_made=None))
    num_made = jnp.broadcast_to(tree.num_made, tree.batch)
    edges = replace_fields(leaves.edges, batch=0)
    return replace_fields(leaves, histories=tree.histories, num_made=num_made, edges=edges, batch=0)


def by_node(trees: Tree) -> Tree:
    """The inverse of `by_game`, for any games side by side."""
    batch = len(trees.num_made)
    leaves: Tree = jax.tree.map(_swapped, replace_fields(trees, histories=None, num_made=None))
    edges = replace_fields(leaves.edges, batch=batch)
    return replace_fields(
        leaves, histories=trees.histories, num_made=jnp.max(trees.num_made), edges=edges, batch=batch
    ).flat()


def _swapped(leaf: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
    """[N, B, ...] as [B, N, ...], or back; an array [B] as it is."""
    return jnp.swapaxes(leaf, 0, 1) if leaf.ndim > 1 else leaf


def _by_row(function: Callable[..., Array], tree: Tree, *others: Tree) -> Tree:
    return by_node(jax.tree.map(function, *(by_game(each) for each in (tree, *others))))
