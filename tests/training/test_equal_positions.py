import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

from azjax.games.registry import make
from azjax.training.equal_positions import count_equal, weights_of_merged
from azjax.training.loss import loss
from azjax.training.replay import Examples

GAME = make("tictactoe")
START, CORNER, OTHER_CORNER, CENTER = "_________", "X________", "__X______", "____X____"


def states_of(*texts):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(GAME.from_text, texts))


def test_equal_keys_are_counted_where_they_stand():
    high = jnp.array([7, 1, 7, 7, 1, 9], jnp.uint32)
    low = jnp.array([2, 5, 2, 3, 5, 2], jnp.uint32)
    np.testing.assert_array_equal(count_equal(high, low), [2, 2, 2, 1, 2, 1])


@pytest.mark.parametrize(
    ("symmetries", "relative"), [(False, [1 / 2, 1 / 2, 1, 1, 1]), (True, [1 / 2, 1 / 2, 1 / 2, 1 / 2, 1])]
)
def test_different_positions_weigh_the_same(symmetries, relative):
    weights = weights_of_merged(GAME, states_of(START, START, CORNER, OTHER_CORNER, CENTER), symmetries)
    np.testing.assert_allclose(weights, np.array(relative) / np.mean(relative), rtol=1e-6)


@pytest.mark.slow
def test_the_eight_images_of_a_position_of_santorini_weigh_as_much_as_one_other():
    game = make("santorini", size=3, workers=1)
    start = game.init(jax.random.key(0))
    images, _ = game.symmetries(game.step(start, jnp.argmax(game.legal_action_mask(start))))
    batch = jax.tree.map(lambda leaves, leaf: jnp.concatenate([leaves, leaf[None]]), images, start)
    weights = weights_of_merged(game, batch, True)
    np.testing.assert_allclose(weights[:8], weights[8] / 8, rtol=1e-6)


def test_the_gradient_is_that_of_the_mean_target():
    config = SMALL.replace(merge_equal_positions=True, symmetries=False, l2=0.0)
    network = config.make_network(GAME)
    variables = network.init(jax.random.key(0), GAME)
    rest = {name: leaf for name, leaf in variables.items() if name != "params"}
    # The start three times, with the results 1, 1 and -1 and three policies; another position once.
    policies = jax.nn.softmax(jax.random.normal(jax.random.key(1), (4, 9)), axis=1)
    policies = policies.at[3].set(jnp.where(GAME.legal_action_mask(GAME.from_text(CENTER)), policies[3], 0.0))
    outcomes, false = jnp.array([1.0, 1.0, -1.0, 0.0]), jnp.zeros(4, bool)
    given = Examples(states_of(START, START, START, CENTER), policies, outcomes, outcomes, false)
    mean_policy, mean_outcome = jnp.mean(policies[:3], axis=0), jnp.mean(outcomes[:3])
    merged = Examples(
        states_of(START, CENTER),
        jnp.stack([mean_policy, policies[3]]),
        jnp.stack([mean_outcome, outcomes[3]]),
        jnp.stack([mean_outcome, outcomes[3]]),
        false[:2],
    )

    def gradient(examples):
        def total(params):
            key = jax.random.key(2)
            return loss(params, rest, config, config.hyper, GAME, network, key, examples)[0]

        return jax.jit(jax.grad(total))(variables["params"])

    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6),
        gradient(given),
        gradient(merged),
    )
