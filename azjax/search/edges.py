"""The edges from nodes to their children: the protocol of the two stores, and what they share.

An edge is its flat index in `child`. Axis letters: see `tree.py`; `R` nodes, or leaves of simulations.
"""

import dataclasses
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PyTree, Shaped

from azjax.core.arrays import max_over_slots, read, sum_over_slots
from azjax.core.xla import materialize
from azjax.search.selection import Features, Fold, Selection

Node: TypeAlias = Int32[Array, ""]
"""The number of the node that a simulation makes."""

Index: TypeAlias = Int32[Array, "R"]
"""Flat indices of R nodes or edges."""

FlatPrior: TypeAlias = Float32[Array, "NBK"]
"""See `Tree.prior`."""

NO_CHILD = 0
"""In `child`: no edge leads to the root, so its number is free."""


@runtime_checkable
class NewEdge(Protocol):
    """An edge that is about to get its child, of R nodes."""

    @property
    def slot(self) -> Index: ...
    @property
    def prior(self) -> Float32[Array, "R"]: ...


class Untried(NamedTuple):
    """The slots of R nodes that have no child.

    slot: the one of the highest prior, the lowest such slot on ties.
    prior: its prior, -1 where every slot has a child.
    mass: the sum of their priors; None where the rule of selection does not fold over edges.
    """

    slot: Int32[Array, "R"]
    prior: Float32[Array, "R"]
    mass: Float32[Array, "R"] | None


class NodePriors(NamedTuple):
    """The priors of R new nodes, -1 in holes; `untried`: see `BlockedEdges`, None in `DenseEdges`."""

    prior: Float32[Array, "R K"]
    untried: Untried | None


_E = TypeVar("_E", bound=NewEdge)
_S = TypeVar("_S", bound="Edges[Any]")


