import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.game import make
from azjax.networks import Mlp
from azjax.training.config import Hyper
from azjax.training.loss import loss, optimiser, random_symmetry, update
from azjax.training.replay import Examples

GAME = make("tictactoe")


def _examples():
    texts = ["XO_______", "X________", "XO__X____"]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[GAME.from_text(text) for text in texts])
    legal = jax.vmap(GAME.legal_action_mask)(states)
    policy = legal / legal.sum(axis=1, keepdims=True)
    return Examples(states, policy.astype(jnp.float32), jnp.array([1.0, -1.0, 0.0]))


class _Fixed:
    """A network of constant logits and values."""

    def __init__(self, logits, value):
        self.logits, self.value = logits, value

    def apply(self, variables, observations, train):
        batch = len(observations)
        return jnp.tile(self.logits, (batch, 1)), jnp.full(batch, self.value), variables


def test_the_loss_of_a_known_network_is_the_sum_of_its_three_parts():
    """Uniform logits: the policy loss is the mean of log(number of legal moves), whatever the illegal ones say."""
    network = _Fixed(jnp.zeros(9), 0.5)
    params = {"w": jnp.array([1.0, 2.0])}
    hyper = Hyper(l2=0.1)
    total, (_, metrics) = loss(params, {}, hyper, GAME, network, jax.random.key(0), _examples())
    policy_loss = np.mean(np.log([7, 8, 6]))
    value_loss = np.mean([0.25, 2.25, 0.25])
    assert float(metrics["policy_loss"]) == pytest.approx(policy_loss, rel=1e-6)
    assert float(metrics["target_entropy"]) == pytest.approx(policy_loss, rel=1e-6)
    assert float(metrics["value_loss"]) == pytest.approx(value_loss, rel=1e-6)
    assert float(total) == pytest.approx(policy_loss + value_loss + 0.1 * 5, rel=1e-6)


def test_logits_of_illegal_actions_do_not_enter_the_loss():
    examples = jax.tree.map(lambda leaf: leaf[:1], _examples())
    losses = []
    for corner in (0.0, 50.0):
        # XO_______ and its symmetries always hold two stones: raise the logits of all but the empty squares.
        def apply(variables, observations, train, corner=corner):
            occupied = observations.sum(axis=-1).reshape(len(observations), 9)
            return corner * occupied, jnp.zeros(len(observations)), variables

        network = _Fixed(None, None)
        network.apply = apply
        losses.append(float(loss({}, {}, Hyper(), GAME, network, jax.random.key(0), examples)[1][1]["policy_loss"]))
    assert losses[0] == losses[1] == pytest.approx(np.log(7))


def test_a_random_symmetry_moves_the_actions_with_the_board():
    """The square of each slot's action on the turned board is empty exactly where it was before."""
    states = jax.tree.map(lambda leaf: jnp.repeat(leaf, 64, axis=0), _examples().states)
    turned, actions, valid = random_symmetry(GAME, jax.random.key(0), states)
    turned_mask = jax.vmap(GAME.legal_action_mask)(turned)
    np.testing.assert_array_equal(jnp.take_along_axis(turned_mask, actions, axis=1), valid)
    texts = {GAME.to_text(jax.tree.map(lambda leaf: leaf[i], turned)) for i in range(64)}
    assert texts == {
        "XO_______",
        "_OX______",
        "X__O_____",
        "__X__O___",
        "___O__X__",
        "_____O__X",
        "______XO_",
        "_______OX",
    }


def test_updates_lower_the_loss_and_leave_the_batch_statistics_of_an_mlp_empty():
    network = Mlp(16, 1)
    hyper = Hyper(learning_rate=1e-2)
    variables = network.init(jax.random.key(0), GAME)
    optimiser_state = optimiser(hyper).init(variables["params"])
    examples = _examples()
    step = jax.jit(lambda v, o, key: update(v, o, hyper, GAME, network, key, examples))
    losses = []
    for i in range(60):
        variables, optimiser_state, metrics = step(variables, optimiser_state, jax.random.key(i))
        losses.append(float(metrics["loss"]))
    assert losses[-1] < losses[0] - 0.3
    assert variables["batch_stats"] == {}
