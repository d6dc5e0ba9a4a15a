"""The search: simulate, expand, backward, in every tree of a batch at once.

Axis letters: see `tree.py`; `D` depth, `R` leaves of a step, B for each of its `leaves_per_step`.
"""

import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PRNGKeyArray, PyTree

from azjax.core.arrays import put, read_row, write_rows
from azjax.core.packing import Packing
from azjax.core.pytree import replace_fields
from azjax.core.xla import materialize, one_kernel
from azjax.search.blocked import BlockedEdges
from azjax.search.dense import DenseEdges
from azjax.search.dynamics import Dynamics, Evaluation, Root, Step
from azjax.search.edges import NO_CHILD, NewEdge, allocate
from azjax.search.path import Cutoff, FirstStep, Leaf, Path
from azjax.search.priors import Untried, legal_softmax, untried_of
from azjax.search.repetition import occurrences
from azjax.search.selection import Selection, has_own_backward
from azjax.search.solver import is_proven, prove, unproven
from azjax.search.tree import ROOT, Tree
from azjax.search.uncertainty import sums_of_visit, weight_of_values

_Descent: TypeAlias = tuple[Path, Array, Leaf]
"""The paths so far, which of them go on, and their ends."""

_Rule = TypeVar("_Rule", bound="RootRule")

MAX_DENSE_SLOTS = 16
"""Trees with at most this many slots keep `DenseEdges`, others `BlockedEdges`."""


@runtime_checkable
class RootRule(Protocol):
    """Chooses the steps from the roots in place of the rule of selection. A pytree, which the search carries."""

    def first_step(self, tree: Tree, simulation: Int32[Array, ""]) -> FirstStep:
        """The step of simulation number `simulation`."""
        ...

    def with_edge(self: _Rule, slot: Int32[Array, "B"], edge: Int32[Array, "B"]) -> _Rule:
        """Takes in the edges of slots of the roots that got a child; -1 for `slot` where none did."""
        ...


def new_tree(
    root: Root,
    selection: Selection,
    max_nodes: int,
    *,
    leaves_per_step: int = 1,
    solver: bool = False,
    evaluated: bool = True,
) -> Tree:
    """Trees that hold their roots alone.

    Args:
      root: the positions.
      selection: the rule of selection.
      max_nodes: the capacity, root included.
      leaves_per_step: of the search; N is larger by as many spare rows, which a full tree writes to.
      solver: keep `Tree.bounds`.
      evaluated: the evaluations of the roots count as visits.
    """
    batch, num_slots = root.prior.shape
    num_nodes = max_nodes + leaves_per_step
    ones, zeros = jnp.ones(batch, jnp.float32), jnp.zeros(batch, jnp.int32)
    value = jnp.where(root.terminated, 0.0, root.evaluation.value)
    discount = jnp.where(root.terminated, jnp.float32(0), 1.0)
    weight = weight_of_values(root.evaluation, ~root.terminated)
    packing, (returns, own_sums) = Packing.of(root.positions), sums_of_visit(selection, value, weight)
    sums = jnp.stack([ones, returns, *own_sums.values()], axis=1)
    edges_type = DenseEdges if num_slots <= MAX_DENSE_SLOTS else BlockedEdges
    return Tree(
        histories=root.histories,
        keys=None if root.keys is None else allocate(num_nodes, root.keys),
        positions=allocate(num_nodes, packing.pack(root.positions)),
        sums=write_rows(
            jnp.zeros(num_nodes * sums.size, jnp.float32), sums if evaluated else jnp.zeros_like(sums), jnp.int32(ROOT)
        ),
        facts=allocate(num_nodes, jnp.stack([0 * ones, discount, ones, value], axis=1)),
        links=allocate(num_nodes, jnp.stack([zeros, zeros], axis=1)),
        prior=allocate(num_nodes, root.prior),
        actions=None if root.evaluation.actions is None else allocate(num_nodes, root.evaluation.actions),
        edges=edges_type.create(selection, root.prior, num_nodes, solver),
        bounds=allocate(num_nodes, unproven(root.terminated)) if solver else None,
        num_made=jnp.int32(1),
        sum_names=tuple(own_sums),
        packing=packing,
        max_nodes=max_nodes,
        num_nodes=num_nodes,
        batch=batch,
        num_slots=num_slots,
    )


