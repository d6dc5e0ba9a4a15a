"""What a program written for mctx hands over: a root and a `recurrent_fn`. Axis letters: see `azjax/search/tree.py`."""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, PRNGKeyArray, PyTree, Shaped

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.core.whole_numbers import whole
from azjax.search.dynamics import Evaluation, Occurred, Root, Step
from azjax.search.mctx.replaceable import Replaceable
from azjax.search.priors import legal_logits, legal_softmax


@pytree_dataclass
class RootFnOutput(Replaceable):
    """Where a search starts.

    prior_logits: [B, A].
    value: [B].
    embedding: a pytree of numbers or bools with every leaf [B, ...].
    """

    prior_logits: Any
    value: Any
    embedding: Any


@pytree_dataclass
class RecurrentFnOutput(Replaceable):
    """What a step brings: the return is reward + discount * value.

    reward: [B].
    discount: [B]; nothing is searched after a discount of 0.
    prior_logits: [B, A].
    value: [B].
    """

    reward: Any
    discount: Any
    prior_logits: Any
    value: Any


@runtime_checkable
class RecurrentRoot(Protocol):
    """`RootFnOutput`, or any class with its fields, such as mctx's own."""

    @property
    def prior_logits(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def embedding(self) -> Any: ...


RecurrentState: TypeAlias = PyTree
"""An embedding."""

RecurrentFn: TypeAlias = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
"""`recurrent_fn(params, rng_key, action int32 [B], embedding) -> (RecurrentFnOutput, embedding)`."""


def root_of(root: RecurrentRoot, invalid_actions: Shaped[Any, "..."] | None) -> Root:
    """The roots of a search. A row without a valid action counts as terminated."""
    prior_logits = jnp.asarray(root.prior_logits, jnp.float32)
    value = jnp.asarray(root.value, jnp.float32)
    if prior_logits.ndim != 2:
        raise InputError(f"root.prior_logits must have the shape [B, A], got {prior_logits.shape}")
    shape = prior_logits.shape
    if value.shape != shape[:1]:
        raise InputError(f"root.value must have the shape {shape[:1]} of the batch, got {value.shape}")
    positions = jax.tree.map(jnp.asarray, root.embedding)
    for leaf in jax.tree.leaves(positions):
        if leaf.shape[:1] != shape[:1]:
            raise InputError(f"every leaf of root.embedding must have the shape [{shape[0]}, ...], got {leaf.shape}")
        if jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
            raise InputError(f"root.embedding holds {leaf.dtype}: store jax.random.key_data of it")
    valid = jnp.ones(shape, bool) if invalid_actions is None else jnp.logical_not(invalid_actions)
    if valid.shape != shape:
        raise InputError(f"invalid_actions must have the shape {shape} of root.prior_logits, got {valid.shape}")
    logits = legal_logits(prior_logits.T, valid.T)
    return Root(
        histories=None,
        keys=None,
        positions=positions,
        terminated=~jnp.any(valid, axis=1),
        prior=legal_softmax(logits).T,
        evaluation=Evaluation(None, logits, value),
    )


@dataclasses.dataclass(frozen=True)
class RecurrentDynamics:
    """`recurrent_fn` as `azjax.search.dynamics.Dynamics`. Hashable by value."""

    recurrent_fn: RecurrentFn
    num_actions: int
    max_depth: int
    cuts_off: bool

    @classmethod
    def create(
        cls, recurrent_fn: RecurrentFn, root: Root, num_simulations: int, max_depth: int | None
    ) -> "RecurrentDynamics":
        """For a search from `root`, as deep as its simulations go, or to `max_depth`."""
        if max_depth is not None and (whole(max_depth) or 0) < 1:
            raise InputError(f"max_depth must be a whole number from 1 on, or None for any depth, got {max_depth!r}")
        depth = num_simulations if max_depth is None else min(max_depth, num_simulations)
        return cls(recurrent_fn, root.prior.shape[1], depth, cuts_off=depth < num_simulations)

    def step(
        self, params: PyTree, key: PRNGKeyArray, states: PyTree, action: Int32[Array, "B"], occurred: Occurred | None
    ) -> Step:
        """Takes `action` at the embeddings `states`."""
        del occurred
        output, following = self.recurrent_fn(params, key, action, states)
        # A tree stores embeddings in the types of the root's.
        following = jax.tree.map(_like, following, states)
        reward, discount, value = (
            jnp.asarray(number, jnp.float32) for number in (output.reward, output.discount, output.value)
        )
        prior_logits = jnp.asarray(output.prior_logits, jnp.float32)
        for name, array in {"reward": reward, "discount": discount, "value": value}.items():
            _check_shape(name, array, action.shape)
        _check_shape("prior_logits", prior_logits, (*action.shape, self.num_actions))
        logits = legal_logits(prior_logits.T, jnp.bool_(True))
        return Step(following, reward, discount, Evaluation(None, logits, value))

    def evaluate(self, params: PyTree, key: PRNGKeyArray, states: PyTree, output: Evaluation) -> Evaluation:
        """The evaluation that came with the step."""
        del params, key, states
        return output


def _check_shape(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InputError(f"{name} of recurrent_fn must have the shape {shape}, got {array.shape}")


def _like(new: Any, old: Array) -> Array:
    """A leaf of an embedding in the type of the root's."""
    array: Array = jnp.asarray(new, old.dtype)
    if array.shape != old.shape:
        raise InputError(
            f"an embedding of recurrent_fn must have the shapes of the root's: got {array.shape}, expected {old.shape}"
        )
    return array
