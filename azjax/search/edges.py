"""The edges from nodes to their children, in one of two stores: `dense.py` and `blocked.py`.

Both stores mean the same, ties included; which one is used changes speed and nothing else. An edge exists once it has a
child. Edges lie in blocks of L lanes, and an edge is its flat index in `child`. Axis letters: see `tree.py`; `R` nodes,
of which node r is in tree r modulo B.
"""

import abc
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree, Shaped

from azjax.core.arrays import put, read, write_rows
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, replace_fields, static_field
from azjax.core.xla import materialize
from azjax.search.priors import Untried, untried_of
from azjax.search.selection import EdgeStatistics, EdgeTerms, Fold, NodeStatistics, Selection

_C = TypeVar("_C")
_S = TypeVar("_S", bound="EdgeStore")

Index: TypeAlias = Int32[Array, "R"]
"""Flat indices of R nodes or edges."""

NO_CHILD = 0
"""For `child`: no edge leads to the root, so its number is free."""

_MOST_NUMBERS = (1 << 31) - 1  # of an array that indices of 32 bits address


class NewEdge(NamedTuple):
    """An edge that is about to get its child, of each of R nodes.

    others: the priors of the node's other slots without a child, -1 elsewhere.
    edge: where it will be.
    place: what the store must know to put it there.
    """

    slot: Index
    prior: Float32[Array, "R"]
    others: Float32[Array, "K R"]
    edge: Index
    place: PyTree


