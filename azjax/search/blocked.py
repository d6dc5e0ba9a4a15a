"""Edges of games with many actions: an edge is made with its child. Axis letters: see `tree.py`.

An edge is known by its place in `child`. Inside a simulation every array is one run of numbers, see `arrays.py`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from azjax.core.arrays import laid_out, put, read, tree_of, write_rows
from azjax.core.pytree import pytree_dataclass
from azjax.search.lanes import NO_CHILD, best_lane, best_untried, highest_lane, lanes_of, legal_softmax, mass_of, room
from azjax.search.selection import Fold, Selection

LANES = 8
"""L: eight numbers of 32 bits are half a cache line, and most nodes have fewer children."""


class ChainEntry(NamedTuple):
    """An edge that is to be made with its child.

    slot: int32 [B].
    prior: float32 [B]; of the slot.
    others: float32 [K, B]; the priors of the node's other slots without a child, -1 elsewhere.
    num_children: int32 [B]; of the node.
    last_block: int32 [B]; of the node.
    """

    slot: chex.Array
    prior: chex.Array
    others: chex.Array
    num_children: chex.Array
    last_block: chex.Array


@pytree_dataclass
class Chain:
    """Edges stand in the order in which their children were made, L side by side in a block.

    Block n < N is the first of node n; a node with more than L children has a chain of blocks. Slots without a child
    differ by their prior alone, so the best of them, which the node knows, stands for all.

    child: int32 [M, B, L]; the node that the edge leads to, negative where nothing follows it.
    features: F times float32 [M, B, L]; what the rule of selection needs to score the edge; see
      `Selection.features`. The first is -inf where there is no edge.
    upper: float32 [M, B, L]; what the return of the edge is proven not to exceed, -1 where there is no edge; None
      without a solver.
    next_block: int32 [M, B]; the next block of the chain, 0 at its end.
    last_block: int32 [N, B]; of a node's chain, where it has more than one.
    num_blocks: int32 [B].
    num_children: int32 [N, B].
    untried_slot: int32 [N, B]; the slot without a child that has the highest prior, the lowest such slot on ties.
    untried_prior: float32 [N, B]; its prior, -1 where every slot has a child.
    untried_mass: float32 [N, B]; the sum of the priors of all slots without a child; None where the rule of selection
      does not fold over edges.
    """

    child: chex.Array
    features: tuple[chex.Array, ...]
    upper: chex.Array | None
    next_block: chex.Array
    last_block: chex.Array
    num_blocks: chex.Array
    num_children: chex.Array
    untried_slot: chex.Array
    untried_prior: chex.Array
    untried_mass: chex.Array | None

    @classmethod
    def create(cls, selection: Selection, prior: chex.Array, num_nodes: int, solver: bool) -> "Chain":
        """The edges of roots with `prior` [B, K]."""
        batch = len(prior)
        num_blocks = num_nodes + num_nodes // LANES
        slot, slot_prior = best_untried(prior.T)
        features = [jnp.zeros((num_blocks, batch, LANES), jnp.float32) for _ in selection.untried_features(slot_prior)]
        features[0] = jnp.full_like(features[0], -jnp.inf)
        return cls(
            child=jnp.full((num_blocks, batch, LANES), NO_CHILD, jnp.int32),
            features=tuple(features),
            upper=jnp.full((num_blocks, batch, LANES), -1, jnp.float32) if solver else None,
            next_block=jnp.zeros((num_blocks, batch), jnp.int32),
            last_block=jnp.zeros((num_nodes, batch), jnp.int32),
            num_blocks=jnp.full(batch, num_nodes, jnp.int32),
            num_children=jnp.zeros((num_nodes, batch), jnp.int32),
            untried_slot=room(num_nodes, slot),
            untried_prior=room(num_nodes, slot_prior),
            untried_mass=room(num_nodes, mass_of(prior.T)) if selection.folds else None,
        )

    def with_root_prior(self, selection: Selection, prior: chex.Array, slot: chex.Array, sums: chex.Array) -> "Chain":
        """These edges, [M, B, L], with `prior` [B, K] at the roots; `slot` [N, B] and `sums` [N, B, 2]: see `Tree`."""
        batch = jnp.arange(len(prior), dtype=jnp.int32)

        def more(carry: tuple) -> chex.Array:
            return jnp.any(carry[1])

        def go_on(carry: tuple) -> tuple:
            block, on, features = carry
            child = jnp.abs(self.child[block, batch])
            at = child, batch[:, None]
            visits, returns = sums[(*at, 0)], sums[(*at, 1)]
            rows = selection.features(returns / visits, prior[batch[:, None], slot[at]], visits)
            changed = on[:, None] & (child != NO_CHILD)
            # What stands for a mean return may be proven: it stays.
            others = zip(features[1:], rows[1:], strict=True)
            changed_others = (
                run.at[block, batch].set(jnp.where(changed, row, run[block, batch])) for run, row in others
            )
            features = (features[0], *changed_others)
            block = self.next_block[block, batch]
            return block, on & (block != 0), features

        begin = jnp.zeros_like(batch), jnp.ones_like(batch, dtype=bool), self.features
        _, _, features = jax.lax.while_loop(more, go_on, begin)
        return dataclasses.replace(self, features=features)

    def best(
        self, selection: Selection, terms: Any, place: chex.Array, lanes: int, batch: int, node: chex.Array
    ) -> tuple[chex.Array, chex.Array]:
        """See `Table.best`. Where the edge is yet to be made the child is `NO_CHILD`, and the edge is another."""
        del lanes
        tree_index = tree_of(place, batch)

        def more(carry: tuple) -> chex.Array:
            return jnp.any(carry[0] != 0)

        def go_on(carry: tuple) -> tuple:
            block, best = carry
            at = block * batch + tree_index
            better = best_lane(self.features, selection, terms, at * LANES, best, 0, LANES, node)
            return jnp.where(block != 0, read(self.next_block, at), 0), jnp.where(block != 0, better, best)

        best = best_lane(self.features, selection, terms, place * LANES, place * LANES, 1, LANES, node)
        _, best = jax.lax.while_loop(more, go_on, (read(self.next_block, place), best))
        best_score = selection.score(terms, tuple(read(run, best) for run in self.features))
        untried = read(self.untried_prior, place)
        is_new = (untried >= 0) & (selection.score(terms, selection.untried_features(untried)) > best_score)
        return best, jnp.where(is_new, NO_CHILD, read(self.child, best))

    def fold(self, selection: Selection, place: chex.Array, lanes: int, batch: int, node: chex.Array) -> Fold:
        """Over the edges of the nodes at `place` [B]."""
        del lanes
        tree_index = tree_of(place, batch)

        def fold(function: Callable, start: Any) -> Any:
            def more(carry: tuple) -> chex.Array:
                return jnp.any(carry[0] != 0)

            def go_on(carry: tuple) -> tuple:
                block, result = carry
                at = block * batch + tree_index
                following = function(result, lanes_of(self.features, at, LANES))
                on = block != 0
                result = jax.tree.map(lambda new, old: jnp.where(on, new, old), following, result)
                return jnp.where(on, read(self.next_block, at), 0), result

            untried = selection.untried_features(read(self.untried_mass, place)[None])
            result = function(function(start, untried), lanes_of(self.features, place, LANES))
            _, result = jax.lax.while_loop(more, go_on, (read(self.next_block, place), result))
            return result

        return fold

    def new_edge(
        self, prior: chex.Array, place: chex.Array, edge: chex.Array, num_slots: int, slot: chex.Array | None
    ) -> ChainEntry:
        """`slot` [B], where it is not negative, is the slot; otherwise it is the untried one of highest prior."""
        del edge
        best, best_prior = read(self.untried_slot, place), read(self.untried_prior, place)
        if slot is None:
            slot, slot_prior = best, best_prior
        else:
            slot = jnp.where(slot < 0, best, slot)
            slot_prior = read(prior, place * num_slots + slot)
        slots = jnp.arange(num_slots, dtype=jnp.int32)[:, None]
        others = jnp.where(slots == slot[None], -1.0, read(prior, place[None] * num_slots + slots))
        return ChainEntry(
            slot,
            slot_prior,
            others,
            read(self.num_children, place),
            read(self.last_block, place),
        )

    def rest(self, new: ChainEntry) -> tuple:
        """See `Table.rest`: the best of the other slots, and their mass."""
        return best_untried(new.others), None if self.untried_mass is None else mass_of(new.others)

    def judge(self, logits: chex.Array) -> tuple:
        """See `Table.judge`."""
        prior = legal_softmax(logits)
        return prior.T, best_untried(prior), None if self.untried_mass is None else mass_of(prior)

    def attach(
        self, prior: chex.Array, new: ChainEntry, rest: tuple, at: chex.Array, child: chex.Array
    ) -> tuple["Chain", chex.Array, chex.Array]:
        """See `Table.attach`."""
        (best_slot, best_prior), mass = rest
        batch, nowhere = len(at), prior.size
        num_slots = len(new.others)
        made = at < nowhere
        leaf = jnp.where(made, at, 0)
        tree_index = jnp.arange(batch, dtype=jnp.int32)
        count, lane = new.num_children, new.num_children % LANES
        last = jnp.where(count <= LANES, leaf, new.last_block * batch + tree_index)
        opens = made & (lane == 0) & (count > 0)
        block = jnp.where(opens, self.num_blocks * batch + tree_index, last)
        edge = block * LANES + lane
        at_edge = jnp.where(made, edge, self.child.size)
        edges = dataclasses.replace(
            self,
            child=put(self.child, at_edge, child),
            upper=None if self.upper is None else put(self.upper, at_edge, jnp.ones_like(new.prior)),
            next_block=put(self.next_block, jnp.where(opens, last, self.next_block.size), self.num_blocks),
            last_block=put(self.last_block, at, jnp.where(opens, self.num_blocks, new.last_block)),
            num_blocks=self.num_blocks + opens,
            num_children=put(self.num_children, at, count + 1),
            untried_slot=put(self.untried_slot, at, best_slot),
            untried_prior=put(self.untried_prior, at, best_prior),
            untried_mass=None if mass is None else put(self.untried_mass, at, mass),
        )
        slot = jnp.where(made, leaf * num_slots + new.slot, nowhere)
        return edges, put(prior, slot, jnp.full_like(new.prior, -1)), edge

    def fill(
        self, selection: Selection, prior: chex.Array, judged: tuple, node: chex.Array, count: int
    ) -> tuple["Chain", chex.Array]:
        """See `Table.fill`."""
        del selection
        new_prior, (best_slot, best_prior), mass = judged
        edges = dataclasses.replace(
            self,
            untried_slot=write_rows(self.untried_slot, best_slot, node, count),
            untried_prior=write_rows(self.untried_prior, best_prior, node, count),
            untried_mass=None if mass is None else write_rows(self.untried_mass, mass, node, count),
        )
        return edges, write_rows(prior, laid_out(new_prior, node), node, count)

    def upper_of(self, upper: chex.Array, place: chex.Array, lanes: int, batch: int) -> chex.Array:
        """float32 [R]: what no edge of the nodes at places [R] exceeds; `upper` are those of the edges."""
        del lanes
        tree_index = tree_of(place, batch)

        def more(carry: tuple) -> chex.Array:
            return jnp.any(carry[0] != 0)

        def go_on(carry: tuple) -> tuple:
            block, highest_yet = carry
            at = block * batch + tree_index
            in_block = jnp.maximum(highest_yet, highest_lane(upper, at * LANES, LANES))
            return jnp.where(block != 0, read(self.next_block, at), 0), jnp.where(block != 0, in_block, highest_yet)

        begin = read(self.next_block, place), highest_lane(upper, place * LANES, LANES)
        _, highest_yet = jax.lax.while_loop(more, go_on, begin)
        return jnp.where(read(self.untried_prior, place) >= 0, 1.0, highest_yet)
