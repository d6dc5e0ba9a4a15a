"""The loss: a sum of named terms.

Axis letters: `B` batch, `K` slots of legal actions, `A` actions, `S` symmetries.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, PyTree, Shaped

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, replace_fields
from azjax.games.game import AnyGame, Game, State
from azjax.networks import Network, NetworkOutput, Variables
from azjax.training.config import Config
from azjax.training.equal_positions import weights_of_merged
from azjax.training.hyper import Hyper
from azjax.training.replay import Examples, Following

_S = TypeVar("_S", bound=State)

Metrics: TypeAlias = dict[str, Float32[Array, ""]]


@pytree_dataclass
class Targets:
    """What the output of the network is compared with.

    Attributes:
      states: the positions, each under its symmetry.
      actions: the action of each slot; any one in holes.
      valid: whether the slot holds a legal action.
      policy: the search's policy over the slots.
      value: see `value_target`.
      outcome: `Replay.outcome` for the player to move, or the true value where the search proved it.
      weight: of each position, with the mean 1; None if all are equal.
      following: what came after; None where no term of the loss reads it.
      reply_actions: the action of each slot of the reply, under the symmetry of the position.
      reply_valid: whether that slot holds a legal action.
    """

    states: State
    actions: Int32[Array, "B K"]
    valid: Bool[Array, "B K"]
    policy: Float32[Array, "B K"]
    value: Float32[Array, "B"]
    outcome: Float32[Array, "B"]
    weight: Float32[Array, "B"] | None = None
    following: Following | None = None
    reply_actions: Int32[Array, "B K"] | None = None
    reply_valid: Bool[Array, "B K"] | None = None

    def mean(self, of_each: Shaped[Array, "B"]) -> Float32[Array, ""]:
        """The mean over the positions by their weights: terms of the loss take it, and metrics."""
        return jnp.mean(of_each if self.weight is None else of_each * self.weight)


TermFunction: TypeAlias = Callable[[NetworkOutput, Targets, PyTree, Hyper], tuple[Float32[Array, ""], Metrics]]


@dataclasses.dataclass(frozen=True)
class LossTerm:
    """One term of the loss.

    Attributes:
      name: for messages.
      function: `function(output, targets, params, hyper) -> (loss, metrics)`: a scalar, with its weight, and further
        scalars to log by their names.
      auxiliary: the entries of `NetworkOutput.auxiliary` that it reads.
      following: it reads `Targets.following`.
    """

    name: str
    function: TermFunction
    auxiliary: tuple[str, ...] = ()
    following: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"the loss term {self.name!r}: function must be callable, got {self.function!r}")
        if isinstance(self.auxiliary, str) or not isinstance(self.auxiliary, Iterable):
            raise InputError(
                f"the loss term {self.name!r}: auxiliary must be a sequence of names, got {self.auxiliary!r}"
            )
        object.__setattr__(self, "auxiliary", tuple(self.auxiliary))  # hashable, of any sequence

    def __call__(
        self, output: NetworkOutput, targets: Targets, params: PyTree, hyper: Hyper
    ) -> tuple[Float32[Array, ""], Metrics]:
        """Calls the function.

        Raises:
          InputError: the network does not give an auxiliary output that the term reads, or the function returns
            something else.
        """
        for name in self.auxiliary:
            if name not in output.auxiliary:
                given = ", ".join(sorted(output.auxiliary)) or "none"
                raise InputError(
                    f"the loss term {self.name!r} needs the auxiliary output {name!r}; the network gives: {given}"
                )
        returned = self.function(output, targets, params, hyper)
        if not _is_scalar_with_metrics(returned):
            raise InputError(
                f"the loss term {self.name!r} must return a scalar and a dict of scalars, as (loss, {{}}); it returned "
                f"{jax.tree.map(_shape, returned)}"
            )
        return returned


def _is_scalar_with_metrics(returned: Any) -> bool:
    if not (isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], dict)):
        return False
    return all(isinstance(value, float | int) or _shape(value) == () for value in (returned[0], *returned[1].values()))


def _shape(value: Any) -> Any:
    """The shape of an array, any other value as it is."""
    return getattr(value, "shape", value)


def value_loss(
    output: NetworkOutput, targets: Targets, params: PyTree, hyper: Hyper
) -> tuple[Float32[Array, ""], Metrics]:
    """(z - v)^2 with z the value target. `value_accuracy`: how often the nearest of loss, draw and win is the same."""
    loss = targets.mean((targets.value - output.value) ** 2)
    accuracy = targets.mean(jnp.round(output.value) == jnp.round(targets.value))
    return loss, {"value_loss": loss, "value_accuracy": accuracy}


def policy_loss(
    output: NetworkOutput, targets: Targets, params: PyTree, hyper: Hyper
) -> tuple[Float32[Array, ""], Metrics]:
    """-pi . log p over the legal actions.

    `target_entropy`: of pi. `policy_accuracy`: how often the likeliest action of p is one of the likeliest of pi.
    """
    logits = logits_of_slots(output.prior_logits, targets.actions, targets.valid)
    loss = targets.mean(cross_entropy(targets.policy, logits))
    entropy = targets.mean(jnp.sum(jax.scipy.special.entr(targets.policy), axis=1))
    likeliest = jnp.take_along_axis(targets.policy, jnp.argmax(logits, axis=1)[:, None], axis=1)[:, 0]
    accuracy = targets.mean(likeliest == jnp.max(targets.policy, axis=1))
    return loss, {"policy_loss": loss, "target_entropy": entropy, "policy_accuracy": accuracy}


def logits_of_slots(
    logits: Float32[Array, "B A"], actions: Int32[Array, "B K"], valid: Bool[Array, "B K"]
) -> Float32[Array, "B K"]:
    """The logits of the slots' actions, -inf in holes."""
    return jnp.where(valid, jnp.take_along_axis(logits, actions, axis=1), -jnp.inf)


