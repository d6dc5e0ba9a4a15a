import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

from azjax.core.errors import InputError
from azjax.games.registry import make
from azjax.networks import NetworkOutput
from azjax.training import Config, init, make_iteration
from azjax.training.auxiliary_losses import auxiliary_terms, short_term_targets
from azjax.training.config import AUXILIARY_LOSSES
from azjax.training.hyper import Hyper
from azjax.training.loss import loss
from azjax.training.replay import WINDOW, Examples, Following

GAME = make("tictactoe")
TEXTS = ["XO_______", "X________"]
REPLIES = ["XOX______", "XO_______"]


def states_of(texts):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(GAME.from_text, texts))


def uniform(states):
    legal = jax.vmap(GAME.legal_action_mask)(states)
    return (legal / legal.sum(axis=1, keepdims=True)).astype(jnp.float32)


@pytest.fixture
def examples():
    """Two positions: one is won in 3 plies, one is a draw in 40 plies and has no reply."""
    states, replies = states_of(TEXTS), states_of(REPLIES)
    values = jnp.tile(jnp.array([[1.0], [0.0]]), WINDOW)
    following = Following(values, jnp.array([3, WINDOW]), jnp.array([True, False]), replies, uniform(replies))
    outcome = jnp.array([1.0, 0.0])
    return Examples(states, uniform(states), outcome, outcome, jnp.array([False, False]), following)


class Fixed:
    """A network that says the same of every position."""

    def __init__(self, **auxiliary):
        self.auxiliary = auxiliary

    def init(self, key, game):
        return {"params": {}}

    def apply(self, variables, observations, train):
        batch = len(observations)
        auxiliary = {name: jnp.broadcast_to(row, (batch, *row.shape)) for name, row in self.auxiliary.items()}
        return NetworkOutput(jnp.zeros((batch, 9)), jnp.zeros(batch), auxiliary), variables


def loss_of(name, examples, network, symmetries=True):
    """The term alone: with its weight, and as it is logged."""
    config = Config(auxiliary_losses=(name,), symmetries=symmetries)
    terms = auxiliary_terms(config)
    total, (_, metrics) = jax.jit(
        lambda: loss({}, {}, config, Hyper(), GAME, network, jax.random.key(0), examples, terms)
    )()
    return float(total), float(metrics[f"{name}_loss"])


def test_every_name_has_a_term():
    assert tuple(term.name for term in auxiliary_terms(Config(auxiliary_losses=AUXILIARY_LOSSES))) == AUXILIARY_LOSSES


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        (("outcomes",), "unknown auxiliary loss 'outcomes'; available: outcome, plies_left, short_term, value_error, "),
        (("outcome", "outcome"), "auxiliary_losses: each once, got outcome, outcome"),
    ],
)
def test_names_that_are_unknown_or_repeated_are_refused(losses, message):
    with pytest.raises(ValueError, match=message):
        Config(auxiliary_losses=losses)


def test_the_outcome_is_one_of_three_classes(examples):
    """A third for each is log 3; probabilities 1/4, 1/4, 1/2 of loss, draw, win are log 2 and log 4."""
    assert loss_of("outcome", examples, Fixed(outcome_logits=jnp.zeros(3)))[1] == pytest.approx(np.log(3))
    skewed = jnp.log(jnp.array([0.25, 0.25, 0.5]))
    assert loss_of("outcome", examples, Fixed(outcome_logits=skewed))[1] == pytest.approx(np.log(8) / 2)


def test_a_proven_value_is_the_outcome_and_a_value_between_is_a_share(examples):
    """The draw is proven to be lost, and the win is half a win after truncation: loss 0, draw 1/2, win 1/2."""
    proven = dataclasses.replace(
        examples,
        outcome=jnp.array([0.5, 0.0]),
        value=jnp.array([0.0, -1.0]),
        proven=jnp.array([False, True]),
    )
    skewed = jnp.log(jnp.array([0.25, 0.25, 0.5]))
    expected = ((np.log(4) + np.log(2)) / 2 + np.log(4)) / 2
    assert loss_of("outcome", proven, Fixed(outcome_logits=skewed))[1] == pytest.approx(expected)


