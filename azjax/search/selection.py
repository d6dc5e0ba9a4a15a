"""Rules of selection: which edge a simulation follows from a node. Axis letters: see `tree.py`; `R` nodes or edges."""

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PyTree

from azjax.core.pytree import pytree_dataclass

_C = TypeVar("_C")

Numbers: TypeAlias = Float32[Array, "*R"]

Features: TypeAlias = tuple[Float32[Array, "..."], ...]
"""F arrays of one shape: what a rule of selection stores of edges in order to score them."""


@runtime_checkable
class Fold(Protocol):
    """`fold(function, start)`: `function(carry, features)` over all edges of some nodes [R].

    Features come as arrays [L, R] of any number L of edges; the first feature is -inf where there is no edge. Edges
    without a child come one by one, or as one edge whose prior is the sum of theirs.
    """

    def __call__(self, function: Callable[[_C, Features], _C], start: _C) -> _C: ...


@runtime_checkable
class Selection(Protocol):
    """A rule of selection: a simulation follows the edge of the highest score.

    Ties go to the first edge in the store, and to an edge with a child before one without.
    """

    @property
    def folds(self) -> bool:
        """Whether `terms` folds over the edges of a node."""
        ...

    def features(self, value: Numbers, prior: Numbers, visits: Numbers) -> Features:
        """The features of edges with this mean return, prior and visits: all of a score that can be computed ahead."""
        ...

    def terms(self, visits: Float32[Array, "R"], index: Int32[Array, "R"], fold: Fold) -> PyTree:
        """What the edges of a node share in their scores, from its visits and its flat index; every leaf [R]."""
        ...

    def score(self, terms: PyTree, features: Features) -> Float32[Array, "..."]:
        """The score of one edge of each node, elementwise."""
        ...

    def untried_features(self, prior: Numbers) -> Features:
        """The features of edges without a child."""
        ...


@pytree_dataclass
class Puct:
    """Q + c P sqrt(max(sum N, 1)) / (1 + N), Silver et al. 2017 (AlphaGo Zero), Methods, "Select".

    The maximum makes the first simulation of a node follow its priors. An edge without a child has
    Q = first_play_urgency.
    """

    c_puct: Float32[Array, ""] | Float32[Array, "B"]
    first_play_urgency: Float32[Array, ""]

    @property
    def folds(self) -> bool:
        return False

    def features(self, value: Numbers, prior: Numbers, visits: Numbers) -> Features:
        return value, prior / (1 + visits)

    def terms(self, visits: Float32[Array, "R"], index: Int32[Array, "R"], fold: Fold) -> Float32[Array, "R"]:
        del index, fold
        c_puct = self.c_puct if self.c_puct.ndim == 0 else jnp.tile(self.c_puct, len(visits) // len(self.c_puct))
        return c_puct * jnp.sqrt(jnp.maximum(visits - 1, 1))

    def score(self, terms: Float32[Array, "..."], features: Features) -> Float32[Array, "..."]:
        value, weight = features
        return value + terms * weight

    def untried_features(self, prior: Numbers) -> Features:
        return jnp.broadcast_to(self.first_play_urgency, prior.shape), prior


@pytree_dataclass
class Ucb1:
    """Mean return + c sqrt(ln N / n), Auer et al. 2002, as in UCT (Kocsis and Szepesvari 2006).

    Every action is tried once before any is tried again.
    """

    exploration: Float32[Array, ""]

    @property
    def folds(self) -> bool:
        return False

    def features(self, value: Numbers, prior: Numbers, visits: Numbers) -> Features:
        del prior
        return value, 1 / jnp.sqrt(visits)

    def terms(self, visits: Float32[Array, "R"], index: Int32[Array, "R"], fold: Fold) -> Float32[Array, "R"]:
        del index, fold
        return self.exploration * jnp.sqrt(jnp.log(jnp.maximum(visits, 1)))

    def score(self, terms: Float32[Array, "..."], features: Features) -> Float32[Array, "..."]:
        value, weight = features
        return value + terms * weight

    def untried_features(self, prior: Numbers) -> Features:
        return jnp.full_like(prior, jnp.inf), jnp.zeros_like(prior)