@runtime_checkable
class Edges(Protocol[_E]):
    """The edges of B trees of N nodes, flat inside a simulation (see `azjax/core/arrays.py`).

    child: int32; the node that the edge leads to, negative where that node is never expanded, or `NO_CHILD`.
    features: what the rule of selection stores of the edge; the first is -inf where there is no edge.
    upper: float32; what the return of the edge is proven not to exceed, -1 where there is no edge; None without a
      solver.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def child(self) -> Int32[Array, "..."]: ...
    @property
    def features(self) -> Features: ...
    @property
    def upper(self) -> Float32[Array, "..."] | None: ...

    def best(
        self, selection: Selection, terms: PyTree, index: Index, num_slots: int, batch: int
    ) -> tuple[Index, Index]:
        """The best edge of the nodes at `index`, and its child or `NO_CHILD`.

        `BlockedEdges` return any edge of the node where the best one is yet to be made.
        """
        ...

    def fold(self, selection: Selection, index: Index, num_slots: int, batch: int) -> Fold:
        """Over the edges of the nodes at `index`."""
        ...

    def new_edge(
        self,
        prior: FlatPrior,
        index: Int32[Array, "B"],
        edge: Int32[Array, "B"],
        num_slots: int,
        slot: Int32[Array, "B"] | None,
    ) -> _E:
        """The edge that `best` selected at the nodes at `index`, or the edge of `slot` where that is not negative."""
        ...

    def untried_without(self, new: _E) -> Untried | None:
        """The slots that have no child once the edges `new` have theirs."""
        ...

    def priors(self, logits: Float32[Array, "K R"]) -> NodePriors:
        """The priors of new nodes, from their `legal_logits`."""
        ...

    def attach(
        self: _S, prior: FlatPrior, new: _E, untried: Untried | None, index: Int32[Array, "B"], child: Int32[Array, "B"]
    ) -> tuple[_S, FlatPrior, Int32[Array, "B"]]:
        """Makes the edges `new` of the nodes at `index` lead to `child`; nothing where `index` is out of range.

        Returns:
          the edges; `prior`; the flat indices of the new edges.
        """
        ...

    def write_nodes(
        self: _S, selection: Selection, prior: FlatPrior, priors: NodePriors, node: Node, count: int
    ) -> tuple[_S, FlatPrior]:
        """The edges and `prior` with those of `count` new nodes, from number `node` on, in all trees."""
        ...

    def upper_of(self, upper: Float32[Array, "MBL"], index: Index, num_slots: int, batch: int) -> Float32[Array, "R"]:
        """What no edge of the nodes at `index` exceeds, from `upper` of the edges."""
        ...

    def with_root_prior(
        self: _S,
        selection: Selection,
        prior: Float32[Array, "B K"],
        visits: Int32[Array, "B K"],
        q: Float32[Array, "B K"],
        slot: Int32[Array, "N B"],
        sums: Float32[Array, "N B 2"],
    ) -> tuple[_S, Float32[Array, "B K"]]:
        """The edges, not flat, with `prior` at the roots, whose slots have `visits` and mean returns `q`.

        Args:
          slot: of the parent, through which each node is reached.
          sums: see `Tree.sums`.

        Returns:
          the edges, and the roots' row of `Tree.prior`.
        """
        ...

    def renumber(self: _S, source: Int32[Array, "N B"], number: Int32[Array, "N B"], made: Bool[Array, "N B"]) -> _S:
        """The edges, not flat, of nodes with other numbers.

        Args:
          source: the old number of each new node.
          number: the new number of each old node, -1 where it is dropped.
          made: the new nodes that there are.
        """
        ...


AnyEdges: TypeAlias = Edges[Any]


def allocate(num_nodes: int, roots: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
    """[N, ...]: the row of the roots, and uninitialized rows for other nodes."""
    # Apart from one another: together XLA would compute every element anew.
    rows, roots = materialize(jax.lax.empty((num_nodes, *roots.shape), roots.dtype)), materialize(roots)
    allocated: Array = jax.lax.dynamic_update_index_in_dim(rows, roots, 0, axis=0)
    return allocated


def take_rows(rows: Shaped[Array, "..."], source: Int32[Array, "N B"]) -> Shaped[Array, "..."]:
    """Rows [N, B, ...] in the order of `source`."""
    return jnp.take_along_axis(rows, source.reshape(*source.shape, *[1] * (rows.ndim - 2)), axis=0)


def renumbered_children(
    child: Int32[Array, "M B L"], number: Int32[Array, "N B"]
) -> tuple[Int32[Array, "M B L"], Int32[Array, "M L B"]]:
    """`child` with the new numbers of nodes (see `Edges.renumber`), and those numbers, -1 where a child is dropped."""
    # Lanes before trees, so that numbers are looked up by tree.
    by_lane = jnp.moveaxis(child, 2, 1)
    new = jnp.take_along_axis(number, jnp.abs(by_lane).reshape(-1, number.shape[1]), axis=0).reshape(by_lane.shape)
    return jnp.moveaxis(jnp.sign(by_lane) * new, 1, 2), new


def untried_upper(prior: Float32[Array, "B K"]) -> Float32[Array, "B K"]:
    """What the returns of edges without a child are known not to exceed; -1 in holes."""
    return jnp.where(prior < 0, -1.0, 1.0)


def untried_features(selection: Selection, prior: Float32[Array, "B K"]) -> Features:
    """The features of edges without a child; the first is -inf in holes."""
    first, *rest = selection.untried_features(prior)
    return jnp.where(prior < 0, -jnp.inf, first), *rest


def highest_lane(flat: Float32[Array, "MBL"], begin: Index, lanes: int) -> Float32[Array, "R"]:
    """The highest number of `flat` in the `lanes` numbers from `begin` on."""
    highest = read(flat, begin)
    for lane in range(1, lanes):
        highest = jnp.maximum(highest, read(flat, begin + lane))
    return highest


def lanes_of(features: Features, index: Index, lanes: int) -> Features:
    """The features [lanes, R] of the rows of `lanes` edges at `index`."""
    edge = index[None] * lanes + jnp.arange(lanes, dtype=jnp.int32)[:, None]
    return tuple(read(flat, edge) for flat in features)


def best_lane(
    features: Features,
    selection: Selection,
    terms: PyTree,
    begin: Index,
    best: Index,
    first: int,
    lanes: int,
) -> Index:
    """The best of the edge `best` and the edges `begin + first` to `begin + lanes - 1`, in one fusion."""

    def score(edge: Index) -> Float32[Array, "R"]:
        return selection.score(terms, tuple(read(flat, edge) for flat in features))

    best_score = score(best)
    for lane in range(first, lanes):
        lane_score = score(begin + lane)
        better = lane_score > best_score
        best = jnp.where(better, begin + lane, best)
        best_score = jnp.where(better, lane_score, best_score)
    # Otherwise XLA would compute the scores again for each reader of the edge.
    return materialize(best)


def legal_logits(prior_logits: Float32[Array, "K B"], valid: Bool[Array, "..."]) -> Float32[Array, "K B"]:
    """Logits that are -inf in holes and nowhere else. XLA vectorizes reductions over the first axis."""
    return jnp.where(valid, jnp.maximum(prior_logits, jnp.finfo(jnp.float32).min), -jnp.inf)  # type: ignore[no-untyped-call]


def legal_softmax(logits: Float32[Array, "K B"]) -> Float32[Array, "K B"]:
    """Probabilities of `legal_logits`, -1 in holes."""
    # NaN where no slot is legal; every slot is a hole there.
    weights = jnp.exp(logits - max_over_slots(logits))
    return jnp.where(logits == -jnp.inf, -1.0, weights / sum_over_slots(weights)[None])


def best_untried(prior: Float32[Array, "K B"]) -> tuple[Int32[Array, "B"], Float32[Array, "B"]]:
    """The slot with the highest prior, and that prior; -1 where all are -1."""
    # Two plain reductions over the first axis: XLA vectorizes those, and not the paired one behind argmax. The bits of
    # floats from 0 up are in the order of the floats, and those of -1 are below them.
    bits = jax.lax.bitcast_convert_type(prior, jnp.int32)
    slots = jnp.arange(len(bits), dtype=jnp.int32)[:, None]
    best = jnp.max(bits, axis=0)
    slot = jnp.min(jnp.where(bits == best[None], slots, len(bits) - 1), axis=0)
    return slot, jax.lax.bitcast_convert_type(best, jnp.float32)


def prior_mass(prior: Float32[Array, "K B"]) -> Float32[Array, "B"]:
    """The sum of the priors, without the -1s."""
    return sum_over_slots(jnp.maximum(prior, 0))
