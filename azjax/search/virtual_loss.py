"""Several leaves of each tree in one call of the evaluator. Axis letters: see `search.py`; W leaves of a tree.

Until they are evaluated each path counts as lost for both players, so that the next simulation takes another one
(virtual loss, Chaslot et al. 2008, "Parallel Monte-Carlo Tree Search"). A path that ends at a pending node shares its
value. Leaf w of tree b is simulation w * B + b of a step.
"""

import functools
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PRNGKeyArray, PyTree

from azjax.core.arrays import put, read
from azjax.core.pytree import replace_fields
from azjax.core.xla import materialize, one_kernel
from azjax.search.dynamics import Dynamics, Evaluation, Step
from azjax.search.path import Leaf, Path
from azjax.search.priors import Untried, legal_softmax, untried_of
from azjax.search.search import (
    RootRule,
    attach,
    backward,
    descend,
    expand,
    simulation_keys,
    step_along,
)
from azjax.search.selection import Selection
from azjax.search.tree import ROOT, WEIGHT, Tree
from azjax.search.uncertainty import MAX_WEIGHT, sums_of_visit, weight_of_values

VIRTUAL_LOSS = 1.0
"""What every player on a path loses while its leaf waits for an evaluation."""


class PendingLeaf(NamedTuple):
    """A leaf that waits for its evaluation, of each tree.

    path: from the root to the leaf.
    leaf: where the path ends.
    made: the node that is made below the leaf, N where none is.
    slot, edge, prior: of the edge to that node.
    """

    path: Path
    leaf: Leaf
    made: Int32[Array, "R"]
    slot: Int32[Array, "R"]
    edge: Int32[Array, "R"]
    prior: Float32[Array, "R"]


