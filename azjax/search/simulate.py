"""Simulations in every tree of a batch: descend, expand and evaluate, back up. Axis letters: see `tree.py`; `W`
leaves of a step, `R` = W * B lanes, of which lane w * B + b is leaf w of tree b.
"""

import dataclasses
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from azjax.core.arrays import apart, put, read, tree_of, write_rows
from azjax.search.backward import Phase, backward
from azjax.search.descend import FirstStep, Leaf, Path, descend
from azjax.search.dynamics import Dynamics
from azjax.search.expand import attach, entry_of, expand, fill, step_from
from azjax.search.selection import Selection
from azjax.search.tree import Tree


def search(
    dynamics: Dynamics,
    params: Any,
    key: chex.PRNGKey,
    tree: Tree,
    selection: Selection,
    num_simulations: int,
    leaves_per_step: int = 1,
) -> Tree:
    """The trees after so many more simulations, a multiple of `leaves_per_step`; `key` is consumed by the evaluator.

    A tree without room for a node goes on without making any.
    """

    def one_step(step: chex.Array, carry: tuple[Tree, Path]) -> tuple[Tree, Path]:
        evaluator_key = jax.random.fold_in(key, step)
        if leaves_per_step == 1:
            return simulate(dynamics, params, evaluator_key, *carry, selection)[:2]
        return simulate_together(dynamics, params, evaluator_key, *carry, selection, leaves_per_step)

    start = tree.as_runs(), Path.room(tree, dynamics.max_depth)
    runs, _ = jax.lax.fori_loop(0, num_simulations // leaves_per_step, one_step, start)
    return runs.shaped_as(tree)


def simulate(
    dynamics: Dynamics,
    params: Any,
    key: chex.PRNGKey,
    tree: Tree,
    room: Path,
    selection: Selection,
    first: FirstStep | None = None,
) -> tuple[Tree, Path, chex.Array, chex.Array]:
    """One simulation in every tree; the nodes that it makes have the same number in all of them.

    Args:
      room: for paths.
      first: see `descend`.

    Returns:
      the trees; the paths; the edges [B] to the new nodes; and what the ends of the paths are worth to their players
      to move, float32 [B].
    """
    # A full tree writes to a spare row, which nothing leads to.
    node = jnp.minimum(tree.num_made, tree.max_nodes)
    path, leaf = descend(tree, selection, room, node, first)
    tree, edge, made, value = expand(dynamics, params, key, tree, selection, path, leaf, node, first)
    tree = dataclasses.replace(tree, num_made=jnp.minimum(node + 1, tree.max_nodes))
    return backward(tree, selection, path, leaf, edge, made, value), path, edge, value


class Claim(NamedTuple):
    """Where simulations go whose leaves wait to be judged; [B] of one leaf a tree, [R] of all of a step.

    path: see `Path`.
    leaf: see `Leaf`.
    made: int32; the node that is made below the leaf, N where none is.
    slot: int32; of the edge to it, with the edge and its prior, float32, after it.
    """

    path: Path
    leaf: Leaf
    made: chex.Array
    slot: chex.Array
    edge: chex.Array
    prior: chex.Array


def simulate_together(
    dynamics: Dynamics,
    params: Any,
    key: chex.PRNGKey,
    tree: Tree,
    room: Path,
    selection: Selection,
    leaves_per_step: int,
) -> tuple[Tree, Path]:
    """As many simulations in every tree, whose leaves are judged together.

    Until they are, each path counts as lost for everybody on it, so that the next goes another way (virtual loss,
    Chaslot et al. 2008, "Parallel Monte-Carlo Tree Search"). A path that ends at a node which waits shares its value.
    """
    num_nodes, batch, width = tree.num_nodes, tree.batch, leaves_per_step
    has_room = tree.num_made + width <= tree.max_nodes
    begin = jnp.where(has_room, tree.num_made, tree.max_nodes)

    def claim(carry: tuple[Tree, Path], number: chex.Array) -> tuple[tuple[Tree, Path], Claim]:
        tree, room = carry
        node = begin + number
        path, leaf = descend(tree, selection, room, node)
        new = entry_of(tree, leaf)
        new, rest = apart(lambda new: (new, tree.edges.rest(new)), new, node)
        made = jnp.where(leaf.expand & has_room, node, num_nodes)
        # Negative, as where nothing follows: no path goes on from a node that waits.
        tree, edge = attach(tree, leaf, new, rest, made < num_nodes, jnp.full(batch, -node))
        unknown = jnp.zeros(batch, jnp.float32)
        row = jnp.stack([unknown, unknown, new.prior], axis=1)
        tree = dataclasses.replace(tree, facts=write_rows(tree.facts, row, node))
        tree = backward(tree, selection, path, leaf, edge, made, unknown, Phase.CLAIM)
        return (tree, path), Claim(path, leaf, made, new.slot, edge, new.prior)

    (tree, room), claims = jax.lax.scan(claim, (tree, room), jnp.arange(width, dtype=jnp.int32))

    def by_depth(rows: chex.Array) -> chex.Array:
        return jnp.swapaxes(rows.reshape(width, -1, batch), 0, 1)

    nodes, edges = by_depth(claims.path.nodes), by_depth(claims.path.edges)
    # What stands beyond the end of a path is of an earlier one.
    on = jnp.arange(len(nodes), dtype=jnp.int32)[:, None, None] < claims.path.longest[None, :, None]
    nodes = jnp.where(on, nodes, num_nodes)
    path = Path(nodes.reshape(-1), edges.reshape(-1), jnp.max(claims.path.longest))
    leaf, made, slot, edge, prior = jax.tree.map(lambda rows: rows.reshape(-1), claims[1:])
    step = apart(lambda step: step, step_from(dynamics, params, key, tree, path, leaf, slot), begin)
    judgement = dynamics.judge(params, key, step.states, step.output)
    judged = apart(tree.edges.judge, judgement.logits, begin)
    tree = fill(tree, selection, leaf, slot, prior, step, judgement.actions, judged, begin, width)
    value = jnp.where(step.discount != 0, judgement.value, 0.0)

    child = jnp.abs(read(tree.edges.child, leaf.edge))
    lane = (child - begin) * batch + tree_of(jnp.arange(width * batch, dtype=jnp.int32), batch)
    shared = jnp.where(child >= begin, read(value, jnp.clip(lane, 0, width * batch - 1)), 0.0)
    of_leaf = jnp.where(leaf.expand, step.reward + step.discount * value, shared)
    goes_on = jnp.where((made < num_nodes) & (step.discount != 0), edge, tree.edges.child.size)
    opened = dataclasses.replace(tree.edges, child=put(tree.edges.child, goes_on, made))
    tree = dataclasses.replace(tree, edges=opened, num_made=jnp.where(has_room, begin + width, tree.num_made))
    value = jnp.where(made < num_nodes, value, of_leaf)
    return backward(tree, selection, path, leaf, edge, made, value, Phase.SETTLE), room
