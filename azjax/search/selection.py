"""What a rule of selection is: a simulation follows, from each node, the edge that the rule scores highest.

A rule is a pytree dataclass (`azjax.core.pytree_dataclass`) of its numbers, in a file of its own; `rules/` has those of
the package, and `docs/adding_a_selection_rule.md` writes one. Axis letters: `R` nodes, or edges, that are looked at
together, one of each tree; `L` edges of each; `B` batch, `K` slots.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key, PyTree

_C = TypeVar("_C")

Numbers: TypeAlias = Float32[Array, "*R"]

LOST = -1e6
"""The `q` of an edge that is proven lost: PUCT and UCB1 then prefer every other edge."""


@runtime_checkable
class EdgeTerms(Protocol):
    """What a rule keeps of an edge in order to score it: a NamedTuple of floats with `q` among them."""

    @property
    def q(self) -> Numbers:
        """As `EdgeStatistics` has it; -inf where there is no edge."""
        ...


class VisitedTerms(NamedTuple):
    """`EdgeTerms` of rules that compute all else in the score. `visits` is 0 for edges without a child."""

    q: Numbers
    prior: Numbers
    visits: Numbers

    @classmethod
    def untried(cls, prior: Numbers) -> "VisitedTerms":
        """Of edges without a child."""
        return cls(jnp.zeros_like(prior), prior, jnp.zeros_like(prior))


class EdgeStatistics(NamedTuple):
    """Of the child behind an edge. Values are seen by the player who moves along the edge.

    q: mean of the returns; where a solver knows the true return, that one, and `LOST` in place of a loss.
    value: the return of the simulation that comes back along the edge; where a solver knows the true one, as `q`.
    prior: of the edge.
    visits: of the child, its own evaluation included.
    weight: of these visits: their number, or what they count by `uncertainty.py`.
    sums: `Selection.sums` over its visits.
    """

    q: Numbers
    value: Numbers
    prior: Numbers
    visits: Numbers
    weight: Numbers
    sums: Mapping[str, Numbers]


class NodeStatistics(NamedTuple):
    """Of a node. Values are seen by its player to move.

    visits: its own evaluation included; of all its edges there is one visit less.
    value: mean of its values, 0 without visits.
    evaluation: what the evaluator said.
    depth: 0 at the root.
    weight_below: the weight of the visits of all its edges: `visits` - 1, or what they count by `uncertainty.py`.
    sums: `Selection.sums` over its visits.
    """

    visits: Float32[Array, "R"]
    value: Float32[Array, "R"]
    evaluation: Float32[Array, "R"]
    depth: Int32[Array, "*R"]
    weight_below: Float32[Array, "R"]
    sums: Mapping[str, Float32[Array, "R"]]


@runtime_checkable
class Fold(Protocol):
    """`fold(function, start)`: `function(carry, terms)` over all edges of some nodes [R].

    `terms` are `EdgeTerms` with leaves [L, R] of any number L of edges; where there is none `q` is -inf and the others
    are 0. Edges without a child come together, as one edge whose prior is the sum of theirs. The order is not certain.
    """

    def __call__(self, function: Callable[[_C, Any], _C], start: _C) -> _C: ...


class Selection(abc.ABC):
    """A rule of selection. Of equal scores the edge of the lowest slot is followed.

    Edges without a child differ in their prior alone, and the one of the highest prior (the lowest such slot) stands
    for all of them: no score may fall where the prior rises.
    """

    @abc.abstractmethod
    def init(self, prior: Numbers) -> EdgeTerms:
        """The terms of edges without a child."""

    @abc.abstractmethod
    def update(self, edge: EdgeStatistics) -> EdgeTerms:
        """The terms of an edge after a visit of its child: all of its score that can be computed ahead."""

    @abc.abstractmethod
    def node_terms(self, node: NodeStatistics, fold: Fold) -> PyTree:
        """What the edges of a node share in their scores; every leaf [R] or []."""

    @abc.abstractmethod
    def score(
        self, key: Key[Array, "R"] | None, depth: Int32[Array, ""], node_terms: PyTree, edge_terms: Any
    ) -> Float32[Array, "R"]:
        """The score of one edge of each node, elementwise. `key`: one for each edge; None unless `is_random`."""

    # What a rule may have besides.

    is_random: ClassVar[bool] = False
    """Whether `score` reads its key."""

    def sums(self, value: Numbers) -> Mapping[str, Numbers]:
        """What is summed over the visits of a node besides the returns, from the return of one visit."""
        del value
        return {}

    def backward(self, value: Float32[Array, "R"], node: NodeStatistics, fold: Fold) -> Float32[Array, "R"]:
        """The value that a node hands up to its parent: that of the simulation below it, and so the mean is backed up.

        `node` does not have the visit of this simulation yet, or with several leaves a step a virtual one; its edges
        have it.
        """
        del node, fold
        return value

    def target(
        self, prior: Float32[Array, "B K"], visits: Int32[Array, "B K"], q: Float32[Array, "B K"]
    ) -> Float32[Array, "B K"]:
        """The training target of the roots, in any scale: their visits.

        Args:
          prior: of the slots as the search had it, noise included; -1 in holes.
          visits: of the slots.
          q: their mean returns, 0 without visits.
        """
        del prior, q
        return visits.astype("float32")


def has_own_backward(selection: Selection) -> bool:
    """Whether the rule hands up another value than the mean's."""
    return type(selection).backward is not Selection.backward


def gumbel(key: Key[Array, "R"] | None) -> Float32[Array, "R"]:
    """A Gumbel draw for each edge: added to the logarithms of a policy, its highest score is a sample of the policy."""
    assert key is not None, "a rule that draws must say so: `is_random`"
    return jax.vmap(lambda own: jax.random.gumbel(own, (), jnp.float32))(key)