@pytree_dataclass
class EdgeStore(abc.ABC):
    """The edges of B trees of N nodes.

    child: the node that the edge leads to, negative where that node is never expanded; without meaning where there is
      no edge.
    terms: `EdgeTerms` of the rule of selection, T numbers of each edge; -inf where there is no edge.
    upper: what the return of the edge is proven not to exceed, -1 where there is no edge; None without a solver.
    untried: `Untried` of each node, as U numbers.
    terms_type: the NamedTuple of the terms.
    with_mass: whether `Untried.mass` is kept, for a rule that folds.
    batch, lanes: B and L.
    """

    child: Int32[Array, "MBL"]
    terms: Float32[Array, "MBLT"]
    upper: Float32[Array, "MBL"] | None
    untried: Float32[Array, "NBU"]
    terms_type: Any = static_field()
    with_mass: bool = static_field()
    batch: int = static_field()
    lanes: int = static_field()

    @classmethod
    def fields_for(
        cls,
        selection: Selection,
        prior: Float32[Array, "B K"],
        shape: tuple[int, ...],
        num_nodes: int,
        solver: bool,
    ) -> dict[str, Any]:
        """The fields above for trees that hold their roots alone, with blocks of the `shape` [M, B, L]."""
        with_mass = folds(selection, len(prior))
        terms = _terms_of(selection, len(prior))
        size = math.prod(shape)
        _check_size(size * len(terms))
        return {
            "child": jax.lax.empty((size,), jnp.int32),
            "terms": jnp.full(size * len(terms), -jnp.inf, jnp.float32),
            "upper": jnp.full(size, -1, jnp.float32) if solver else None,
            "untried": allocate(num_nodes, untried_of(prior.T, with_mass).rows()),
            "terms_type": type(terms),
            "with_mass": with_mass,
            "batch": shape[1],
            "lanes": shape[2],
        }

    @abc.abstractmethod
    def over_blocks(self, index: Index, function: Callable[[_C, Index, Bool[Array, "R"]], _C], start: _C) -> _C:
        """`function(carry, begin, exists)` over the blocks of the nodes at `index`.

        `begin` are the first edges of one block of each node, where it `exists`.
        """

    @abc.abstractmethod
    def slot_of(self, edge: Int32[Array, "..."]) -> Int32[Array, "..."]:
        """The slots of edges, where these exist."""

    @property
    @abc.abstractmethod
    def in_slot_order(self) -> bool:
        """Whether blocks and their lanes are in the order of the slots."""

    @abc.abstractmethod
    def place(self, index: Index, slot: Index) -> tuple[Index, PyTree]:
        """Where an edge of `slot` of the nodes at `index` will be, and what `occupy` must know."""

    @abc.abstractmethod
    def occupy(self: _S, place: PyTree, index: Index, slot: Index, made: Bool[Array, "R"]) -> _S:
        """The store in which the edges of `slot` have their places where `made` holds."""

    @abc.abstractmethod
    def renumber(self: _S, source: Int32[Array, "N B"], number: Int32[Array, "N B"], made: Bool[Array, "N B"]) -> _S:
        """The edges of nodes with other numbers, in `grids` as the store.

        Args:
          source: the old number of each new node.
          number: the new number of each old node, -1 where it is dropped.
          made: the new nodes that there are.
        """

    def grids(self: _S) -> _S:
        """The store with arrays [M, B, L] and [N, B] in place of flat ones."""

        def by_lane(flat: Shaped[Array | np.ndarray, "MBL"]) -> Shaped[Array | np.ndarray, "M B L"]:
            return flat.reshape(-1, self.batch, self.lanes)

        return replace_fields(
            self,
            child=by_lane(self.child),
            terms=self.terms.reshape(-1, self.batch, self.lanes, self.num_terms),
            upper=None if self.upper is None else by_lane(self.upper),
            untried=self.untried.reshape(-1, self.batch, self.num_untried),
        )

    @property
    def num_terms(self) -> int:
        """How many terms an edge has."""
        return len(self.terms_type._fields)

    @property
    def num_untried(self) -> int:
        """How many numbers of `Untried` a node has."""
        return 3 if self.with_mass else 2

    def best(
        self,
        selection: Selection,
        keys: Key[Array, "R"] | None,
        depth: Int32[Array, ""],
        node_terms: PyTree,
        index: Index,
        has_room: Bool[Array, ""],
    ) -> tuple[Index, Index]:
        """The edges that `selection` scores highest at the nodes at `index`, and their children.

        The child is `NO_CHILD`, and the edge any one, where that is the best slot without a child. Without room for
        new nodes such a slot is chosen only where a node has no edge: it would stay the best one, since its visits do
        not count.
        """

        def score(terms: EdgeTerms, slot: Index) -> Float32[Array, "R"]:
            own = None if keys is None else jax.vmap(jax.random.fold_in)(keys, slot)
            scores = selection.score(own, depth, node_terms, terms)
            if jnp.shape(scores) != jnp.shape(terms.q):
                raise InputError(
                    f"{type(selection).__name__}.score must return a score for each edge, of the shape "
                    f"{list(jnp.shape(terms.q))}; it returned the shape {list(jnp.shape(scores))}"
                )
            return scores

        def score_at(edge: Index, slot: Index) -> Float32[Array, "R"]:
            terms = self.read_terms(edge)
            return jnp.where(terms.q > -jnp.inf, score(terms, slot), -jnp.inf)

        def in_block(best: Index, begin: Index, exists: Bool[Array, "R"]) -> Index:
            # The best edge so far is scored again, which takes less time than to keep its score.
            slot = self.slot_of(best)
            best_score = score_at(best, slot)
            for lane in range(self.lanes):
                edge = begin + lane
                lane_slot = self.slot_of(edge)
                lane_score = score_at(edge, lane_slot)
                better = (lane_score > best_score) & exists
                if not self.in_slot_order:
                    better |= (lane_score == best_score) & (lane_slot < slot) & exists
                best = jnp.where(better, edge, best)
                slot = jnp.where(better, lane_slot, slot)
                best_score = jnp.where(better, lane_score, best_score)
            # Otherwise XLA would compute the scores again for each reader of the edge.
            return materialize(best)

        best = self.over_blocks(index, in_block, index * self.lanes)
        best_slot = self.slot_of(best)
        best_score = score_at(best, best_slot)
        untried = self.untried_at(index)
        untried_score = score(selection.init(untried.prior), untried.slot)
        better = (untried_score > best_score) | ((untried_score == best_score) & (untried.slot < best_slot))
        is_new = (best_score == -jnp.inf) | ((untried.prior >= 0) & better & has_room)
        return best, jnp.where(is_new, NO_CHILD, read(self.child, best))

    def fold(self, selection: Selection, index: Index) -> Fold:
        """Over the edges of the nodes at `index`."""

        def fold(function: Callable[[_C, Any], _C], start: _C) -> _C:
            mass = self.untried_at(index).mass
            assert mass is not None
            untried: Any = selection.init(jnp.maximum(mass, 0)[None])
            untried = untried._replace(q=jnp.where(mass[None] >= 0, untried.q, -jnp.inf))

            def over_block(carry: _C, begin: Index, exists: Bool[Array, "R"]) -> _C:
                terms = self.read_terms(begin[None] + jnp.arange(self.lanes, dtype=jnp.int32)[:, None])
                on = (terms.q > -jnp.inf) & exists[None]
                cleared = jax.tree.map(lambda term: jnp.where(on, term, 0.0), terms)
                return function(carry, cleared._replace(q=jnp.where(on, terms.q, -jnp.inf)))

            return materialize(self.over_blocks(index, over_block, function(start, untried)))

        return fold

    def read_terms(self, edge: Int32[Array, "..."]) -> Any:
        """The terms of edges."""
        return self.terms_type._make(read(self.terms, edge * self.num_terms + term) for term in range(self.num_terms))

    def write_terms(self: _S, edge: Index, terms: Any, unique: bool = True) -> _S:
        """Writes the terms of edges; nothing where `edge` is out of range."""
        rows = jnp.stack([jnp.broadcast_to(term, edge.shape) for term in terms], axis=1)
        return replace_fields(self, terms=put(self.terms, edge * self.num_terms, rows, unique))

    def untried_at(self, index: Index) -> Untried:
        """The slots without a child of the nodes at `index`."""
        slot, *priors = (read(self.untried, index * self.num_untried + column) for column in range(self.num_untried))
        return Untried(slot.astype(jnp.int32), priors[0], priors[1] if self.with_mass else None)

    def new_edge(
        self, prior: Float32[Array, "NBK"], num_slots: int, index: Index, slot: Index | None = None
    ) -> NewEdge:
        """The edge of `slot` of the nodes at `index`, or of the best slot without a child where that is negative."""
        best, best_prior, _ = self.untried_at(index)
        if slot is None:
            slot, slot_prior = best, best_prior
        else:
            slot = jnp.where(slot < 0, best, slot)
            slot_prior = read(prior, index * num_slots + slot)
        slots = jnp.arange(num_slots, dtype=jnp.int32)[:, None]
        others = jnp.where(slots == slot[None], -1.0, read(prior, index[None] * num_slots + slots))
        return NewEdge(slot, slot_prior, others, *self.place(index, slot))

    def attach(self: _S, new: NewEdge, untried: Untried, index: Index, child: Index, made: Bool[Array, "R"]) -> _S:
        """Makes the edges `new` of the nodes at `index` lead to `child` where `made` holds.

        Args:
          untried: the slots that have no child then.
        """
        store = self.occupy(new.place, index, new.slot, made)
        at_edge = jnp.where(made, new.edge, self.child.size)
        at_node = jnp.where(made, index * self.num_untried, self.untried.size)
        return replace_fields(
            store,
            child=put(self.child, at_edge, child),
            upper=None if self.upper is None else put(self.upper, at_edge, jnp.ones_like(new.prior)),
            untried=put(self.untried, at_node, untried.rows()),
        )

    def write_nodes(self: _S, untried: Untried, node: Int32[Array, ""], count: int) -> _S:
        """The store with `count` new nodes in every tree, from number `node` on, whose slots are all `untried`."""
        return replace_fields(self, untried=write_rows(self.untried, untried.rows(), node, count))

    def highest_upper(self, index: Index) -> Float32[Array, "R"]:
        """What no edge of the nodes at `index` exceeds."""
        uppers = self.upper
        assert uppers is not None

        def in_block(highest: Float32[Array, "R"], begin: Index, exists: Bool[Array, "R"]) -> Array:
            for lane in range(self.lanes):
                highest = jnp.where(exists, jnp.maximum(highest, read(uppers, begin + lane)), highest)
            return highest

        highest = self.over_blocks(index, in_block, jnp.full(len(index), -jnp.inf, jnp.float32))
        return jnp.where(self.untried_at(index).prior >= 0, 1.0, highest)

    def find(self, index: Index, slots: Int32[Array, "J R"]) -> Int32[Array, "J R"]:
        """The edges of slots of the nodes at `index`, -1 where there is none."""

        def in_block(found: Array, begin: Index, exists: Bool[Array, "R"]) -> Array:
            edges = begin[None] + jnp.arange(self.lanes, dtype=jnp.int32)[:, None]
            on = (self.read_terms(edges).q > -jnp.inf) & exists[None]
            is_slot = on[:, None] & (self.slot_of(edges)[:, None] == slots[None])
            return jnp.maximum(found, jnp.max(jnp.where(is_slot, edges[:, None], -1), axis=0))

        return self.over_blocks(index, in_block, jnp.full_like(slots, -1))

    def with_root_priors(self: _S, prior: Float32[Array, "B K"]) -> _S:
        """The store of roots whose slots have `prior`, -1 where there is a child."""
        return self.write_nodes(untried_of(prior.T, self.with_mass), jnp.int32(0), 1)

    @property
    def has_edge(self) -> Bool[Array, "M B L"]:
        """Where there is an edge, in `grids`."""
        return self.terms[..., self.terms_type._fields.index("q")] > -jnp.inf

    def renumbered_child(self, number: Int32[Array, "N B"]) -> Int32[Array, "M B L"]:
        """`child` with the new numbers of nodes, `NO_CHILD` where there is no edge or its child is dropped."""
        # Lanes before trees, so that numbers are looked up by tree.
        by_lane = jnp.where(self.has_edge, self.child, NO_CHILD).swapaxes(1, 2)
        new = jnp.take_along_axis(number, jnp.abs(by_lane).reshape(-1, number.shape[1]), axis=0).reshape(by_lane.shape)
        return jnp.where(new > 0, jnp.sign(by_lane) * new, NO_CHILD).swapaxes(1, 2)


