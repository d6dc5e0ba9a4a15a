"""The arrays of a batch of search trees, and the result of a search.

Axis letters: `B` batch (one tree each), `N` nodes of a tree, `K` slots of the compact table of legal actions,
`A` actions, `M` blocks of a tree and `L` lanes of a block (see `BlockedEdges`), `W` words of a packed position.
Arrays are node-major: simulation i makes node i + 1 of all trees at once, so its row is one contiguous write. Inside a
simulation they are flat (see `azjax/core/arrays.py`), with shapes such as "NB2".
"""

import dataclasses
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PyTree, Shaped, UInt32

from azjax.core.packing import Packing
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.games.repetition import History
from azjax.search.blocked import BlockedEdges
from azjax.search.dense import DenseEdges
from azjax.search.dynamics import Root
from azjax.search.edges import AnyEdges, allocate
from azjax.search.selection import Selection

ROOT = 0

# Columns of `Tree.sums`, `Tree.facts` and `Tree.links`. What a simulation reads together lies together: on CPU a
# search mostly waits for memory.
VISITS, RETURNS = range(2)
REWARD, DISCOUNT, PRIOR = range(3)
PARENT, SLOT = range(2)

MAX_DENSE_SLOTS = 16
"""Trees with at most so many slots keep `DenseEdges`, others `BlockedEdges`."""


@pytree_dataclass
class Tree:
    """B search trees of N nodes each. Rows of nodes without visits have no meaning.

    histories: of the roots' games, every leaf [B, ...]; None in games in which positions may repeat.
    keys: of the positions; None where `histories` is.
    positions: packed states without their history; see `states`.
    sums: of each node:
      VISITS: simulations that passed through it, its own evaluation included.
      RETURNS: sum over the visits of `reward + discount * value`, seen by the player who moved into the node; the
        root's are seen by its player to move.
    facts: of each node:
      REWARD: of the step into the node, for the player who made it.
      DISCOUNT: -1 where the other player moves at the node, +1 where the same one does, 0 where the game is over.
      PRIOR: of the edge to it.
    links: of each node:
      PARENT: the node above.
      SLOT: of the parent, through which it is reached.
    prior: probabilities over the legal slots, -1 in holes and, with `BlockedEdges`, where there is a child.
    actions: the action of each slot; None where K == A, since slot a is action a there.
    decided: visits whose return was not zero; None where they are not counted.
    bounds: the lower and upper bound proven of the node's value, seen by its player to move; None without a solver.
    num_made: the number of the node that is made next; [B] in a tree of `by_game`.
    packing: of the positions.
    max_nodes: the capacity. A full tree writes to the rows from there on.
    num_nodes, batch, num_slots: N, B and K.
    """

    histories: History | None
    keys: UInt32[Array, "N B 2"] | UInt32[Array, "NB2"] | None
    positions: UInt32[Array, "N B W"] | UInt32[Array, "NBW"]
    sums: Float32[Array, "N B 2"] | Float32[Array, "NB2"]
    facts: Float32[Array, "N B 3"] | Float32[Array, "NB3"]
    links: Int32[Array, "N B 2"] | Int32[Array, "NB2"]
    prior: Float32[Array, "N B K"] | Float32[Array, "NBK"]
    actions: Int32[Array, "N B K"] | Int32[Array, "NBK"] | None
    edges: AnyEdges
    decided: Float32[Array, "N B"] | Float32[Array, "NB"] | None
    bounds: Float32[Array, "N B 2"] | Float32[Array, "NB2"] | None
    num_made: Int32[Array, "*G"]
    packing: Packing = static_field()
    max_nodes: int = static_field()
    num_nodes: int = static_field()
    batch: int = static_field()
    num_slots: int = static_field()

    def flatten(self) -> "Tree":
        """The trees as a simulation holds them: every array flat."""
        flat: Tree = jax.tree.map(lambda array: array.reshape(-1), self)
        return dataclasses.replace(flat, histories=self.histories, num_made=self.num_made)

    def unflatten_like(self, tree: "Tree") -> "Tree":
        """The inverse of `flatten`: these flat arrays with the shapes of `tree`."""
        return cast(Tree, jax.tree.map(lambda flat, array: flat.reshape(array.shape), self, tree))

    @property
    def states(self) -> PyTree:
        """The positions as states, every leaf [N, B, ...]."""
        return self.packing.unpack(self.positions)

    @property
    def visits(self) -> Int32[Array | np.ndarray, "N B"]:
        """See `sums`."""
        return self.sums[..., VISITS].astype(jnp.int32)