def test_plies_left_are_classes_from_1_to_the_window_and_more(examples):
    """Certain of 3 plies: nothing is lost in the first position and all in the second."""
    logits = jnp.where(jnp.arange(WINDOW) == 2, 10.0, 0.0)
    lost = np.log(np.exp(10) + WINDOW - 1)
    total, logged = loss_of("plies_left", examples, Fixed(plies_left_logits=logits))
    assert logged == pytest.approx((lost - 10 + lost) / 2)
    assert total == pytest.approx(0.05 * logged)


def test_short_term_targets_are_averages_whose_delays_are_the_horizons():
    """The mean delay is found from values that grow by 1 each ply; the window cuts off a part of the longest."""
    values = jnp.arange(WINDOW, dtype=jnp.float32)[None]
    means = np.asarray(short_term_targets(values))[0]
    expected = [sum((h / (h + 1)) ** k for k in range(1, WINDOW)) for h in (2, 6, 16)]  # E[K] = sum of P(K >= k)
    np.testing.assert_allclose(means, expected, rtol=1e-5)
    np.testing.assert_allclose(means[:2], [2, 6], atol=0.1)
    np.testing.assert_allclose(short_term_targets(jnp.ones((1, WINDOW))), np.ones((1, 3)), rtol=1e-5)


def test_short_term_values_are_compared_with_their_targets(examples):
    total, logged = loss_of("short_term", examples, Fixed(short_term_values=jnp.zeros(3)))
    assert logged == pytest.approx(0.5)  # targets 1, 1, 1 and 0, 0, 0
    assert total == pytest.approx(0.25)


def test_the_error_of_the_value_is_the_root_of_its_mean_square(examples):
    """The short-term targets are 1 and 0 and the value is 0, so the squared errors are 1 and 0, half on average."""
    for expected, lost in ((0.5**0.5, 0.25), (1.0, 0.5), (0.0, 0.5)):
        total, logged = loss_of("value_error", examples, Fixed(value_error=jnp.float32(expected)))
        assert logged == pytest.approx(lost, rel=1e-5)
        assert total == pytest.approx(0.5 * logged)


def test_the_value_does_not_learn_from_its_expected_error(examples):
    class Value(Fixed):
        def apply(self, variables, observations, train):
            output, rest = super().apply(variables, observations, train)
            value = jnp.full_like(output.value, variables["params"]["value"])
            return NetworkOutput(output.prior_logits, value, output.auxiliary), rest

    network, (term,) = Value(value_error=jnp.float32(0.3)), auxiliary_terms(Config(auxiliary_losses=("value_error",)))

    def of_value(value):
        config, key = Config(symmetries=False), jax.random.key(0)
        return loss({"value": value}, {}, config, Hyper(), GAME, network, key, examples, (term,))[0]

    assert float(of_value(jnp.float32(0.2))) != float(of_value(jnp.float32(0.4)))
    assert float(jax.grad(of_value)(jnp.float32(0.2))) == 0


def test_uncertainty_weighting_needs_the_errors_to_be_learned_and_a_rule_that_counts_by_them():
    with pytest.raises(ValueError, match="uncertainty_weighting needs the auxiliary loss value_error"):
        Config(uncertainty_weighting=True)
    weighted = Config(auxiliary_losses=("value_error",), uncertainty_weighting=True)
    with pytest.raises(ValueError, match="needs the selection puct, got variance_scaled"):
        weighted.replace(selection="variance_scaled")
    with pytest.raises(ValueError, match="forced_playouts count visits: they go without uncertainty_weighting"):
        weighted.replace(forced_playouts=2.0)


def test_the_soft_policy_is_the_fourth_root_of_the_target(examples):
    """Of 1/17 and 16/17 it is 1/3 and 2/3."""
    target = jnp.zeros((2, 9)).at[:, 3].set(1 / 17).at[:, 4].set(16 / 17)
    examples = dataclasses.replace(examples, policy=target)
    logits = jnp.full(9, -1e9).at[3].set(jnp.log(0.25)).at[4].set(jnp.log(0.75))
    total, logged = loss_of("soft_policy", examples, Fixed(soft_policy_logits=logits), symmetries=False)
    assert logged == pytest.approx(np.log(4) / 3 + 2 / 3 * np.log(4 / 3), rel=1e-5)
    assert total == pytest.approx(8 * logged)


