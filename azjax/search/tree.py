"""The arrays of a batch of search trees, and what a search returns.

Axis letters: `B` batch (one tree a row), `N` nodes of a tree, `M` blocks of a tree, `L` lanes of a block, `K` slots of
the compact table of legal actions, `A` actions, `F` features
of an edge, `W` words of a packed position. Arrays are node-major: node i + 1 is
made by simulation i in all trees at once, so its row is one contiguous write.
"""

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.core.packing import Packing
from azjax.core.pytree import pytree_dataclass
from azjax.games.repetition import History
from azjax.search.edges import Edges

ROOT = 0

# Columns of `Tree.sums`, `Tree.facts` and `Tree.links`. What a simulation reads together stands together: on CPU most
# of the time goes into waiting for memory.
VISITS, RETURNS = range(2)
REWARD, DISCOUNT, PRIOR = range(3)
PARENT, SLOT = range(2)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Tree:
    """B search trees of N nodes each. A node that was never made has no visits, and nothing else of it means anything.

    histories: of the roots' games, every leaf [B, ...]; None for a game in which all positions may come back.
    keys: uint32 [N, B, 2]; of the positions; None where `histories` is.
    positions: uint32 [N, B, W]; packed states, without their history; see `states`.
    sums: float32 [N, B, 2]; of each node:
      VISITS: simulations that passed through it (its own evaluation counts as one).
      RETURNS: sum over the visits of `reward + discount * value`, seen by the player who moved into the node. The
        root's is seen by its player to move.
    facts: float32 [N, B, 3]; of each node:
      REWARD: of the step into the node, of the player who made it.
      DISCOUNT: -1 where the other player moves at the node, +1 where the same one moves on, 0 where the game is over.
      PRIOR: of the edge to it.
    links: int32 [N, B, 2]; of each node:
      PARENT: the node above.
      SLOT: of the parent, through which it was reached.
    prior: float32 [N, B, K]; probabilities over the legal slots, -1 in holes; and, where edges are kept in chains,
      where there is a child.
    actions: int32 [N, B, K]; action of each slot; None where K == A, since slot a is action a there.
    edges: to the children.
    decided: float32 [N, B]; visits whose return was not zero; None where they are not counted.
    bounds: float32 [N, B, 2]; what the true value of the node, seen by its player to move, is proven to lie between;
      None without a solver.
    num_made: int32 []; the number of the node that is made next.
    packing: of the positions (static).
    max_nodes: so many there may be; the rows from there on are written to when a tree is full (static).
    num_nodes, batch, num_slots: N, B and K (static).
    """

    histories: History | None
    keys: chex.Array | None
    positions: chex.Array
    sums: chex.Array
    facts: chex.Array
    links: chex.Array
    prior: chex.Array
    actions: chex.Array | None
    edges: Edges
    decided: chex.Array | None
    bounds: chex.Array | None
    num_made: chex.Array
    packing: Packing = dataclasses.field(metadata={"static": True})
    max_nodes: int = dataclasses.field(metadata={"static": True})
    num_nodes: int = dataclasses.field(metadata={"static": True})
    batch: int = dataclasses.field(metadata={"static": True})
    num_slots: int = dataclasses.field(metadata={"static": True})

    def as_runs(self) -> "Tree":
        """The trees as a simulation has them: every array one run of numbers. See `arrays.py`."""
        runs = jax.tree.map(lambda array: array.reshape(-1), self)
        return dataclasses.replace(runs, histories=self.histories, num_made=self.num_made)

    def shaped_as(self, tree: "Tree") -> "Tree":
        """These runs with the shapes of `tree`, whose they are."""
        return jax.tree.map(lambda run, array: run.reshape(array.shape), self, tree)

    @property
    def states(self) -> Any:
        """The positions as states, every leaf [N, B, ...]."""
        return self.packing.unpack(self.positions)

    @property
    def visits(self) -> chex.Array:
        """int32 [N, B]; see `sums`."""
        return self.sums[..., VISITS].astype(jnp.int32)


@pytree_dataclass
class SearchResult:
    """What a search found. Values are seen by the player to move.

    action: int32 [B]; the move to play.
    policy: float32 [B, A]; the training target; sums to one over the legal actions, zero after the end.
    value: float32 [B]; mean value of the root, in -1..1, or its true value where that is proven.
    visits: int32 [B, A]; of the root's actions; they sum to the number of simulations, with those of an earlier `tree`
      that went on; to less where a solver proved the root.
    q_values: float32 [B, A]; mean return of each action, 0 where it was not visited.
    bounds: float32 [B, 2]; what the true value of the root is proven to lie between; -1 and 1 where nothing is.
    tree: the search trees.
    """

    action: chex.Array
    policy: chex.Array
    value: chex.Array
    visits: chex.Array
    q_values: chex.Array
    bounds: chex.Array
    tree: Tree


def root_statistics(tree: Tree) -> tuple[chex.Array, chex.Array]:
    """Visits int32 [B, K] and mean returns float32 [B, K] of the roots' slots, 0 where there is no child."""
    visits = by_root_slot(tree, tree.visits)
    return visits, by_root_slot(tree, tree.sums[..., RETURNS]) / jnp.maximum(visits, 1)


def by_root_slot(tree: Tree, values: chex.Array) -> chex.Array:
    """[B, K]: of values [N, B] by node those of the roots' children, 0 for a slot without a child."""
    made = (tree.visits > 0) & (jnp.arange(tree.num_nodes, dtype=jnp.int32) != ROOT)[:, None]
    cell = jnp.arange(tree.batch, dtype=jnp.int32)[None] * tree.num_slots + tree.links[..., SLOT]
    cell = jnp.where(made & (tree.links[..., PARENT] == ROOT), cell, tree.batch * tree.num_slots).reshape(-1)
    cells = jnp.zeros(tree.batch * tree.num_slots, values.dtype).at[cell]
    return cells.set(values.reshape(-1), mode="drop").reshape(tree.batch, tree.num_slots)