@pytree_dataclass
class SearchResult:
    """The result of a search. Values are seen by the player to move.

    action: the move to play.
    policy: the training target; sums to one over the legal actions, zero after the end.
    value: mean value of the root, in -1..1, or its true value where that is proven.
    visits: of the root's actions; they sum to the number of simulations, plus those of an earlier `tree`, and to less
      where a solver proved the root.
    q_values: mean return of each action, 0 where it was not visited.
    bounds: the lower and upper bound proven of the root's value; -1 and 1 where nothing is proven.
    tree: the search trees.
    """

    action: Int32[Array, "B"]
    policy: Float32[Array, "B A"]
    value: Float32[Array, "B"]
    visits: Int32[Array, "B A"]
    q_values: Float32[Array, "B A"]
    bounds: Float32[Array, "B 2"]
    tree: Tree


def new_tree(
    root: Root,
    selection: Selection,
    max_nodes: int,
    *,
    leaves_per_step: int = 1,
    solver: bool = False,
    counts_decided: bool = False,
) -> Tree:
    """Trees that hold their roots alone.

    Args:
      root: the positions.
      selection: the rule of selection.
      max_nodes: the capacity, root included.
      leaves_per_step: of the search; N is larger by as many spare rows, which a full tree writes to.
      solver: keep `Tree.bounds`.
      counts_decided: keep `Tree.decided`.
    """
    batch, slots = root.prior.shape
    evaluation = root.evaluation
    num_nodes = max_nodes + leaves_per_step

    ones, zeros = jnp.ones(batch, jnp.float32), jnp.zeros(batch, jnp.int32)
    value, discount = jnp.where(root.terminated, 0.0, evaluation.value), jnp.where(root.terminated, 0.0, 1.0)
    packing = Packing.of(root.positions)
    edges_type = DenseEdges if slots <= MAX_DENSE_SLOTS else BlockedEdges
    return Tree(
        histories=root.histories,
        keys=None if root.keys is None else allocate(num_nodes, root.keys),
        positions=allocate(num_nodes, packing.pack(root.positions)),
        sums=jnp.zeros((num_nodes, batch, 2), jnp.float32).at[ROOT].set(jnp.stack([ones, value], axis=1)),
        facts=allocate(num_nodes, jnp.stack([0 * ones, discount, ones], axis=1)),
        links=allocate(num_nodes, jnp.stack([zeros, zeros], axis=1)),
        prior=allocate(num_nodes, root.prior),
        actions=None if evaluation.actions is None else allocate(num_nodes, evaluation.actions),
        edges=edges_type.create(selection, root.prior, num_nodes, solver),
        decided=jnp.zeros((num_nodes, batch), jnp.float32) if counts_decided else None,
        bounds=allocate(num_nodes, new_bounds(root.terminated)) if solver else None,
        num_made=jnp.int32(1),
        packing=packing,
        max_nodes=max_nodes,
        num_nodes=num_nodes,
        batch=batch,
        num_slots=slots,
    )


def new_bounds(terminated: Bool[Array, "R"]) -> Float32[Array, "R 2"]:
    """`Tree.bounds` of new nodes: 0 and 0 after the end, -1 and 1 before."""
    bound = jnp.where(terminated, 0.0, 1.0)
    return jnp.stack([-bound, bound], axis=1)


def root_statistics(tree: Tree) -> tuple[Int32[Array, "B K"], Float32[Array, "B K"]]:
    """Visits and mean returns of the roots' slots, 0 where there is no child."""
    visits = by_root_slot(tree, tree.visits)
    return visits, by_root_slot(tree, tree.sums[..., RETURNS]) / jnp.maximum(visits, 1)


def by_root_slot(tree: Tree, values: Shaped[Array | np.ndarray, "N B"]) -> Shaped[Array, "B K"]:
    """The values of the roots' children by slot, 0 for a slot without a child."""
    made = (tree.visits > 0) & (jnp.arange(tree.num_nodes, dtype=jnp.int32) != ROOT)[:, None]
    cell = jnp.arange(tree.batch, dtype=jnp.int32)[None] * tree.num_slots + tree.links[..., SLOT]
    cell = jnp.where(made & (tree.links[..., PARENT] == ROOT), cell, tree.batch * tree.num_slots).reshape(-1)
    cells = jnp.zeros(tree.batch * tree.num_slots, values.dtype).at[cell]
    return cells.set(values.reshape(-1), mode="drop").reshape(tree.batch, tree.num_slots)