def test_the_opponents_policy_is_that_after_the_move_where_there_is_one(examples):
    """Six legal replies with equal logits in the first position; none in the second, which ends the game."""
    total, logged = loss_of("opponent_policy", examples, Fixed(opponent_policy_logits=jnp.zeros(9)))
    assert logged == pytest.approx(np.log(6) / 2)
    assert total == pytest.approx(0.15 * logged)


@pytest.mark.slow
def test_the_reply_has_the_symmetry_of_its_position():
    """The reply is the square opposite to the move before. A network that sees the turned board can say where."""
    texts = ["X________", "__X______", "______X__", "________X"] * 16
    opposite = jnp.array([8, 6, 2, 0] * 16)
    states = states_of(texts)
    replies = states_of(["X_O______", "O_X______", "O_____X__", "O_______X"] * 16)
    following = Following(
        jnp.zeros((64, WINDOW)), jnp.ones(64, jnp.int32), jnp.ones(64, bool), replies, jax.nn.one_hot(opposite, 9)
    )
    zeros = jnp.zeros(64)
    examples = Examples(states, uniform(states), zeros, zeros, zeros > 0, following)

    class Opposite(Fixed):
        def apply(self, variables, observations, train):
            corner = observations.sum(axis=-1).reshape(-1, 9)
            logits = jnp.where(corner[:, ::-1] > 0, 20.0, 0.0)
            return NetworkOutput(jnp.zeros((64, 9)), zeros, {"opponent_policy_logits": logits}), variables

    assert loss_of("opponent_policy", examples, Opposite())[1] < 1e-6


def test_a_network_without_the_output_is_refused(examples):
    with pytest.raises(ValueError, match="the loss term 'outcome' needs the auxiliary output 'outcome_logits'"):
        loss_of("outcome", examples, Fixed())


@pytest.mark.parametrize(
    ("loss", "name", "shape", "expected"),
    [
        ("outcome", "outcome_logits", (2,), "3"),
        ("plies_left", "plies_left_logits", (16,), "32"),
        ("short_term", "short_term_values", (1,), "3"),
        ("value_error", "value_error", (1,), ""),
        ("soft_policy", "soft_policy_logits", (8,), "9"),
        ("opponent_policy", "opponent_policy_logits", (9, 1), "9"),
    ],
)
def test_an_output_of_another_shape_is_refused(examples, loss, name, shape, expected):
    got, wanted = ", ".join(map(str, ("B", *shape))), ", ".join(filter(None, ("B", expected)))
    with pytest.raises(InputError, match=re.escape(f"{name!r} must have the shape [{wanted}], got [{got}]")):
        loss_of(loss, examples, Fixed(**{name: jnp.zeros(shape)}))


@pytest.mark.slow
def test_the_network_board_learns_from_all_of_them():
    config = SMALL.replace(network="board", width=4, auxiliary_losses=AUXILIARY_LOSSES, steps_per_iteration=8)
    game, hyper = make("connect2"), jax.tree.map(jnp.float32, config.hyper)
    state = jax.jit(lambda: init(game, config, 0, hyper))()
    state, metrics = jax.jit(make_iteration(game, config))(state, hyper)
    logged = {name: float(metrics[f"{name}_loss"]) for name in AUXILIARY_LOSSES}
    assert all(np.isfinite(each) and each > 0 for each in logged.values()), logged
    weighted = {**logged, "plies_left": 0.05 * logged["plies_left"], "short_term": 0.5 * logged["short_term"]}
    weighted |= {"value_error": 0.5 * logged["value_error"]}
    weighted |= {"soft_policy": 8 * logged["soft_policy"], "opponent_policy": 0.15 * logged["opponent_policy"]}
    others = float(metrics["value_loss"] + metrics["policy_loss"])
    assert float(metrics["loss"]) == pytest.approx(others + sum(weighted.values()), rel=0.02)  # and l2
