"""Terms that a loss may add (`Config.auxiliary_losses`): further things to learn from the games that were played.

Each reads an output of its own (`NetworkOutput.auxiliary`). The search uses none of them but `value_error`, with
`Config.uncertainty_weighting`; what the layers before them learn helps policy and value. The network `board` has all of
these outputs.

Axis letters: `B` batch, `K` slots of legal actions, `A` actions, `W` plies that are looked ahead, `H` horizons.
"""

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float32, PyTree

from azjax.core.errors import InputError
from azjax.networks import NetworkOutput
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.loss import LossTerm, Metrics, Targets, cross_entropy, logits_of_slots
from azjax.training.replay import WINDOW, Following

HORIZONS = (2, 6, 16)
"""H: plies. Those of KataGo are 6, 16 and 50 on 19x19, whose games are longer."""

_VALUE_ERROR_HORIZON = 1  # of `HORIZONS`
_VALUE_ERROR_WEIGHT = 0.5
_PLIES_LEFT_WEIGHT = 0.05  # its cross-entropy begins at log 32 = 3.5
_SHORT_TERM_WEIGHT = 0.5
_SOFT_POLICY_WEIGHT = 8.0
_SOFT_POLICY_TEMPERATURE = 4.0
_OPPONENT_POLICY_WEIGHT = 0.15


def outcome_loss(
    output: NetworkOutput, targets: Targets, params: PyTree, hyper: Hyper
) -> tuple[Float32[Array, ""], Metrics]:
    """Cross-entropy between `outcome_logits` [B, 3] (loss, draw, win) and the result of the game.

    As in Leela Chess Zero's win, draw and loss head. The result of a truncated game, and every result with
    `Hyper.td_lambda` below 1 or `trace_cut`, is a value v between: it counts as |v| of a win or a loss and the rest of
    a draw, also in games that have none.
    """
    shares = jnp.stack([-targets.outcome, 1 - jnp.abs(targets.outcome), targets.outcome], axis=1)
    loss = targets.mean(optax.softmax_cross_entropy(_read(output, "outcome_logits", 3), jnp.maximum(shares, 0.0)))
    return loss, {"outcome_loss": loss}


def plies_left_loss(
    output: NetworkOutput, targets: Targets, params: PyTree, hyper: Hyper
) -> tuple[Float32[Array, ""], Metrics]:
    """Cross-entropy between `plies_left_logits` [B, W] and how many plies were left: 1, 2, ..., W and more.

    As in the moves left head of Leela Chess Zero, by classes.
    """
    left = _following(targets).plies_left - 1
    logits = _read(output, "plies_left_logits", WINDOW)
    loss = targets.mean(optax.softmax_cross_entropy_with_integer_labels(logits, left))
    return _PLIES_LEFT_WEIGHT * loss, {"plies_left_loss": loss}


def short_term_loss(
    output: NetworkOutput, targets: Targets, params: PyTree, hyper: Hyper
) -> tuple[Float32[Array, ""], Metrics]:
    """Squared error of `short_term_values` [B, H] against exponential averages of the values of the next plies.

    See `short_term_targets`. KataGo, docs/KataGoMethods.md, "Short-term Value and Score Targets".
    """
    errors = _read(output, "short_term_values", len(HORIZONS)) - short_term_targets(_following(targets).values)
    loss = targets.mean(jnp.mean(errors**2, axis=1))
    return _SHORT_TERM_WEIGHT * loss, {"short_term_loss": loss}


def short_term_targets(values: Float32[Array, "B W"]) -> Float32[Array, "B H"]:
    """Averages of the values with weights that fall by h / (h + 1) each ply, for each horizon h.

    The mean delay of such weights is h plies. What lies behind the last value has its weight.
    """
    decay = jnp.array([horizon / (horizon + 1) for horizon in HORIZONS])[None]
    ply = jnp.arange(WINDOW)[:, None]
    weights = jnp.where(ply < WINDOW - 1, 1 - decay, 1.0) * decay**ply
    return values @ weights


