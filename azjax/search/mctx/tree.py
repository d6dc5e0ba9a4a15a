"""The search trees, as mctx names and shapes them. Axis letters: see `azjax/search/tree.py`; here K is A."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PyTree, Shaped

from azjax.core.arrays import TINY
from azjax.core.pytree import pytree_dataclass
from azjax.search import tree as trees
from azjax.search.mctx.replaceable import Replaceable
from azjax.search.result import root_statistics


@pytree_dataclass
class SearchSummary(Replaceable):
    """Of the roots.

    visit_counts: of the actions.
    visit_probs: their shares; 1 / A where there are no visits.
    value: mean value.
    qvalues: mean return of each action, 0 where it was not visited.
    """

    visit_counts: Float32[Array, "B A"]
    visit_probs: Float32[Array, "B A"]
    value: Float32[Array, "B"]
    qvalues: Float32[Array, "B A"]


@pytree_dataclass
class GumbelMuZeroExtraData(Replaceable):
    """`root_gumbel` is the noise in the root's logits."""

    root_gumbel: Float32[Array, "B A"]


@pytree_dataclass
class Tree:
    """B search trees of N = num_simulations + 1 nodes.

    The properties have the names of mctx's fields. Each is computed when it is read. The leaves of this pytree are
    those of `arrays`, which are not [B, ...]. Numbers of nodes and actions are -1 where there is none. Nodes behind a
    discount of 0 have a value of 0 and nothing below them.

    arrays: azjax's own trees, whose states are the embeddings.
    extra_data: None except in Gumbel MuZero's search.
    """

    arrays: trees.Tree
    extra_data: GumbelMuZeroExtraData | None

    ROOT_INDEX: ClassVar[int] = trees.ROOT
    NO_PARENT: ClassVar[int] = -1
    UNVISITED: ClassVar[int] = -1

    def summary(self) -> SearchSummary:
        """Visits and values of the roots."""
        visits, q = root_statistics(self.arrays)
        counts = visits.astype(jnp.float32)
        total = jnp.sum(counts, axis=1, keepdims=True)
        shares = jnp.where(total > 0, counts / jnp.maximum(total, 1), 1 / self.num_actions)
        return SearchSummary(counts, shares, self.arrays.nodes.q[trees.ROOT], q)

    @property
    def num_actions(self) -> int:
        """A."""
        return self.arrays.num_slots

    @property
    def num_simulations(self) -> int:
        """N - 1."""
        return self.arrays.max_nodes - 1

    @property
    def node_visits(self) -> Int32[Array, "B N"]:
        """Visits of each node, its own evaluation included."""
        return self._nodes.visits.astype(jnp.int32)

    @property
    def raw_values(self) -> Float32[Array, "B N"]:
        """What the model said of each node."""
        return jnp.where(self._made, self._nodes.evaluation, 0.0)

    @property
    def node_values(self) -> Float32[Array, "B N"]:
        """Mean value of each node."""
        nodes = self._nodes
        discount = jnp.where(self._made & (nodes.discount != 0), nodes.discount, 1.0)
        value = jnp.where(self._is_child, (nodes.q - nodes.reward) / discount, nodes.q)
        return jnp.where(self._made & (nodes.discount != 0), value, 0.0)

    @property
    def parents(self) -> Int32[Array, "B N"]:
        """The parent of each node."""
        return jnp.where(self._is_child, self._nodes.parent, self.NO_PARENT)

    @property
    def action_from_parent(self) -> Int32[Array, "B N"]:
        """The action that leads to each node."""
        return jnp.where(self._is_child, self._nodes.slot, self.NO_PARENT)

    @property
    def children_index(self) -> Int32[Array, "B N A"]:
        """The child behind each action."""
        nodes = jnp.arange(self.num_simulations + 1, dtype=jnp.int32)[None]
        return self._by_action(jnp.broadcast_to(nodes, self._made.shape), self.UNVISITED)

    @property
    def children_prior_logits(self) -> Float32[Array, "B N A"]:
        """Logarithms of the priors; mctx keeps the logits of the model, which have the same softmax."""
        untried = jnp.swapaxes(self.arrays.grids().prior, 0, 1)[:, : self.num_simulations + 1]
        prior = self._by_action(self._nodes.prior, 0.0) + jnp.maximum(untried, 0)
        return jnp.where(self._made[..., None], jnp.log(jnp.maximum(prior, TINY)), 0.0)

    @property
    def children_visits(self) -> Int32[Array, "B N A"]:
        """Visits of the children."""
        return self._by_action(self.node_visits, 0)

    @property
    def children_rewards(self) -> Float32[Array, "B N A"]:
        """Rewards of the steps to the children."""
        return self._by_action(self._nodes.reward, 0.0)

    @property
    def children_discounts(self) -> Float32[Array, "B N A"]:
        """Discounts of the steps to the children."""
        return self._by_action(self._nodes.discount, 0.0)

    @property
    def children_values(self) -> Float32[Array, "B N A"]:
        """Mean values of the children."""
        return self._by_action(self.node_values, 0.0)

    @property
    def embeddings(self) -> PyTree:
        """The embeddings, every leaf [B, N, ...]; 0 where there is no node."""

        def batch_first(leaf: Shaped[Array, "M B ..."]) -> Shaped[Array, "B N ..."]:
            rows = jnp.swapaxes(leaf, 0, 1)[:, : self.num_simulations + 1]
            made = self._made.reshape(*self._made.shape, *[1] * (rows.ndim - 2))
            return jnp.where(made, rows, jnp.zeros((), rows.dtype))

        return jax.tree.map(batch_first, self.arrays.states)

    def qvalues(self, indices: Int32[Array, "B"]) -> Float32[Array, "B A"]:
        """Mean returns of the actions of one node of each tree, 0 where they were not visited."""
        q = self._by_action(self._nodes.q, 0.0)
        return jnp.take_along_axis(q, indices[:, None, None], axis=1)[:, 0]

    @property
    def _nodes(self) -> trees.Nodes:
        """The nodes [B, N]."""
        nodes: trees.Nodes = jax.tree.map(lambda rows: rows[: self.num_simulations + 1].T, self.arrays.nodes)
        return nodes

    @property
    def _made(self) -> Bool[Array, "B N"]:
        return self._nodes.visits > 0

    @property
    def _is_child(self) -> Bool[Array, "B N"]:
        nodes = jnp.arange(self.num_simulations + 1, dtype=jnp.int32)[None]
        return self._made & (nodes != self.ROOT_INDEX)

    def _by_action(self, values: Shaped[Array, "B N"], otherwise: float) -> Shaped[Array, "B N A"]:
        """The values of the nodes by parent and action, `otherwise` for an action without a child."""
        batch, num_nodes = values.shape
        size = num_nodes * self.num_actions
        cells = jnp.where(self._is_child, self._nodes.parent * self.num_actions + self._nodes.slot, size)
        rows = jnp.arange(batch, dtype=jnp.int32)[:, None]
        by_cell = jnp.full((batch, size), otherwise, values.dtype).at[rows, cells].set(values, mode="drop")
        return by_cell.reshape(batch, num_nodes, self.num_actions)