def search(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    tree: Tree,
    selection: Selection,
    num_simulations: int,
    *,
    selection_keys: Key[Array, "B"] | None = None,
    root_rule: RootRule | None = None,
) -> Tree:
    """The trees after `num_simulations` more simulations. A full tree goes on without making nodes.

    Args:
      dynamics: what lies behind an edge.
      params: what the evaluator reads.
      key: consumed by the evaluator.
      tree: the trees.
      selection: the rule of selection.
      num_simulations: in each tree.
      selection_keys: consumed by the rule, where it is random.
      root_rule: chooses the steps from the roots; `selection` does where it is None.
    """

    def one_simulation(simulation: Int32[Array, ""], carry: tuple[Any, ...]) -> tuple[Any, ...]:
        keys = simulation_keys(selection_keys, selection, simulation)
        step = one_kernel(functools.partial(simulate, dynamics), tree.batch * tree.num_slots)
        return step(params, jax.random.fold_in(key, simulation), keys, *carry, selection, simulation)

    start = tree, Path.allocate(tree, dynamics.max_depth), root_rule
    return cast(Tree, jax.lax.fori_loop(0, num_simulations, one_simulation, start)[0])


def simulation_keys(
    keys: Key[Array, "B"] | None, selection: Selection, simulation: Int32[Array, ""]
) -> Key[Array, "B"] | None:
    """The keys of one simulation for a rule of selection that is random."""
    if not selection.is_random or keys is None:
        return None
    return jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, simulation)


def simulate(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    selection_keys: Key[Array, "B"] | None,
    tree: Tree,
    scratch: Path,
    root_rule: RootRule | None,
    selection: Selection,
    simulation: Int32[Array, ""],
) -> tuple[Tree, Path, RootRule | None]:
    """One simulation in every tree. The nodes that it makes have the same number in all of them."""
    first = None if root_rule is None else root_rule.first_step(tree, simulation)
    has_room = tree.num_made < tree.max_nodes
    path, leaf = one_kernel(descend)(tree, selection, selection_keys, scratch, has_room, first)
    # All reads come before any write: otherwise XLA copies the array that is written.
    new, step = materialize(one_kernel(functools.partial(step_below, dynamics))(params, key, tree, path, leaf, first))
    cutoff = materialize(Cutoff.of(tree, path, dynamics.max_depth)) if dynamics.cuts_off else None
    evaluation = dynamics.evaluate(params, key, step.states, step.output)
    untried, prior, new_untried = one_kernel(untried_slots, tree.batch * tree.num_slots)(tree, new, evaluation.logits)
    made = leaf.expand & has_room
    tree = one_kernel(add)(tree, selection, path, leaf, new, step, evaluation, untried, prior, new_untried, cutoff)
    if root_rule is not None:
        root_rule = root_rule.with_edge(jnp.where(made & (leaf.node == ROOT), new.slot, -1), new.edge)
    return tree, path, root_rule


def descend(
    tree: Tree,
    selection: Selection,
    keys: Key[Array, "B"] | None,
    scratch: Path,
    has_room: Bool[Array, ""],
    first: FirstStep | None = None,
) -> tuple[Path, Leaf]:
    """Follows `selection` from each root to an edge without a child, or to a node that is never expanded; R is B.

    Args:
      tree: the trees.
      selection: the rule of selection.
      keys: for a rule that is random.
      scratch: an earlier path, which is written over.
      has_room: for a new node; without it edges without a child are followed only from nodes without others.
      first: the step from the root, where `selection` does not choose it.
    """

    def select(carry: _Descent) -> _Descent:
        path, _, leaf = carry
        index, depth = tree.index(leaf.node), path.longest
        node_terms = selection.node_terms(tree.node_statistics(index, depth), tree.edges.fold(selection, index))
        if tree.edges.with_mass:
            node_terms = materialize(node_terms)
        own = None if keys is None else jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, depth)
        return follow(carry, *tree.edges.best(selection, own, depth, node_terms, index, has_room))

    def follow(carry: _Descent, edge: Int32[Array, "B"], child: Int32[Array, "B"]) -> _Descent:
        path, on, leaf = carry
        is_new = child == NO_CHILD
        path = Path(
            nodes=write_rows(path.nodes, jnp.where(on & ~is_new, jnp.abs(child), tree.num_nodes), path.longest),
            edges=write_rows(path.edges, edge, path.longest),
            longest=path.longest + 1,
        )
        below = on & (child > 0)
        # A path that ends keeps the node above its last edge: the parent of a new node.
        leaf = Leaf(
            node=jnp.where(below, child, leaf.node),
            edge=jnp.where(on, edge, leaf.edge),
            expand=leaf.expand | (on & is_new),
            running=leaf.running,
        )
        return path, below, leaf

    zeros = jnp.zeros(tree.batch, jnp.int32)
    roots = tree.index(zeros)
    # Stored: computed again after the arrays are written, it would make XLA copy them.
    running = materialize((tree.at(roots).discount != 0) & ~is_proven(tree, roots))
    start = scratch._replace(longest=jnp.int32(0)), running, Leaf(zeros, zeros, zeros > 0, running)
    if first is not None:
        start = follow(start, first.edge, first.child)
    path, _, leaf = jax.lax.while_loop(lambda carry: jnp.any(carry[1]), select, start)
    return path, leaf


