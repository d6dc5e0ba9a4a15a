"""The arrays of a batch of search trees.

Axis letters: `B` batch (one tree each), `N` nodes of a tree, `K` slots of the compact table of legal actions,
`A` actions, `M` blocks of edges and `L` lanes of a block (see `edges.py`), `W` words of a packed position, `R` nodes
that are looked at together, of which node r is in tree r modulo B. Arrays are node-major: simulation i makes node i + 1
of all trees at once, so its row is one contiguous write. The index of node n of tree b is n * B + b. Arrays are flat
(see `azjax/core/arrays.py`), with shapes such as "NB2"; `Tree.nodes` and other properties show them by node and tree.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Int32, PyTree, Shaped, UInt32

from azjax.core.arrays import add, put, read, write_rows
from azjax.core.packing import Packing
from azjax.core.pytree import pytree_dataclass, replace_fields, static_field
from azjax.core.xla import materialize
from azjax.games.repetition import History
from azjax.search.edges import EdgeStore, Index, take_rows, tree_of
from azjax.search.selection import EdgeStatistics, EdgeTerms, NodeStatistics, Numbers

ROOT = 0
NO_NODE = -1

WEIGHT = "weight"
"""In `Nodes.sums`, where an evaluator gives errors: the weights of the visits. See `uncertainty.py`."""

# Columns of `Tree.sums`, `Tree.facts` and `Tree.links`; what a simulation reads together lies together. Nothing outside
# this file knows them.
_VISITS, _RETURNS, _NUM_SUMS = range(3)
_REWARD, _DISCOUNT, _PRIOR, _EVALUATION, _NUM_FACTS = range(5)
_PARENT, _SLOT, _NUM_LINKS = range(3)


class Nodes(NamedTuple):
    """Nodes of search trees; without visits their other numbers have no meaning.

    visits: simulations that passed through the node, its own evaluation included.
    returns: sum over the visits of `reward + discount * value`, seen by the player who moved into the node; the root's
      are seen by its player to move.
    reward: of the step into the node, for the player who made it.
    discount: -1 where the other player moves at the node, +1 where the same one does, 0 where the game is over.
    prior: of the edge to the node.
    evaluation: what the evaluator said, seen by the player to move; 0 where the game is over.
    parent: the node above.
    slot: of the parent, through which the node is reached.
    sums: `Selection.sums` over the visits, and `WEIGHT` where returns count by their weight.
    """

    visits: Float32[Array, "..."]
    returns: Float32[Array, "..."]
    reward: Float32[Array, "..."]
    discount: Float32[Array, "..."]
    prior: Float32[Array, "..."]
    evaluation: Float32[Array, "..."]
    parent: Int32[Array, "..."]
    slot: Int32[Array, "..."]
    sums: Mapping[str, Float32[Array, "..."]]

    @property
    def q(self) -> Float32[Array, "..."]:
        """Mean of the returns, by their weight; 0 without visits."""
        if WEIGHT in self.sums:
            return self.returns / jnp.where(self.visits > 0, self.weight, 1.0)
        return self.returns / jnp.maximum(self.visits, 1)

    @property
    def weight(self) -> Float32[Array, "..."]:
        """Sum of the weights of the visits, which are 1 where the evaluator gives no errors."""
        return self.sums.get(WEIGHT, self.visits)


class RootChildren(NamedTuple):
    """The children of the roots.

    at: their indices, for slot k of tree b at b * K + k; that of the root where there is no child.
    exists: where there is one.
    """

    at: Index
    exists: Bool[Array, "B K"]

    def by_slot(self, values: Shaped[Array, "BK"]) -> Shaped[Array, "B K"]:
        """The `values` of these nodes, 0 where there is no child."""
        return jnp.where(self.exists, values.reshape(self.exists.shape), jnp.zeros((), values.dtype))


@pytree_dataclass
class Tree:
    """B search trees of N nodes each.

    Rows of nodes that are not made yet hold what was in memory; on a GPU that can be NaN, at which `jax_debug_nans`
    stops if a jitted function returns the tree.

    histories: of the roots' games, every leaf [B, ...]; None where a repetition has no consequence.
    keys: of the positions; None where `histories` is.
    positions: packed states without their history; see `states`.
    sums, facts, links: see `nodes`.
    prior: probabilities over the legal slots, -1 in holes and where there is a child.
    actions: the action of each slot; None where K == A, since slot a is action a there.
    edges: from the nodes to their children.
    bounds: the lower and upper bound proven of the node's value, seen by its player to move; None without a solver.
    num_made: the number of the node that is made next; [B] in trees of `by_game`.
    sum_names: of `Nodes.sums`.
    packing: of the positions.
    max_nodes: the capacity. A full tree writes to the rows from there on.
    num_nodes, batch, num_slots: N, B and K.
    """

    histories: History | None
    keys: UInt32[Array, "NB2"] | None
    positions: UInt32[Array, "NBW"]
    sums: Float32[Array, "NBS"]
    facts: Float32[Array, "NBF"]
    links: Int32[Array, "NB2"]
    prior: Float32[Array, "NBK"]
    actions: Int32[Array, "NBK"] | None
    edges: EdgeStore
    bounds: Float32[Array, "NB2"] | None
    num_made: Int32[Array, "*B"]
    sum_names: tuple[str, ...] = static_field()
    packing: Packing = static_field()
    max_nodes: int = static_field()
    num_nodes: int = static_field()
    batch: int = static_field()
    num_slots: int = static_field()

    @property
    def nodes(self) -> Nodes:
        """All nodes [N, B]."""
        grids = self.grids()
        sums, facts, links = grids.sums, grids.facts, grids.links
        own = {name: sums[..., _NUM_SUMS + column] for column, name in enumerate(self.sum_names)}
        facts_by_name = (facts[..., column] for column in range(_NUM_FACTS))
        columns = sums[..., _VISITS], sums[..., _RETURNS], *facts_by_name, links[..., _PARENT], links[..., _SLOT], own
        return Nodes._make(columns)

    @property
    def visits(self) -> Int32[Array | np.ndarray, "N B"]:
        """See `Nodes`."""
        return self.nodes.visits.astype(jnp.int32)

    @property
    def states(self) -> PyTree:
        """The positions as states, every leaf [N, B, ...]."""
        return self.packing.unpack(self.grids().positions)

    @property
    def root_prior(self) -> Float32[Array, "B K"]:
        """The row of the roots in `prior`."""
        return self.grids().prior[ROOT]

    @property
    def root_actions(self) -> Int32[Array, "B K"] | None:
        """The row of the roots in `actions`."""
        actions = self.grids().actions
        return None if actions is None else actions[ROOT]

    def grids(self) -> "Tree":
        """The trees with arrays [N, B, ...] in place of flat ones."""

        def grid(flat: Array | np.ndarray | None, width: int) -> Array | np.ndarray | None:
            return None if flat is None else flat.reshape(self.num_nodes, self.batch, width)

        widths = {"keys": 2, "positions": self.packing.num_words, "sums": _NUM_SUMS + len(self.sum_names)}
        widths |= {
            "facts": _NUM_FACTS,
            "links": _NUM_LINKS,
            "prior": self.num_slots,
            "actions": self.num_slots,
            "bounds": 2,
        }
        arrays = {name: grid(getattr(self, name), width) for name, width in widths.items()}
        return replace_fields(self, **arrays, edges=self.edges.grids())

    def flat(self) -> "Tree":
        """The inverse of `grids`."""
        flat: Tree = jax.tree.map(lambda grid: grid.reshape(-1), self)
        return replace_fields(flat, histories=self.histories, num_made=self.num_made)

    # Reading and writing within a simulation.

    def index(self, node: Int32[Array, "R"]) -> Index:
        """The indices of R nodes, of which node r is in tree r modulo B."""
        trees = jnp.arange(len(node), dtype=jnp.int32)
        return node * self.batch + (trees if len(node) == self.batch else tree_of(trees, self.batch))

    def at(self, index: Index) -> Nodes:
        """The nodes at `index`."""
        num_sums = _NUM_SUMS + len(self.sum_names)
        sums, facts, links = (
            [read(array, index * width + column) for column in range(width)]
            for array, width in ((self.sums, num_sums), (self.facts, _NUM_FACTS), (self.links, _NUM_LINKS))
        )
        own = dict(zip(self.sum_names, sums[_NUM_SUMS:], strict=True))
        return Nodes._make([*sums[:_NUM_SUMS], *facts, *links, own])

    def states_at(self, index: Index) -> PyTree:
        """The states at `index`, every leaf [R, ...]."""
        return self.packing.unpack(read(self.positions, index, self.packing.num_words))

    def action_at(self, index: Index, slot: Int32[Array, "R"]) -> Int32[Array, "R"]:
        """The actions of the slots of the nodes at `index`."""
        return slot if self.actions is None else read(self.actions, index * self.num_slots + slot)

    def node_statistics(self, index: Index, depth: Int32[Array, "*R"]) -> NodeStatistics:
        """What a rule of selection reads of the nodes at `index`."""
        node = self.at(index)
        # Back from the player who moved into the node to its player to move: a discount of 1 or -1 is its own inverse.
        value = (node.q - node.reward) * node.discount
        weight_below = node.visits - 1
        if WEIGHT in node.sums:
            # The weight of the node's own evaluation is not kept: it counts as the mean.
            weight_below = weight_below * node.weight / jnp.maximum(node.visits, 1)
        return NodeStatistics(node.visits, value, node.evaluation, depth, weight_below, node.sums)

    def edge_statistics(self, index: Index, value: Float32[Array, "R"]) -> EdgeStatistics:
        """What a rule of selection reads of the edges to the nodes at `index`, along which `value` comes back."""
        node = self.at(index)
        return EdgeStatistics(node.returns / node.weight, value, node.prior, node.visits, node.weight, node.sums)

    def add_visit(
        self, index: Index, value: Float32[Array, "R"], sums: Mapping[str, Numbers], visits: float = 1.0
    ) -> "Tree":
        """Adds returns and the rule's own `sums` to the nodes at `index`; nothing where it is out of range."""
        own = [jnp.broadcast_to(jnp.asarray(sums.get(name, 0.0), jnp.float32), value.shape) for name in self.sum_names]
        rows = jnp.stack([jnp.full_like(value, visits), value, *own], axis=1)
        array = add(self.sums, index * rows.shape[1], rows, unique=len(index) == self.batch)
        return replace_fields(self, sums=array)

    def with_terms(self, edge: Index, terms: EdgeTerms) -> "Tree":
        """Writes the terms of edges; nothing where `edge` is out of range."""
        return replace_fields(self, edges=self.edges.write_terms(edge, terms, unique=len(edge) == self.batch))

    def write_links(
        self,
        node: Int32[Array, ""],
        parent: Int32[Array, "R"],
        slot: Int32[Array, "R"],
        prior: Float32[Array, "R"],
        reward: Float32[Array, "R"],
        discount: Float32[Array, "R"],
        evaluation: Float32[Array, "R"],
    ) -> "Tree":
        """Writes `Nodes` for R / B new nodes in every tree, from number `node` on."""
        count = len(parent) // self.batch
        facts, links = jnp.stack([reward, discount, prior, evaluation], axis=1), jnp.stack([parent, slot], axis=1)
        return replace_fields(
            self, facts=write_rows(self.facts, facts, node, count), links=write_rows(self.links, links, node, count)
        )

    def write_nodes(
        self,
        node: Int32[Array, ""],
        states: PyTree,
        keys: UInt32[Array, "R 2"] | None,
        prior: Float32[Array, "R K"],
        actions: Int32[Array, "R K"] | None,
    ) -> "Tree":
        """Writes the positions of R / B new nodes in every tree, from number `node` on, and their slots."""
        count = len(prior) // self.batch

        def write(array: Array | None, rows: Array | None) -> Array | None:
            return None if array is None or rows is None else write_rows(array, materialize(rows), node, count)

        return replace_fields(
            self,
            keys=write(self.keys, keys),
            positions=write_rows(self.positions, self.packing.pack(states), node, count),
            prior=write(self.prior, prior),
            actions=write(self.actions, actions),
        )

    # The roots, outside of simulations.

    def root_children(self) -> RootChildren:
        """The children of the roots. It looks at nothing else of the trees, however large they are."""
        roots = self.index(jnp.zeros(self.batch, jnp.int32))
        slots = jnp.arange(self.num_slots, dtype=jnp.int32)[:, None]
        edge = self.edges.find(roots, jnp.broadcast_to(slots, (self.num_slots, self.batch))).T
        child = jnp.where(edge >= 0, jnp.abs(read(self.edges.child, jnp.maximum(edge, 0))), ROOT)
        index = (child * self.batch + jnp.arange(self.batch, dtype=jnp.int32)[:, None]).reshape(-1)
        # An emptied tree has edges without visits.
        return RootChildren(index, (edge >= 0) & (self.at(index).visits > 0).reshape(edge.shape))

    def child(self, node: Int32[Array, "B"], action: Int[Array, "B"]) -> Int32[Array, "B"]:
        """The children of nodes behind their actions; `NO_NODE` where there is none, or `node` is `NO_NODE`."""
        index, slots = self.index(jnp.maximum(node, ROOT)), jnp.arange(self.num_slots, dtype=jnp.int32)[None]
        actions = slots if self.actions is None else read(self.actions, index, self.num_slots)
        slot = jnp.max(jnp.where(actions == action[:, None], slots, -1), axis=1)
        edge = self.edges.find(index, jnp.maximum(slot, 0)[None])[0]
        child = jnp.abs(read(self.edges.child, jnp.maximum(edge, 0)))
        exists = (node >= ROOT) & (slot >= 0) & (edge >= 0)
        # An emptied tree has edges without visits.
        return jnp.where(exists & (self.at(self.index(child)).visits > 0), child, NO_NODE)

    def with_root_priors(self, prior: Float32[Array, "B K"]) -> "Tree":
        """The trees with other priors of the roots' slots. The edges are unchanged."""
        children = self.root_children()
        at = jnp.where(children.exists.reshape(-1), children.at * _NUM_FACTS + _PRIOR, self.facts.size)
        row = jnp.where(children.exists, -1.0, prior)
        return replace_fields(
            self,
            facts=put(self.facts, at, prior.reshape(-1)),
            prior=write_rows(self.prior, row, jnp.int32(ROOT)),
        )

    def with_free_roots(self) -> "Tree":
        """The trees whose roots were inner nodes: now seen by their own player, and nothing leads to them."""
        grids = self.grids()
        root: Nodes = jax.tree.map(lambda row: row[ROOT], self.nodes)
        returns = (root.returns - root.weight * root.reward) * root.discount
        columns = {_REWARD: jnp.zeros_like(returns), _DISCOUNT: jnp.abs(root.discount), _PRIOR: jnp.ones_like(returns)}
        facts = grids.facts
        for column, row in columns.items():
            facts = facts.at[ROOT, :, column].set(row)
        return replace_fields(grids, sums=grids.sums.at[ROOT, :, _RETURNS].set(returns), facts=facts).flat()

    def renumber(self, source: Int32[Array, "N B"], number: Int32[Array, "N B"], count: Int32[Array, "B"]) -> "Tree":
        """The trees with other numbers for their nodes.

        Args:
          source: the old number of each new node.
          number: the new number of each old node, -1 where it is dropped.
          count: how many nodes remain.
        """
        made = jnp.arange(self.num_nodes, dtype=jnp.int32)[:, None] < count[None]
        grids = self.grids()
        moved: Tree = jax.tree.map(
            lambda rows: take_rows(rows, source), replace_fields(grids, histories=None, edges=None, num_made=None)
        )
        parent = jnp.take_along_axis(number, moved.links[..., _PARENT], axis=0)
        return replace_fields(
            moved,
            histories=self.histories,
            sums=jnp.where(made[..., None], moved.sums, 0.0),
            links=moved.links.at[..., _PARENT].set(parent).at[ROOT].set(0),
            edges=grids.edges.renumber(source, number, made),
            num_made=jnp.max(count),
        ).flat()

    def without_histories(self) -> "Tree":
        """The trees without the histories of their roots, which the next states bring."""
        return replace_fields(self, histories=None)

    def without_nodes(self, rows: Bool[Array, "B"]) -> "Tree":
        """The trees, those in the given rows empty. A search begins an empty tree with a new root."""
        grids = self.grids()
        sums = jnp.where(rows[:, None], 0.0, grids.sums)
        return replace_fields(grids, sums=sums, num_made=jnp.max(jnp.where(rows, 0, self.num_made))).flat()
