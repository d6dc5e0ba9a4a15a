import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from azjax.games.registry import make
from azjax.networks import make_network
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.learner import Learner, learning_rate, skipped_batch, update
from azjax.training.loss import loss
from azjax.training.replay import Steps, count_ready, insert, new_replay, sample

GAME = make("tictactoe")
CONFIG = Config(network="mlp", width=16, depth=1, batch_size=32, replay_size=64)
NETWORK = CONFIG.make_network(GAME)


def _replay(reward):
    """Eight games side by side, each with one position that is ready, after X on a1."""
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (1, 8, *leaf.shape)), GAME.from_text("X________"))
    legal = np.array([0, *[1] * 8], np.float32)
    grid = np.ones((1, 8), bool)
    steps = Steps(
        states=states,
        policy=jnp.broadcast_to(jnp.asarray(legal / 8), (1, 8, 9)),
        reward=jnp.full((1, 8), reward, jnp.float32),
        ended=jnp.asarray(grid),
        truncated=jnp.asarray(~grid),
        value=jnp.zeros((1, 8)),
        proven=jnp.asarray(~grid),
        learned=jnp.asarray(grid),
        trace=jnp.ones((1, 8)),
    )
    empty = new_replay(GAME, jax.tree.map(lambda leaf: leaf[0], states), 16)
    return jax.jit(insert, static_argnums=2)(empty, steps, GAME.max_plies)


def _init(hyper, config=CONFIG, network=NETWORK):
    return jax.jit(lambda: Learner.init(config, hyper, network.init(jax.random.key(0), GAME)))()


def _steps(hyper, replay, learner, count, config=CONFIG, network=NETWORK):
    """The learner after each of so many steps, and the metrics."""

    @jax.jit
    def step(learner, key):
        return update(learner, config, hyper, GAME, network, replay, count_ready(replay), key)

    found = []
    for number in range(count):
        learner, metrics = step(learner, jax.random.key(number))
        found.append((learner, metrics))
    return found


def _equal(one, other):
    return jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), one, other))


def test_steps_lower_the_loss_and_leave_the_batch_statistics_of_an_mlp_empty():
    hyper = Hyper(learning_rate=1e-2)
    steps = _steps(hyper, _replay(1.0), _init(hyper), 60)
    losses = [float(metrics["loss"]) for _, metrics in steps]
    assert losses[-1] < losses[0] - 0.3
    assert steps[-1][0].variables["batch_stats"] == {}


def test_a_step_without_options_is_that_of_adam():
    hyper, replay, key = Hyper(learning_rate=1e-2), _replay(1.0), jax.random.key(0)
    start = _init(hyper)

    @jax.jit
    def adams(params):
        sample_key, symmetry_key = jax.random.split(key)
        examples = sample(replay, count_ready(replay), sample_key, CONFIG.batch_size)
        gradient, _ = jax.grad(loss, has_aux=True)(params, {}, CONFIG, hyper, GAME, NETWORK, symmetry_key, examples)
        adam = optax.adam(1e-2)
        updates, _ = adam.update(gradient, adam.init(params))
        return optax.apply_updates(params, updates)

    (after, _), *_ = _steps(hyper, replay, start, 1)
    expected = adams(start.variables["params"])
    for ours, theirs in zip(jax.tree.leaves(after.variables["params"]), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_a_step_whose_gradient_is_not_finite_is_skipped_and_counted_and_its_batch_is_found_again():
    hyper = Hyper(ema_decay=0.5)
    start = _init(hyper)
    bad, good = _replay(math.nan), _replay(1.0)
    (first, metrics), (second, _) = _steps(hyper, bad, start, 2)
    assert float(metrics["skipped_updates"]) == 1
    assert [int(learner.skipped.in_a_row) for learner in (first, second)] == [1, 2]
    for field in ("variables", "ema", "optimizer_state"):
        assert _equal(getattr(second, field), getattr(start, field))
    (after, metrics), *_ = _steps(hyper, good, second, 1)
    assert int(after.skipped.in_a_row) == float(metrics["skipped_updates"]) == 0
    assert not _equal(after.variables, start.variables)
    batch = skipped_batch(second, CONFIG, bad)
    np.testing.assert_array_equal(batch["key"], jax.random.key_data(jax.random.key(1)))
    assert batch["policy"].shape == (32, 9)
    assert np.isnan(batch["outcome"]).all()
    assert "states.current_player" in batch


def test_a_long_gradient_is_scaled_down_before_adam_sees_it():
    """Adam's first moment after one step is a tenth of the gradient."""
    for limit, norm in ((math.inf, None), (1e-3, 1e-3)):
        hyper = Hyper(max_gradient_norm=limit)
        (learner, metrics), *_ = _steps(hyper, _replay(1.0), _init(hyper), 1)
        assert float(metrics["gradient_norm"]) > 0.01
        clipped = 10 * float(optax.tree.norm(learner.optimizer_state[1].mu))
        assert clipped == pytest.approx(norm or float(metrics["gradient_norm"]), rel=1e-4)


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_the_ema_averages_the_weights_after_each_step_with_its_decay(name):
    """Newer weights count 4/3 times as much as those before, and the untrained ones nothing."""
    hyper, config, seen = Hyper(ema_decay=0.75), dataclasses.replace(CONFIG, optimizer=name), []
    for learner, _ in _steps(hyper, _replay(1.0), _init(hyper, config), 3, config):
        seen.append(learner.variables)
        weights = 0.75 ** np.arange(len(seen))[::-1]
        expected = jax.tree.map(lambda *leaves: np.average(leaves, axis=0, weights=weights), *seen)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), learner.ema, expected)


