"""How the Qs of a node's edges are put on a common scale. Axis letters: see `azjax/search/selection.py`."""

import abc
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float32

from azjax.search.selection import Fold, NodeStatistics, Numbers

SMALLEST_SPREAD = 1e-8
"""Of Qs that are stretched to 0..1, as in mctx."""

HIGHEST_EXPONENT = 80.0
"""e^80 is within the range of float32, and 1 is negligible beside it."""


@runtime_checkable
class VisitedEdges(Protocol):
    """Terms of edges: `visits` is 0 for edges without a child, and their `q` 0."""

    @property
    def q(self) -> Numbers: ...
    @property
    def prior(self) -> Numbers: ...
    @property
    def visits(self) -> Numbers: ...


class QTransform(abc.ABC):
    """Transforms the Qs of the edges of a node.

    A summary is what the edges of a node share: a pytree with leaves [R], or [1, R] where the edges are [L, R].
    """

    @abc.abstractmethod
    def summarize(self, node: NodeStatistics, fold: Fold) -> Any:
        """The summary of nodes, over whose edges `fold` goes."""

    @abc.abstractmethod
    def scaled(self, summary: Any, edges: VisitedEdges) -> Float32[Array, "..."]:
        """The transformed Qs, up to a number that all edges of a node share."""

    def weight(self, summary: Any, edges: VisitedEdges) -> Float32[Array, "..."]:
        """P exp(transformed Q), up to a factor that all edges of a node share, in float32's range."""
        exponent = jnp.clip(self.scaled(summary, edges), -HIGHEST_EXPONENT, HIGHEST_EXPONENT)
        return edges.prior * jnp.exp(exponent)
