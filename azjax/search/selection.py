"""Which way selection goes from a node. Axis letters: see `tree.py`; `R` any number of places."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import chex
import jax.numpy as jnp

from azjax.core.pytree import pytree_dataclass

Fold = Callable[[Callable[[Any, tuple[chex.Array, ...]], Any], Any], Any]
"""`fold(function, start)`: `function(carry, features)` over all edges of some nodes [R], which come in any number of
rows, as features [L, R]; the first of them is -inf where there is no edge. Untried edges come one by one, or as one
whose prior is the sum of theirs."""


@runtime_checkable
class Selection(Protocol):
    """A rule of selection: a simulation goes the way of the highest score.

    On ties it takes the first of the edges, and one that is yet to be made last.
    """

    @property
    def folds(self) -> bool:
        """Whether `terms` folds over the edges of a node."""

    def features(self, value: chex.Array, prior: chex.Array, visits: chex.Array) -> tuple[chex.Array, ...]:
        """F times float32 [R]: what the scores of edges need of them; all that can be worked out ahead."""

    def terms(self, visits: chex.Array, place: chex.Array, fold: Fold) -> Any:
        """What the scores of the edges of a node have in common, of its visits [R] and place [R]: any pytree of [R]."""

    def score(self, terms: Any, features: tuple[chex.Array, ...]) -> chex.Array:
        """float32 [R]: of one edge of each node, elementwise."""

    def untried_features(self, prior: chex.Array) -> tuple[chex.Array, ...]:
        """The features of edges without a child."""


@pytree_dataclass
class Puct:
    """Q + c P sqrt(max(sum N, 1)) / (1 + N), Silver et al. 2017 (AlphaGo Zero), Methods, "Select".

    The maximum makes the first simulation of a node follow its priors. An unvisited child has Q = first_play_urgency.

    c_puct: float32 [], or [B]; of each tree.
    first_play_urgency: float32 [].
    """

    c_puct: chex.Array
    first_play_urgency: chex.Array

    @property
    def folds(self) -> bool:
        return False

    def features(self, value: chex.Array, prior: chex.Array, visits: chex.Array) -> tuple[chex.Array, ...]:
        return value, prior / (1 + visits)

    def terms(self, visits: chex.Array, place: chex.Array, fold: Fold) -> chex.Array:
        del place, fold
        c_puct = self.c_puct if self.c_puct.ndim == 0 else jnp.tile(self.c_puct, len(visits) // len(self.c_puct))
        return c_puct * jnp.sqrt(jnp.maximum(visits - 1, 1))

    def score(self, terms: chex.Array, features: tuple[chex.Array, ...]) -> chex.Array:
        value, weight = features
        return value + terms * weight

    def untried_features(self, prior: chex.Array) -> tuple[chex.Array, ...]:
        return jnp.broadcast_to(self.first_play_urgency, prior.shape), prior


@pytree_dataclass
class Ucb1:
    """Mean return + c sqrt(ln N / n), Auer et al. 2002, as UCT has it (Kocsis and Szepesvari 2006).

    Every action is tried once before one is tried again.
    """

    exploration: chex.Array

    @property
    def folds(self) -> bool:
        return False

    def features(self, value: chex.Array, prior: chex.Array, visits: chex.Array) -> tuple[chex.Array, ...]:
        del prior
        return value, 1 / jnp.sqrt(visits)

    def terms(self, visits: chex.Array, place: chex.Array, fold: Fold) -> chex.Array:
        del place, fold
        return self.exploration * jnp.sqrt(jnp.log(jnp.maximum(visits, 1)))

    def score(self, terms: chex.Array, features: tuple[chex.Array, ...]) -> chex.Array:
        value, weight = features
        return value + terms * weight

    def untried_features(self, prior: chex.Array) -> tuple[chex.Array, ...]:
        return jnp.full_like(prior, jnp.inf), jnp.zeros_like(prior)