def search(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    tree: Tree,
    selection: Selection,
    num_simulations: int,
    leaves_per_step: int,
    *,
    selection_keys: Key[Array, "B"] | None = None,
    root_rule: RootRule | None = None,
) -> Tree:
    """`azjax.search.search.search` with `leaves_per_step` leaves of each tree in one call of the evaluator."""

    def one_step(step: Int32[Array, ""], carry: tuple[Any, ...]) -> tuple[Any, ...]:
        evaluator_key = jax.random.fold_in(key, step)
        size = leaves_per_step * tree.batch * tree.num_slots
        simulate_step = one_kernel(functools.partial(simulate, dynamics, leaves_per_step), size)
        return simulate_step(params, evaluator_key, selection_keys, *carry, selection, step * leaves_per_step)

    start = tree, Path.allocate(tree, dynamics.max_depth), root_rule
    return cast(Tree, jax.lax.fori_loop(0, num_simulations // leaves_per_step, one_step, start)[0])


def simulate(
    dynamics: Dynamics,
    width: int,
    params: PyTree,
    key: PRNGKeyArray,
    selection_keys: Key[Array, "B"] | None,
    tree: Tree,
    scratch: Path,
    root_rule: RootRule | None,
    selection: Selection,
    simulation: Int32[Array, ""],
) -> tuple[Tree, Path, RootRule | None]:
    """`width` simulations in every tree, whose leaves are evaluated together; the first has number `simulation`."""
    has_capacity = tree.num_made + width <= tree.max_nodes
    begin = jnp.where(has_capacity, tree.num_made, tree.max_nodes)
    select = one_kernel(select_pending)

    def select_next(carry: tuple[Any, ...], number: Int32[Array, ""]) -> tuple[tuple[Any, ...], PendingLeaf]:
        keys = simulation_keys(selection_keys, selection, simulation + number)
        tree, scratch, root_rule = carry
        numbers = simulation + number, begin + number
        *following, pending = select(tree, scratch, root_rule, selection, keys, *numbers, has_capacity)
        return tuple(following), pending

    numbers = jnp.arange(width, dtype=jnp.int32)
    (tree, scratch, root_rule), pending = jax.lax.scan(select_next, (tree, scratch, root_rule), numbers)
    pending = one_kernel(side_by_side)(tree, pending)
    step = one_kernel(functools.partial(step_pending, dynamics))(params, key, tree, pending)
    evaluation = dynamics.evaluate(params, key, step.states, step.output)
    prior, untried = one_kernel(slots_of, width * tree.batch * tree.num_slots)(tree, evaluation.logits)
    tree = one_kernel(add)(tree, selection, pending, step, evaluation, prior, untried, begin, has_capacity)
    return tree, scratch, root_rule


def select_pending(
    tree: Tree,
    scratch: Path,
    root_rule: RootRule | None,
    selection: Selection,
    keys: Key[Array, "B"] | None,
    simulation: Int32[Array, ""],
    node: Int32[Array, ""],
    has_capacity: Bool[Array, ""],
) -> tuple[Tree, Path, RootRule | None, PendingLeaf]:
    """One leaf of each tree, and the trees in which its path is lost; R is B."""
    first = None if root_rule is None else root_rule.first_step(tree, simulation)
    path, leaf = descend(tree, selection, keys, scratch, has_capacity, first)
    slot = None if first is None else jnp.where(leaf.node == ROOT, first.slot, -1)
    new = materialize(tree.edges.new_edge(tree.prior, tree.num_slots, tree.index(leaf.node), slot))
    new, untried = materialize((new, untried_of(new.others, tree.edges.with_mass)))
    made = leaf.expand & has_capacity
    # The negative number ends a path: none goes on from a pending node.
    tree = attach(tree, leaf, new, untried, jnp.full(tree.batch, -node), made)
    zeros = jnp.zeros(tree.batch, jnp.float32)
    tree = tree.write_links(node, leaf.node, new.slot, new.prior, zeros, zeros, zeros)
    if root_rule is not None:
        root_rule = root_rule.with_edge(jnp.where(made & (leaf.node == ROOT), new.slot, -1), new.edge)
    pending = PendingLeaf(path, leaf, jnp.where(made, node, tree.num_nodes), new.slot, new.edge, new.prior)
    # Nothing is proven by a virtual loss.
    lost = replace_fields(tree, bounds=None)
    lost = backward(lost, selection, path, leaf, new.edge, pending.made, zeros, None, _record_virtual_loss)
    return replace_fields(lost, bounds=tree.bounds), path, root_rule, pending


def side_by_side(tree: Tree, pending: PendingLeaf) -> PendingLeaf:
    """The pending leaves of all simulations of a step, from those of each, stacked."""
    width = len(pending.made)

    def by_depth(rows: Int32[Array, "W DB"]) -> Int32[Array, "D W B"]:
        return jnp.swapaxes(rows.reshape(width, -1, tree.batch), 0, 1)

    nodes, edges = by_depth(pending.path.nodes), by_depth(pending.path.edges)
    # Beyond the end of a path are remains of an earlier one.
    on = jnp.arange(len(nodes), dtype=jnp.int32)[:, None, None] < pending.path.longest[None, :, None]
    nodes = jnp.where(on, nodes, tree.num_nodes)
    path = Path(nodes.reshape(-1), edges.reshape(-1), jnp.max(pending.path.longest))
    leaves: PendingLeaf = jax.tree.map(lambda rows: rows.reshape(-1), pending)
    return leaves._replace(path=path)


def step_pending(dynamics: Dynamics, params: PyTree, key: PRNGKeyArray, tree: Tree, pending: PendingLeaf) -> Step:
    """The steps along the edges to the pending nodes."""
    return step_along(dynamics, params, key, tree, pending.path, pending.leaf, pending.slot)


def slots_of(tree: Tree, logits: Float32[Array, "K R"]) -> tuple[Float32[Array, "R K"], Untried]:
    """The priors of new nodes, and their slots."""
    prior = legal_softmax(materialize(logits))
    return materialize((prior.T, untried_of(prior, tree.edges.with_mass)))


def add(
    tree: Tree,
    selection: Selection,
    pending: PendingLeaf,
    step: Step,
    evaluation: Evaluation,
    prior: Float32[Array, "R K"],
    untried: Untried,
    begin: Int32[Array, ""],
    has_capacity: Bool[Array, ""],
) -> Tree:
    """The trees with the evaluations of the pending leaves, whose nodes begin at `begin`."""
    path, leaf, made, slot, edge, edge_prior = pending
    size, width = len(made), len(made) // tree.batch
    value = jnp.where(step.discount != 0, evaluation.value, 0.0)
    child = jnp.abs(read(tree.edges.child, leaf.edge))
    simulation = tree.index(child - begin)
    shared = jnp.where(child >= begin, read(value, jnp.clip(simulation, 0, size - 1)), 0.0)
    leaf_value = jnp.where(leaf.expand, step.reward + step.discount * value, shared)
    weight = weight_of_values(evaluation, step.discount != 0)
    if weight is not None:
        of_shared = jnp.where(child >= begin, read(weight, jnp.clip(simulation, 0, size - 1)), MAX_WEIGHT)
        weight = jnp.where(leaf.expand, weight, of_shared)
    expandable = jnp.where((made < tree.num_nodes) & (step.discount != 0), edge, tree.edges.child.size)
    # All reads come before any write: otherwise XLA copies the array that is written.
    leaf_value, weight, expandable = materialize((leaf_value, weight, expandable))
    tree = expand(tree, leaf, slot, edge_prior, step, evaluation, prior, untried, begin)
    opened = replace_fields(tree.edges, child=put(tree.edges.child, expandable, made))
    num_made = jnp.where(has_capacity, begin + width, tree.num_made)
    tree = replace_fields(tree, edges=opened, num_made=num_made)
    value = jnp.where(made < tree.num_nodes, value, leaf_value)
    return backward(tree, selection, path, leaf, edge, made, value, weight, _record_in_place_of_loss)


def _record_virtual_loss(
    tree: Tree,
    selection: Selection,
    index: Int32[Array, "R"],
    value: Float32[Array, "R"],
    weight: Float32[Array, "R"] | None,
) -> tuple[Tree, Float32[Array, "R"]]:
    del selection, weight
    lost = jnp.full_like(value, -VIRTUAL_LOSS)
    return tree.add_visit(index, lost, {WEIGHT: jnp.ones_like(value)}), lost


def _record_in_place_of_loss(
    tree: Tree,
    selection: Selection,
    index: Int32[Array, "R"],
    value: Float32[Array, "R"],
    weight: Float32[Array, "R"] | None,
) -> tuple[Tree, Float32[Array, "R"]]:
    returns, sums = sums_of_visit(selection, value, weight)
    if weight is not None:
        sums |= {WEIGHT: weight - 1.0}
    return tree.add_visit(index, returns + VIRTUAL_LOSS, sums, visits=0), value
