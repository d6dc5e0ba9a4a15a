"""Edges of games with few actions: a node has one block, in which lane k is its slot k. Axis letters: see `tree.py`."""

from collections.abc import Callable
from typing import TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from azjax.core.pytree import pytree_dataclass, replace_fields
from azjax.search.edges import EdgeStore, Index, take_rows
from azjax.search.selection import Selection

_C = TypeVar("_C")


@pytree_dataclass
class DenseEdges(EdgeStore):
    """Arrays [N, B, K]. Methods: see `EdgeStore`."""

    @classmethod
    def create(cls, selection: Selection, prior: Float32[Array, "B K"], num_nodes: int, solver: bool) -> "DenseEdges":
        """The edges of roots with `prior`."""
        return cls(**cls.fields_for(selection, prior, (num_nodes, *prior.shape), num_nodes, solver))

    def over_blocks(self, index: Index, function: Callable[[_C, Index, Bool[Array, "R"]], _C], start: _C) -> _C:
        return function(start, index * self.lanes, jnp.ones(len(index), bool))

    def slot_of(self, edge: Int32[Array, "..."]) -> Int32[Array, "..."]:
        return edge % self.lanes

    def find(self, index: Index, slots: Int32[Array, "J R"]) -> Int32[Array, "J R"]:
        edge = index[None] * self.lanes + slots
        return jnp.where(self.read_terms(edge).q > -jnp.inf, edge, -1)

    @property
    def in_slot_order(self) -> bool:
        return True

    def place(self, index: Index, slot: Index) -> tuple[Index, None]:
        return index * self.lanes + slot, None

    def occupy(self, place: None, index: Index, slot: Index, made: Bool[Array, "R"]) -> "DenseEdges":
        del place, index, slot, made
        return self

    def renumber(
        self, source: Int32[Array, "N B"], number: Int32[Array, "N B"], made: Bool[Array, "N B"]
    ) -> "DenseEdges":
        return replace_fields(
            self,
            child=take_rows(self.renumbered_child(number), source),
            terms=jnp.where(made[..., None, None], take_rows(self.terms, source), -jnp.inf),
            upper=None if self.upper is None else jnp.where(made[..., None], take_rows(self.upper, source), -1),
            untried=take_rows(self.untried, source),
        )
