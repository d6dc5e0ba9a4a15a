"""The edges from nodes to their children, kept in one of two ways. Axis letters: see `tree.py`."""

import chex

from azjax.search.blocked import Chain
from azjax.search.dense import Table
from azjax.search.selection import Selection

Edges = Table | Chain

MAX_TABLE = 16
"""Up to so many slots all edges of a node are made with it, in a `Table`; with more, each with its child: `Chain`."""


def edges_for(selection: Selection, prior: chex.Array, num_nodes: int, solver: bool) -> Edges:
    """The edges of roots with `prior` [B, K], with room for `num_nodes`."""
    kind = Table if prior.shape[1] <= MAX_TABLE else Chain
    return kind.create(selection, prior, num_nodes, solver)