def cross_entropy(policy: Float32[Array, "B K"], logits: Float32[Array, "B K"]) -> Float32[Array, "B"]:
    """-pi . log p. Logits may be -inf where `policy` is 0."""
    log_policy = jnp.where(logits > -jnp.inf, jax.nn.log_softmax(logits, axis=1), 0.0)
    return -jnp.sum(policy * log_policy, axis=1)


def l2_loss(
    output: NetworkOutput, targets: Targets, params: PyTree, hyper: Hyper
) -> tuple[Float32[Array, ""], Metrics]:
    """`hyper.l2` times the sum of the squared parameters."""
    squares = sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(params)), start=jnp.float32(0))
    return hyper.l2 * squares, {}


ALPHAZERO_LOSS = (LossTerm("value", value_loss), LossTerm("policy", policy_loss), LossTerm("l2", l2_loss))
"""(z - v)^2 - pi . log p + c |theta|^2 (Silver et al. 2017, equation 1)."""


def check_loss_terms(terms: Iterable[LossTerm]) -> tuple[LossTerm, ...]:
    """The terms of a loss as a tuple.

    Raises:
      InputError: one is no `LossTerm`.
    """
    terms = (terms,) if isinstance(terms, str) or not isinstance(terms, Iterable) else tuple(terms)
    for term in terms:
        if not isinstance(term, LossTerm):
            raise InputError(f"loss_terms must be a sequence of LossTerm, such as ALPHAZERO_LOSS, got {term!r}")
    return terms


def loss(
    params: PyTree,
    rest: Variables,
    config: Config,
    hyper: Hyper,
    game: AnyGame,
    network: Network,
    key: PRNGKeyArray,
    examples: Examples,
    terms: tuple[LossTerm, ...] = ALPHAZERO_LOSS,
) -> tuple[Float32[Array, ""], tuple[Variables, Metrics]]:
    """The sum of the terms on a batch.

    Args:
      params: the trained collection of the network's variables.
      rest: the other collections.
      config: of the run.
      hyper: of the run.
      game: of the run.
      network: what is trained.
      key: draws the symmetries.
      examples: the batch.
      terms: what is added up, in this order.

    Returns:
      the loss, and (the other collections after the batch, the metrics of all terms).

    Raises:
      InputError: a term needs an auxiliary output that the network does not give.
    """
    turn = functools.partial(random_symmetry if config.symmetries else _as_they_are, game, key)
    states, actions, valid = turn(examples.states)
    outcome = jnp.where(examples.proven, examples.value, examples.outcome)
    targets = Targets(states, actions, valid, examples.policy, value_target(hyper, examples), outcome)
    if config.merge_equal_positions:
        targets = replace_fields(targets, weight=weights_of_merged(game, examples.states, config.symmetries))
    if (following := examples.following) is not None:
        # By the same key, and so under the symmetries of the positions before.
        _, actions, valid = turn(following.reply_states)
        targets = replace_fields(targets, following=following, reply_actions=actions, reply_valid=valid)
    output, new = network.apply({"params": params, **rest}, jax.vmap(game.observe)(states), train=True)
    losses, metrics = zip(*(term(output, targets, params, hyper) for term in terms), strict=True)
    total: Float32[Array, ""] = functools.reduce(operator.add, losses)
    rest = {name: collection for name, collection in new.items() if name != "params"}
    return total, (rest, join_metrics(*metrics))


def join_metrics(*parts: Metrics) -> Metrics:
    """All of these metrics.

    Raises:
      InputError: a name twice, such as a metric of a loss term that the run has too.
    """
    joined: Metrics = {}
    for part in parts:
        for name in part:
            if name in joined:
                raise InputError(f"the metric {name!r} is there already: a loss term must name its own another way")
        joined |= part
    return joined


def random_symmetry(
    game: Game[_S], key: PRNGKeyArray, states: _S
) -> tuple[_S, Int32[Array, "B K"], Bool[Array, "B K"]]:
    """One symmetry of each state, drawn evenly.

    Returns:
      states: the states under their symmetries.
      actions: for each slot of the given state, what its action is under the symmetry.
      valid: whether the slot holds a legal action.
    """
    actions, valid = jax.vmap(game.legal_slots)(states)
    transformed, permutation = jax.vmap(game.symmetries)(states)
    batch, num_symmetries, _ = permutation.shape
    rows = jnp.arange(batch)
    choice = jax.random.randint(key, (batch,), 0, num_symmetries)
    states = jax.tree.map(lambda leaf: leaf[rows, choice], transformed)
    return states, jnp.take_along_axis(permutation[rows, choice], actions, axis=1), valid


def _as_they_are(game: Game[_S], key: PRNGKeyArray, states: _S) -> tuple[_S, Int32[Array, "B K"], Bool[Array, "B K"]]:
    """`random_symmetry` with the identity for all."""
    del key
    return states, *jax.vmap(game.legal_slots)(states)


def value_target(hyper: Hyper, examples: Examples) -> Float32[Array, "B"]:
    """The game's result mixed with the search's value, or the true value where the search proved it."""
    fraction = hyper.root_value_fraction
    mixed = (1 - fraction) * examples.outcome + fraction * examples.value
    return jnp.where(examples.proven, examples.value, mixed)