def step_below(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    tree: Tree,
    path: Path,
    leaf: Leaf,
    first: FirstStep | None,
) -> tuple[NewEdge, Step]:
    """The edges of the leaves that are to get a child, and the steps along them; R is B."""
    slot = None if first is None else jnp.where(leaf.node == ROOT, first.slot, -1)
    new = tree.edges.new_edge(tree.prior, tree.num_slots, tree.index(leaf.node), slot)
    return new, step_along(dynamics, params, key, tree, path, leaf, new.slot)


def step_along(
    dynamics: Dynamics, params: PyTree, key: PRNGKeyArray, tree: Tree, path: Path, leaf: Leaf, slot: Int32[Array, "R"]
) -> Step:
    """Plays the actions of `slot` at the leaves."""
    index = tree.index(leaf.node)
    occurred = None if tree.histories is None else functools.partial(occurrences, tree, path)
    return dynamics.step(params, key, tree.states_at(index), tree.action_at(index, slot), occurred)


def untried_slots(
    tree: Tree, new: NewEdge, logits: Float32[Array, "K R"]
) -> tuple[Untried, Float32[Array, "R K"], Untried]:
    """The slots without a child once the edges `new` have theirs; the priors of the new nodes, and their slots."""
    prior = legal_softmax(materialize(logits))
    return materialize((untried_of(new.others, tree.edges.with_mass), prior.T, untried_of(prior, tree.edges.with_mass)))


def add(
    tree: Tree,
    selection: Selection,
    path: Path,
    leaf: Leaf,
    new: NewEdge,
    step: Step,
    evaluation: Evaluation,
    untried: Untried,
    prior: Float32[Array, "B K"],
    new_untried: Untried,
    cutoff: Cutoff | None,
) -> Tree:
    """The trees with a simulation: `expand` and `backward`; R is B."""
    # A full tree writes to a spare row, to which nothing leads.
    node = jnp.minimum(tree.num_made, tree.max_nodes)
    expanded = leaf.expand & (node < tree.max_nodes)
    is_last = step.discount == 0 if cutoff is None else (step.discount == 0) | cutoff.reached
    tree = attach(tree, leaf, new, untried, jnp.where(is_last, -node, node), expanded)
    tree = expand(tree, leaf, new.slot, new.prior, step, evaluation, prior, new_untried, node)
    tree = replace_fields(tree, num_made=jnp.minimum(node + 1, tree.max_nodes))

    value = jnp.where(step.discount != 0, evaluation.value, 0.0)
    # A full tree makes no node: the path ends at the leaf, whose value is that of the step.
    leaf_value = jnp.where(leaf.expand, step.reward + step.discount * value, 0.0 if cutoff is None else cutoff.value)
    made = jnp.where(expanded, node, tree.num_nodes)
    weight = weight_of_values(evaluation, leaf.expand & (step.discount != 0))
    return backward(tree, selection, path, leaf, new.edge, made, jnp.where(expanded, value, leaf_value), weight)


def attach(tree: Tree, leaf: Leaf, new: NewEdge, untried: Untried, child: Int32[Array, "B"], made: Array) -> Tree:
    """Makes the edges `new` lead to `child` where `made` holds; R is B."""
    index = tree.index(leaf.node)
    at_slot = jnp.where(made, index * tree.num_slots + new.slot, tree.prior.size)
    prior = put(tree.prior, at_slot, jnp.full_like(new.prior, -1))
    return replace_fields(tree, prior=prior, edges=tree.edges.attach(new, untried, index, child, made))


def expand(
    tree: Tree,
    leaf: Leaf,
    slot: Int32[Array, "R"],
    edge_prior: Float32[Array, "R"],
    step: Step,
    evaluation: Evaluation,
    prior: Float32[Array, "R K"],
    untried: Untried,
    node: Int32[Array, ""],
) -> Tree:
    """The trees with new nodes, from number `node` on, each below its leaf.

    Rows of leaves that are not expanded are written too, but nothing leads to them.

    Args:
      tree: the trees.
      leaf: the parents of the new nodes.
      slot: of the parent, through which each node is reached.
      edge_prior: of that slot.
      step: into the new positions.
      evaluation: of the new positions.
      prior: of the slots of the new nodes.
      untried: those slots.
      node: see above.
    """
    value = jnp.where(step.discount != 0, evaluation.value, 0.0)
    tree = tree.write_links(node, leaf.node, slot, edge_prior, step.reward, step.discount, value)
    tree = tree.write_nodes(node, step.states, step.keys, prior, evaluation.actions)
    count = len(slot) // tree.batch
    if tree.bounds is not None:
        tree = replace_fields(tree, bounds=write_rows(tree.bounds, unproven(step.discount == 0), node, count))
    return replace_fields(tree, edges=tree.edges.write_nodes(untried, node, count))


