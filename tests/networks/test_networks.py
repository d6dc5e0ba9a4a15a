import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.registry import make
from azjax.networks import Mlp, Resnet, SeResnet, make_network

NETWORKS = [Mlp(width=16, depth=2), Resnet(width=8, depth=1), SeResnet(width=8, depth=1)]


@pytest.fixture(params=NETWORKS, ids=lambda network: type(network).__name__, scope="module")
def network(request):
    return request.param


@pytest.fixture(scope="module")
def game():
    return make("tictactoe")


@pytest.fixture(scope="module")
def observations(game):
    return jax.random.uniform(jax.random.key(1), (6, *game.observation_shape))


@pytest.fixture(scope="module")
def variables(network, game):
    return network.init(jax.random.key(0), game)


@pytest.fixture(scope="module")
def judge(network, variables):
    return jax.jit(lambda observations: network.apply(variables, observations, train=False)[:2])


def test_apply_returns_logits_by_action_and_a_value_within_one(judge, observations):
    prior_logits, value = judge(100 * observations)
    assert prior_logits.shape == (6, 9)
    assert value.shape == (6,)
    assert bool(jnp.all(jnp.abs(value) <= 1))


def test_the_same_key_gives_the_same_variables_and_another_key_others(network, game, variables):
    again, other = (network.init(jax.random.key(seed), game) for seed in (0, 1))
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), variables, again))
    assert not np.array_equal(variables["params"]["policy"]["kernel"], other["params"]["policy"]["kernel"])


def test_rows_are_judged_alone_when_not_training(judge, observations):
    together, _ = judge(observations)
    among_others, _ = judge(jnp.zeros_like(observations).at[2].set(observations[2]))
    np.testing.assert_allclose(among_others[2], together[2], atol=1e-5)
    assert not np.allclose(among_others[3], together[3], atol=1e-3)


def test_only_training_moves_the_running_averages_of_the_resnet(game, observations):
    network = Resnet(width=8, depth=1)
    variables = network.init(jax.random.key(0), game)
    judge = jax.jit(lambda train: network.apply(variables, observations, train)[2], static_argnums=0)
    at_play, trained = judge(False), judge(True)

    def mean(variables):
        return np.asarray(variables["batch_stats"]["stem"]["norm"]["mean"])

    assert np.array_equal(mean(at_play), mean(variables))
    assert not np.array_equal(mean(trained), mean(variables))
    assert mean(variables).any() == False  # noqa: E712 - numpy


@pytest.mark.parametrize(
    "network",
    [*NETWORKS[:2], pytest.param(NETWORKS[2], marks=pytest.mark.slow)],
    ids=lambda network: type(network).__name__,
    indirect=True,
)
def test_gradients_flow_through_apply_inside_a_scan(network, variables, observations):
    def loss(params, batch_stats):
        logits, value, new = network.apply({"params": params, "batch_stats": batch_stats}, observations, train=True)
        return jnp.sum(logits**2) + jnp.sum(value**2), new["batch_stats"]

    def step(carry, _):
        params, stats = carry
        gradient, stats = jax.grad(loss, has_aux=True)(params, stats)
        return (jax.tree.map(lambda p, g: p - 1e-3 * g, params, gradient), stats), loss(params, stats)[0]

    _, losses = jax.jit(lambda carry: jax.lax.scan(step, carry, None, length=20))(
        (variables["params"], variables["batch_stats"])
    )
    assert losses[-1] < losses[0]


def test_equal_networks_are_one_network_to_jit(game, observations):
    traces = []

    def judge(variables, network):
        traces.append(1)
        return network.apply(variables, observations, train=False)[1]

    judge_jit = jax.jit(judge, static_argnames="network")
    variables = Mlp(16, 2).init(jax.random.key(0), game)
    judge_jit(variables, network=Mlp(16, 2))
    judge_jit(variables, network=Mlp(16, 2))
    assert len(traces) == 1


def test_the_summary_counts_the_parameters_of_an_mlp(game):
    # 18 inputs, two hidden layers of 16, nine actions and one value.
    parameters = (18 + 1) * 16 + (16 + 1) * 16 + (16 + 1) * 9 + (16 + 1)
    assert f"{parameters:,} parameters" in Mlp(16, 2).summary(game)


def test_an_unknown_network_names_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown network 'cnn'; available: mlp, resnet, se_resnet"):
        make_network("cnn", width=8, depth=1)


def test_a_network_without_layers_is_refused():
    with pytest.raises(ValueError, match="depth must be at least 1, got 0"):
        make_network("mlp", width=8, depth=0)


def test_a_resnet_needs_a_board():
    class Flat:
        observation_shape = (4,)
        num_actions = 2

    with pytest.raises(ValueError, match=r"resnet needs observations .* got shape \(4,\)"):
        Resnet().init(jax.random.key(0), Flat())