def tree_of(index: Index, batch: int) -> Index:
    """The tree of each flat index."""
    # Unsigned: a signed remainder takes several operations more.
    tree: Array = index.astype(jnp.uint32) % jnp.uint32(batch)
    return tree.astype(jnp.int32)


def folds(selection: Selection, batch: int) -> bool:
    """Whether the rule folds over edges, in a batch of this many trees."""
    is_folded = False

    def fold(function: Callable[[_C, Any], _C], start: _C) -> _C:
        nonlocal is_folded
        del function
        is_folded = True
        return start

    def trace(row: Float32[Array, "B"]) -> PyTree:
        node = NodeStatistics(row, row, row, jnp.int32(0), row, selection.sums(row))
        return selection.node_terms(node, fold), selection.backward(row, node, fold)

    jax.eval_shape(trace, jax.ShapeDtypeStruct((batch,), jnp.float32))
    return is_folded


def _terms_of(selection: Selection, batch: int) -> Any:
    """The terms of an edge, as the rule gives them before and after its first visit."""

    def trace(row: Float32[Array, "B"]) -> tuple[Any, Any]:
        return selection.init(row), selection.update(EdgeStatistics(row, row, row, row, row, selection.sums(row)))

    before, after = jax.eval_shape(trace, jax.ShapeDtypeStruct((batch,), jnp.float32))
    rule = type(selection).__name__
    for name, terms in (("init", before), ("update", after)):
        if "q" not in getattr(terms, "_fields", ()):
            raise InputError(f"{rule}.{name} must return a NamedTuple with q and what else it keeps, got {terms!r}")
    if type(before) is not type(after):
        kinds = type(before).__name__, type(after).__name__
        raise InputError(f"{rule}: init and update must return the same NamedTuple, got {' and '.join(kinds)}")
    return before


def _check_size(count: int) -> None:
    """Raises InputError for an array of trees with more numbers than an index of 32 bits reaches."""
    if count > _MOST_NUMBERS:
        raise InputError(
            f"the trees are too large: an array has {count:,} numbers, and at most {_MOST_NUMBERS:,} can be addressed; "
            "search fewer positions at once, or with fewer simulations"
        )


def allocate(num_nodes: int, roots: Shaped[Array, "..."]) -> Shaped[Array, "size"]:
    """The row of the roots, and uninitialized rows for other nodes, flat.

    Raises:
      InputError: more numbers than an index of 32 bits reaches.
    """
    _check_size(num_nodes * roots.size)
    # Apart from one another: together XLA would compute every element again.
    rows, roots = materialize(jax.lax.empty((num_nodes * roots.size,), roots.dtype)), materialize(roots.reshape(-1))
    return write_rows(rows, roots, jnp.int32(0))


def take_rows(rows: Shaped[Array, "..."], source: Int32[Array, "N B"]) -> Shaped[Array, "..."]:
    """Rows [N, B, ...] in the order of `source`."""
    return jnp.take_along_axis(rows, source.reshape(*source.shape, *[1] * (rows.ndim - 2)), axis=0)