def test_without_a_decay_the_ema_is_the_latest_weights():
    (learner, _), *_ = _steps(Hyper(), _replay(1.0), _init(Hyper()), 1)
    assert _equal(learner.ema, learner.variables)


def test_a_counter_of_the_network_goes_on_and_is_not_averaged():
    class Counting:
        name = "counting"

        def init(self, key, game):
            return {**NETWORK.init(key, game), "counts": {"batches": jnp.int32(0)}}

        def apply(self, variables, observations, *, train):
            output, new = NETWORK.apply({"params": variables["params"]}, observations, train=train)
            return output, {**new, "counts": {"batches": variables["counts"]["batches"] + 1}}

    hyper, network = Hyper(ema_decay=0.75), Counting()
    learner, _ = _steps(hyper, _replay(1.0), _init(hyper, network=network), 3, network=network)[-1]
    for variables in (learner.variables, learner.ema):
        assert variables["counts"]["batches"].dtype == jnp.int32
        assert variables["counts"]["batches"] == 3


def test_the_learning_rate_rises_and_then_falls_along_a_cosine():
    hyper = Hyper(learning_rate=1.0, final_learning_rate=0.2)
    config = dataclasses.replace(CONFIG, warmup_updates=4, decay_updates=8)
    rates = [float(learning_rate(config, hyper, jnp.int32(count))) for count in range(16)]
    np.testing.assert_allclose(rates[:5], [0.25, 0.5, 0.75, 1, 1], rtol=1e-6)
    # Half way down the cosine, 0.2 + 0.8 / 2, and at its end for good.
    assert rates[8] == pytest.approx(0.6)
    np.testing.assert_allclose(rates[12:], 0.2, rtol=1e-6)
    assert rates[4:13] == sorted(rates[4:13], reverse=True)


def test_without_a_schedule_the_learning_rate_stays():
    assert {float(learning_rate(CONFIG, Hyper(learning_rate=0.5), jnp.int32(count))) for count in (0, 7)} == {0.5}


@pytest.mark.slow
def test_networks_of_half_precision_keep_their_weights_in_full():
    config = dataclasses.replace(CONFIG, precision="bfloat16")
    network = make_network("mlp", GAME, width=16, depth=1, precision="bfloat16")
    hyper, replay = Hyper(learning_rate=1e-2), _replay(1.0)
    steps = _steps(hyper, replay, _init(hyper, config, network), 30, config, network)
    first, (learner, metrics) = float(steps[0][1]["loss"]), steps[-1]
    assert {leaf.dtype for leaf in jax.tree.leaves(learner.variables)} == {jnp.dtype(jnp.float32)}
    assert float(metrics["loss"]) < first - 0.3