Record: TypeAlias = Callable[[Tree, Selection, Array, Array, Array | None], tuple[Tree, Array]]
"""`record(tree, selection, index, value, weight)`: the trees with a visit of the nodes at `index`, and the value
recorded."""


def record_visit(
    tree: Tree,
    selection: Selection,
    index: Int32[Array, "R"],
    value: Float32[Array, "R"],
    weight: Float32[Array, "R"] | None,
) -> tuple[Tree, Float32[Array, "R"]]:
    """A visit and its return."""
    return tree.add_visit(index, *sums_of_visit(selection, value, weight)), value


def backward(
    tree: Tree,
    selection: Selection,
    path: Path,
    leaf: Leaf,
    new_edge: Int32[Array, "R"],
    made: Int32[Array, "R"],
    value: Float32[Array, "R"],
    weight: Float32[Array, "R"] | None,
    record: Record = record_visit,
) -> Tree:
    """Adds a visit and its return to the nodes `made`, to every node of the paths, and to the roots.

    Args:
      tree: the trees.
      selection: the rule of selection.
      path: of the simulations.
      leaf: the ends of the paths.
      new_edge: leads to the node made.
      made: the node made below the leaf, N where none was made.
      value: of the path's end, seen by its player to move.
      weight: of the simulations; None if all count alike.
      record: what is added at each node.
    """
    nowhere, lanes = tree.num_nodes * tree.batch, len(made)

    def visit(
        tree: Tree,
        nodes: Int32[Array, "R"],
        edge: Int32[Array, "R"],
        above: Int32[Array, "R"],
        value: Float32[Array, "R"],
    ) -> tuple[Tree, Float32[Array, "R"]]:
        """Visits `nodes`, reached by `edge` from the nodes `above`, and returns the values of those."""
        on = nodes < tree.num_nodes
        at = tree.index(jnp.minimum(nodes, tree.num_nodes - 1))
        edge, above, exact = jnp.where(on, edge, tree.edges.child.size), tree.index(above), None
        if tree.bounds is not None:
            tree, value, exact = prove(tree, at, edge, above, value)
        node = tree.at(at)
        value = jnp.where(on, node.reward + node.discount * value, value)
        tree, recorded = record(tree, selection, jnp.where(on, at, nowhere), value, weight)
        statistics = tree.edge_statistics(at, recorded)
        if exact is not None:
            known = ~jnp.isnan(exact)
            statistics = statistics._replace(
                q=jnp.where(known, exact, statistics.q), value=jnp.where(known, exact, statistics.value)
            )
        return tree.with_terms(edge, selection.update(statistics)), value

    def hand_up(
        tree: Tree,
        nodes: Int32[Array, "R"],
        depth: Int32[Array, ""],
        value: Float32[Array, "R"],
        visited_below: Bool[Array, "R"],
    ) -> Float32[Array, "R"]:
        """The values of `nodes` at `depth` by the rule, below which a visit ended. Paths that meet hand up the same."""
        if not has_own_backward(selection):
            return value
        at = tree.index(jnp.minimum(nodes, tree.num_nodes - 1))
        own = selection.backward(value, tree.node_statistics(at, depth), tree.edges.fold(selection, at))
        return jnp.where(visited_below & (nodes < tree.num_nodes), own, value)

    def go_up(step: Int32[Array, ""], carry: tuple[Tree, Array, Array]) -> tuple[Tree, Array, Array]:
        tree, value, visited_below = carry
        row = path.longest - 1 - step
        nodes, edges = read_row(path.nodes, row, lanes), read_row(path.edges, row, lanes)
        value = hand_up(tree, nodes, row + 1, value, visited_below)
        above = jnp.where(row > 0, read_row(path.nodes, jnp.maximum(row - 1, 0), lanes), ROOT)
        above = jnp.where(nodes < tree.num_nodes, above, ROOT)
        return *visit(tree, nodes, edges, above, value), visited_below | (nodes < tree.num_nodes)

    # In a full tree an edge that was evaluated has no child, and the node above it hands up its own value all the same.
    start = *visit(tree, made, new_edge, leaf.node, value), leaf.expand
    tree, value, visited_below = jax.lax.fori_loop(0, path.longest, go_up, start)
    zeros = jnp.zeros(lanes, jnp.int32)
    value, roots = hand_up(tree, zeros, jnp.int32(0), value, visited_below), tree.index(zeros)
    return record(tree, selection, jnp.where(leaf.running, roots, nowhere), value, weight)[0]
