"""Simulations in every tree of a batch: descend, expand and evaluate, backward.

Axis letters: see `tree.py`; `D` depth, `R` leaves of a step, B for each of its `leaves_per_step`, of which leaf r is in
tree r modulo B.
"""

import dataclasses
import functools
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, PyTree

from azjax.core.arrays import put, read, tree_of, write_rows
from azjax.core.xla import materialize, one_kernel
from azjax.search.backward import Phase, backward
from azjax.search.descend import FirstStep, Leaf, Path, descend
from azjax.search.dynamics import Dynamics, Evaluation, Root, Step
from azjax.search.edges import NewEdge, NodePriors, Untried
from azjax.search.expand import attach, expand, new_edge, step_below, step_from_leaves, write_nodes
from azjax.search.selection import Selection
from azjax.search.tree import ROOT, Tree, new_tree

_Steps = TypeVar("_Steps", bound="RootSteps")


def search(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    tree: Tree,
    selection: Selection,
    num_simulations: int,
    leaves_per_step: int = 1,
) -> Tree:
    """The trees after `num_simulations` more simulations, a multiple of `leaves_per_step`.

    The evaluator consumes `key`. A full tree goes on without making nodes.
    """

    def one_step(step: Int32[Array, ""], carry: tuple[Tree, Path]) -> tuple[Tree, Path]:
        evaluator_key = jax.random.fold_in(key, step)
        size = leaves_per_step * tree.batch * tree.num_slots
        return one_kernel(simulate_step, size)(params, evaluator_key, *carry, selection)

    def simulate_step(
        params: PyTree, key: PRNGKeyArray, tree: Tree, scratch: Path, selection: Selection
    ) -> tuple[Tree, Path]:
        if leaves_per_step == 1:
            return simulate(dynamics, params, key, tree, scratch, selection)[:2]
        return simulate_with_virtual_loss(dynamics, params, key, tree, scratch, selection, leaves_per_step)

    start = tree.flatten(), Path.allocate(tree, dynamics.max_depth)
    flat: Tree
    flat, _ = jax.lax.fori_loop(0, num_simulations // leaves_per_step, one_step, start)
    return flat.unflatten_like(tree)


def simulate(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    tree: Tree,
    scratch: Path,
    selection: Selection,
    first: FirstStep | None = None,
) -> tuple[Tree, Path, Int32[Array, "B"], Float32[Array, "B"]]:
    """One simulation in every tree. The nodes that it makes have the same number in all of them.

    Args:
      dynamics: what lies behind an edge.
      params: what the evaluator reads.
      key: consumed by the evaluator.
      tree: the trees, flat.
      scratch: see `descend`.
      selection: the rule of selection.
      first: see `descend`.

    Returns:
      the trees; the paths; the edges to the new nodes; and the values of the ends of the paths, seen by their players
      to move.
    """
    path, leaf = one_kernel(descend)(tree, selection, scratch, first)
    # All reads come before any write: otherwise XLA copies the array that is written.
    new, step = materialize(one_kernel(functools.partial(step_below, dynamics))(params, key, tree, path, leaf, first))
    evaluation = dynamics.evaluate(params, key, step.states, step.output)

    untried, priors = one_kernel(slots_of, tree.batch * tree.num_slots)(tree, new, evaluation.logits)
    tree, edge, value = one_kernel(add)(tree, selection, path, leaf, new, step, evaluation, untried, priors)
    return tree, path, edge, value


def slots_of(tree: Tree, new: NewEdge, logits: Float32[Array, "K R"]) -> tuple[Untried | None, NodePriors]:
    """The slots that have no child once the edges `new` have theirs, and the priors of new nodes."""
    return materialize((tree.edges.untried_without(new), tree.edges.priors(materialize(logits))))


def add(
    tree: Tree,
    selection: Selection,
    path: Path,
    leaf: Leaf,
    new: NewEdge,
    step: Step,
    evaluation: Evaluation,
    untried: Untried | None,
    priors: NodePriors,
) -> tuple[Tree, Int32[Array, "B"], Float32[Array, "B"]]:
    """The trees with a simulation, the edges to its nodes, and the values of the ends of its paths; R is B."""
    # A full tree writes to a spare row, to which nothing leads.
    node = jnp.minimum(tree.num_made, tree.max_nodes)
    tree, edge, made, value = expand(tree, selection, leaf, new, step, evaluation, untried, priors, node)
    tree = dataclasses.replace(tree, num_made=jnp.minimum(node + 1, tree.max_nodes))
    return backward(tree, selection, path, leaf, edge, made, value), edge, value


class PendingLeaf(NamedTuple):
    """A leaf that waits for its evaluation, of each tree.

    made: the node that is made below the leaf, N where none is.
    slot, edge, prior: of the edge to that node.
    """

    path: Path
    leaf: Leaf
    made: Int32[Array, "B"]
    slot: Int32[Array, "B"]
    edge: Int32[Array, "B"]
    prior: Float32[Array, "B"]


def simulate_with_virtual_loss(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    tree: Tree,
    scratch: Path,
    selection: Selection,
    leaves_per_step: int,
) -> tuple[Tree, Path]:
    """`leaves_per_step` simulations in every tree, whose leaves are evaluated together.

    Until then each path counts as lost for both players, so that the next simulation takes another one (virtual loss,
    Chaslot et al. 2008, "Parallel Monte-Carlo Tree Search"). A path that ends at a pending node shares its value.
    """
    batch, width = tree.batch, leaves_per_step
    has_capacity = tree.num_made + width <= tree.max_nodes
    begin = jnp.where(has_capacity, tree.num_made, tree.max_nodes)
    select = one_kernel(select_pending_leaf)

    def select_next(carry: tuple[Tree, Path], number: Int32[Array, ""]) -> tuple[tuple[Tree, Path], PendingLeaf]:
        tree, path, pending = select(*carry, selection, begin + number, has_capacity)
        return (tree, path), pending

    (tree, scratch), pending = jax.lax.scan(select_next, (tree, scratch), jnp.arange(width, dtype=jnp.int32))

    def side_by_side(tree: Tree, pending: PendingLeaf) -> PendingLeaf:
        def by_depth(rows: Int32[Array, "width DB"]) -> Int32[Array, "D width B"]:
            return jnp.swapaxes(rows.reshape(width, -1, batch), 0, 1)

        nodes, edges = by_depth(pending.path.nodes), by_depth(pending.path.edges)
        # Beyond the end of a path are remains of an earlier one.
        on = jnp.arange(len(nodes), dtype=jnp.int32)[:, None, None] < pending.path.longest[None, :, None]
        nodes = jnp.where(on, nodes, tree.num_nodes)
        path = Path(nodes.reshape(-1), edges.reshape(-1), jnp.max(pending.path.longest))
        leaves: PendingLeaf = jax.tree.map(lambda rows: rows.reshape(-1), pending)
        return leaves._replace(path=path)

    def step_pending(params: PyTree, key: PRNGKeyArray, tree: Tree, pending: PendingLeaf) -> Step:
        return step_from_leaves(dynamics, params, key, tree, pending.path, pending.leaf, pending.slot)

    pending = one_kernel(side_by_side)(tree, pending)
    step = one_kernel(step_pending)(params, key, tree, pending)
    evaluation = dynamics.evaluate(params, key, step.states, step.output)

    def priors_of(tree: Tree, logits: Float32[Array, "K R"]) -> NodePriors:
        return materialize(tree.edges.priors(materialize(logits)))

    priors = one_kernel(priors_of, width * batch * tree.num_slots)(tree, evaluation.logits)
    add = one_kernel(functools.partial(add_pending, width))
    return add(tree, selection, pending, step, evaluation, priors, begin, has_capacity), scratch


def select_pending_leaf(
    tree: Tree, scratch: Path, selection: Selection, node: Int32[Array, ""], has_capacity: Bool[Array, ""]
) -> tuple[Tree, Path, PendingLeaf]:
    """One leaf of each tree, and the trees in which its path is lost; R is B."""
    path, leaf = descend(tree, selection, scratch)
    new = materialize(new_edge(tree, leaf))
    new, untried = materialize((new, tree.edges.untried_without(new)))
    made = jnp.where(leaf.expand & has_capacity, node, tree.num_nodes)
    # The negative number ends a path: none goes on from a pending node.
    tree, edge = attach(tree, leaf, new, untried, made < tree.num_nodes, jnp.full(tree.batch, -node))
    zeros = jnp.zeros(tree.batch, jnp.float32)
    row = jnp.stack([zeros, zeros, new.prior], axis=1)
    tree = dataclasses.replace(tree, facts=write_rows(tree.facts, row, node))
    tree = backward(tree, selection, path, leaf, edge, made, zeros, Phase.VIRTUAL_LOSS)
    return tree, path, PendingLeaf(path, leaf, made, new.slot, edge, new.prior)


def add_pending(
    width: int,
    tree: Tree,
    selection: Selection,
    pending: PendingLeaf,
    step: Step,
    evaluation: Evaluation,
    priors: NodePriors,
    begin: Int32[Array, ""],
    has_capacity: Bool[Array, ""],
) -> Tree:
    """The trees with the evaluations of `width` pending leaves each, side by side, whose nodes begin at `begin`."""
    num_nodes, batch = tree.num_nodes, tree.batch
    path, leaf, made, slot, edge, prior = pending
    value = jnp.where(step.discount != 0, evaluation.value, 0.0)
    child = jnp.abs(read(tree.edges.child, leaf.edge))
    lane = (child - begin) * batch + tree_of(jnp.arange(width * batch, dtype=jnp.int32), batch)
    shared = jnp.where(child >= begin, read(value, jnp.clip(lane, 0, width * batch - 1)), 0.0)
    leaf_value = jnp.where(leaf.expand, step.reward + step.discount * value, shared)
    expandable = jnp.where((made < num_nodes) & (step.discount != 0), edge, tree.edges.child.size)
    # All reads come before any write: otherwise XLA copies the array that is written.
    leaf_value, expandable = materialize((leaf_value, expandable))
    tree = write_nodes(tree, selection, leaf, slot, prior, step, evaluation, priors, begin, width)
    opened = dataclasses.replace(tree.edges, child=put(tree.edges.child, expandable, made))
    tree = dataclasses.replace(tree, edges=opened, num_made=jnp.where(has_capacity, begin + width, tree.num_made))
    value = jnp.where(made < num_nodes, value, leaf_value)
    return backward(tree, selection, path, leaf, edge, made, value, Phase.CORRECTION)


# Searches whose rule of selection reads the evaluation of each node.


@runtime_checkable
class ValueSelection(Selection, Protocol):
    """A `Selection` dataclass with the evaluations of all nodes, flat."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def values(self) -> Float32[Array, "NB"]: ...


@runtime_checkable
class RootSteps(Protocol):
    """Chooses the steps from the roots; see `SequentialHalving`."""

    def first_step(self, tree: Tree, rule: Any, simulation: Int32[Array, ""]) -> FirstStep:
        """The step of simulation number `simulation`."""
        ...

    def with_edge(self: _Steps, edge: Int32[Array, "B"], simulation: Int32[Array, ""]) -> _Steps:
        """Takes in the edges to the nodes that the simulation made."""
        ...


_Carry: TypeAlias = tuple[Tree, Path, Float32[Array, "NB"], RootSteps | None]
"""The trees, scratch, the values of the nodes, and the rule of the roots' steps."""


def root_values(root: Root, num_simulations: int) -> Float32[Array, "NB"]:
    """The evaluations of the roots, and zeros for `num_simulations` more nodes and a spare row."""
    values = jnp.zeros((num_simulations + 2, len(root.terminated)), jnp.float32)
    return values.at[ROOT].set(jnp.where(root.terminated, 0.0, root.evaluation.value)).reshape(-1)


def search_with_values(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    root: Root,
    rule: ValueSelection,
    num_simulations: int,
    root_steps: RootSteps | None = None,
    solver: bool = False,
) -> Tree:
    """The trees of `num_simulations` simulations by a rule of selection that reads the evaluation of each node.

    Args:
      dynamics: what lies behind an edge.
      params: what the evaluator reads.
      key: consumed by the evaluator.
      root: where the search starts.
      rule: with `root_values` as its `values`.
      num_simulations: in each tree.
      root_steps: chooses the roots' steps; `rule` does where it is None.
      solver: keep `Tree.bounds`.
    """
    tree = new_tree(root, rule, num_simulations + 1, solver=solver)

    def one_simulation(simulation: Int32[Array, ""], carry: _Carry) -> _Carry:
        flat, scratch, values, root_steps = carry
        node, selection = flat.num_made, dataclasses.replace(rule, values=values)
        first = None if root_steps is None else root_steps.first_step(flat, selection, simulation)
        evaluator_key = jax.random.fold_in(key, simulation)
        flat, path, edge, value = simulate(dynamics, params, evaluator_key, flat, scratch, selection, first)
        root_steps = None if root_steps is None else root_steps.with_edge(edge, simulation)
        return flat, path, write_rows(values, value, node), root_steps

    start = tree.flatten(), Path.allocate(tree, dynamics.max_depth), rule.values, root_steps
    flat: Tree
    flat, *_ = jax.lax.fori_loop(0, num_simulations, one_simulation, start)
    return flat.unflatten_like(tree)