def value_error_loss(
    output: NetworkOutput, targets: Targets, params: PyTree, hyper: Hyper
) -> tuple[Float32[Array, ""], Metrics]:
    """Squared error of the square of `value_error` [B] against that of the value's difference from a short-term target.

    So `value_error` learns the root of the mean squared error. The target is that of the second horizon, and nothing
    is learned through the value. KataGo, docs/KataGoMethods.md, "Uncertainty-Weighted MCTS Playouts".
    """
    short_term = short_term_targets(_following(targets).values)[:, _VALUE_ERROR_HORIZON]
    error = jax.lax.stop_gradient(output.value) - short_term
    loss = targets.mean((_read(output, "value_error") ** 2 - error**2) ** 2)
    return _VALUE_ERROR_WEIGHT * loss, {"value_error_loss": loss}


def soft_policy_loss(
    output: NetworkOutput, targets: Targets, params: PyTree, hyper: Hyper
) -> tuple[Float32[Array, ""], Metrics]:
    """Cross-entropy between `soft_policy_logits` [B, A] and the policy target at temperature 4.

    KataGo, docs/KataGoMethods.md, "Auxiliary Soft Policy Target", with the weight 8.
    """
    softened = jnp.where(targets.policy > 0, targets.policy, 0.0) ** (1 / _SOFT_POLICY_TEMPERATURE)
    softened = softened / jnp.sum(softened, axis=1, keepdims=True)
    logits = _read(output, "soft_policy_logits", *output.prior_logits.shape[1:])
    logits = logits_of_slots(logits, targets.actions, targets.valid)
    loss = targets.mean(cross_entropy(softened, logits))
    return _SOFT_POLICY_WEIGHT * loss, {"soft_policy_loss": loss}


def opponent_policy_loss(
    output: NetworkOutput, targets: Targets, params: PyTree, hyper: Hyper
) -> tuple[Float32[Array, ""], Metrics]:
    """Cross-entropy between `opponent_policy_logits` [B, A] and the search's policy after the move that was played.

    Wu 2019, section 3.4, with the weight 0.15. The last positions of games have no reply, and one that a fast search
    chose is not learned from.
    """
    following = _following(targets)
    assert targets.reply_actions is not None
    assert targets.reply_valid is not None
    logits = _read(output, "opponent_policy_logits", *output.prior_logits.shape[1:])
    logits = logits_of_slots(logits, targets.reply_actions, targets.reply_valid)
    # Without a reply the row is of another game, or empty: without legal actions the gradient would be NaN.
    logits = jnp.where(following.has_reply[:, None], logits, 0.0)
    policy = jnp.where(following.has_reply[:, None], following.reply_policy, 0.0)
    loss = targets.mean(cross_entropy(policy, logits))
    return _OPPONENT_POLICY_WEIGHT * loss, {"opponent_policy_loss": loss}


def _read(output: NetworkOutput, name: str, *sizes: int) -> Float32[Array, "B *sizes"]:
    """An auxiliary output, which another shape would broadcast to wrong targets."""
    leaf = output.auxiliary[name]
    if leaf.shape[1:] != sizes:
        expected, got = (", ".join(map(str, ("B", *shape))) for shape in (sizes, leaf.shape[1:]))
        raise InputError(f"the auxiliary output {name!r} must have the shape [{expected}], got [{got}]")
    return leaf


def _following(targets: Targets) -> Following:
    assert targets.following is not None
    return targets.following


_TERMS = {
    "outcome": LossTerm("outcome", outcome_loss, auxiliary=("outcome_logits",)),
    "plies_left": LossTerm("plies_left", plies_left_loss, auxiliary=("plies_left_logits",), following=True),
    "short_term": LossTerm("short_term", short_term_loss, auxiliary=("short_term_values",), following=True),
    "value_error": LossTerm("value_error", value_error_loss, auxiliary=("value_error",), following=True),
    "soft_policy": LossTerm("soft_policy", soft_policy_loss, auxiliary=("soft_policy_logits",)),
    "opponent_policy": LossTerm(
        "opponent_policy", opponent_policy_loss, auxiliary=("opponent_policy_logits",), following=True
    ),
}


def auxiliary_terms(config: Config) -> tuple[LossTerm, ...]:
    """The terms that the configuration names."""
    return tuple(_TERMS[name] for name in config.auxiliary_losses)
