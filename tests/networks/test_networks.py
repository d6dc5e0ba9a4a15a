import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax import networks
from azjax.core.errors import InputError
from azjax.games.registry import make
from azjax.networks import (
    AxialNet,
    BoardNet,
    Mlp,
    Network,
    NetworkOutput,
    NnxNetwork,
    Resnet,
    SeResnet,
    make_network,
    summarize,
)

GAME = make("tictactoe")
NETWORKS = [each.for_game(GAME) for each in (Mlp(16, 2), Resnet(8, 1), SeResnet(8, 1), BoardNet(8, 1), AxialNet(8, 1))]


@pytest.fixture(params=NETWORKS, ids=lambda network: type(network).__name__, scope="module")
def network(request):
    return request.param


@pytest.fixture(scope="module")
def observations():
    return jax.random.uniform(jax.random.key(1), (6, *GAME.observation_shape))


@pytest.fixture(scope="module")
def variables(network):
    return network.init(jax.random.key(0), GAME)


@pytest.fixture(scope="module")
def evaluate(network, variables):
    return jax.jit(lambda observations: network.apply(variables, observations, train=False)[0])


def test_apply_returns_logits_by_action_and_a_value_within_one(network, evaluate, observations):
    output = evaluate(100 * observations)
    assert isinstance(network, Network)
    assert output.prior_logits.shape == (6, 9)
    assert output.value.shape == (6,)
    assert bool(jnp.all(jnp.abs(output.value) <= 1))
    assert bool(output.auxiliary) == isinstance(network, BoardNet | AxialNet)


def test_the_same_key_gives_the_same_variables_and_another_key_others(network, variables):
    again, other = (network.init(jax.random.key(seed), GAME) for seed in (0, 1))
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), variables, again))
    kernels = [jax.tree.leaves(each["params"]["policy"])[-1] for each in (variables, other)]
    assert not np.array_equal(*kernels)


def test_rows_do_not_depend_on_each_other_when_not_training(evaluate, observations):
    together = evaluate(observations).prior_logits
    among_others = evaluate(jnp.zeros_like(observations).at[2].set(observations[2])).prior_logits
    np.testing.assert_allclose(among_others[2], together[2], atol=1e-5)
    assert not np.allclose(among_others[3], together[3], atol=1e-3)


def test_only_training_moves_the_running_averages_of_the_resnet(observations):
    network = NETWORKS[1]
    variables = network.init(jax.random.key(0), GAME)
    new_variables = jax.jit(lambda train: network.apply(variables, observations, train)[1], static_argnums=0)
    at_play, trained = new_variables(False), new_variables(True)

    def mean(variables):
        return np.asarray(variables["batch_stats"]["stem"]["norm"]["mean"])

    assert np.array_equal(mean(at_play), mean(variables))
    assert not np.array_equal(mean(trained), mean(variables))
    assert mean(variables).any() == False  # noqa: E712 - numpy


@pytest.mark.parametrize(
    "network",
    [*NETWORKS[:2], *(pytest.param(each, marks=pytest.mark.slow) for each in NETWORKS[2:])],
    ids=lambda network: type(network).__name__,
    indirect=True,
)
def test_gradients_flow_through_apply_inside_a_scan(network, variables, observations):
    def loss(params, batch_stats):
        output, new = network.apply({"params": params, "batch_stats": batch_stats}, observations, train=True)
        return jnp.sum(output.prior_logits**2) + jnp.sum(output.value**2), new["batch_stats"]

    def step(carry, _):
        params, stats = carry
        gradient, stats = jax.grad(loss, has_aux=True)(params, stats)
        return (jax.tree.map(lambda p, g: p - 1e-3 * g, params, gradient), stats), loss(params, stats)[0]

    _, losses = jax.jit(lambda carry: jax.lax.scan(step, carry, None, length=20))(
        (variables["params"], variables["batch_stats"])
    )
    assert losses[-1] < losses[0]


def test_equal_networks_are_one_network_to_jit(observations):
    traces = []

    def evaluate(variables, network):
        traces.append(1)
        return network.apply(variables, observations, train=False)[0].value

    evaluate_jit = jax.jit(evaluate, static_argnames="network")
    variables = Mlp(16, 2).for_game(GAME).init(jax.random.key(0), GAME)
    evaluate_jit(variables, network=Mlp(16, 2).for_game(GAME))
    evaluate_jit(variables, network=Mlp(16, 2).for_game(GAME))
    assert len(traces) == 1


def test_the_summary_counts_the_parameters_of_an_mlp():
    # 18 inputs, two hidden layers of 16, nine actions and one value.
    parameters = (18 + 1) * 16 + (16 + 1) * 16 + (16 + 1) * 9 + (16 + 1)
    assert f"{parameters:,} parameters" in summarize(Mlp(16, 2).for_game(GAME), GAME)


def test_an_unknown_network_names_the_known_ones():
    with pytest.raises(
        ValueError, match=r"unknown network 'cnn'; available: axial, board, equivariant_mlp, mlp, resnet, se_resnet"
    ):
        make_network("cnn", GAME, width=8, depth=1)


class Unhashable:
    __hash__ = None

    def init(self, key, game):
        return {}

    def apply(self, variables, observations, train):
        return None


class Fives:
    def __init__(self, width=3):
        raise ValueError(f"width must be a multiple of 5,\ngot {width}")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (Unhashable, "^a network must be hashable, as a frozen dataclass is: unhashable type: 'Unhashable'$"),
        (Fives, "^network of_tests: making it raises ValueError: width must be a multiple of 5, got 8$"),
    ],
)
def test_what_the_name_of_an_own_network_makes_is_checked(made, message, monkeypatch):
    monkeypatch.setattr("azjax.networks._factory", lambda name: made)
    with pytest.raises(InputError, match=message):
        make_network("of_tests", GAME, width=8, depth=1)


def test_a_network_without_layers_is_refused():
    with pytest.raises(ValueError, match="depth must be a whole number of at least 1, got 0"):
        make_network("mlp", GAME, width=8, depth=0)


def test_a_resnet_needs_a_board():
    class Flat:
        observation_shape = (4,)
        num_actions = 2

    with pytest.raises(
        ValueError, match=r"resnet needs observations .* got shape \(4,\); --network mlp takes any shape"
    ):
        make_network("resnet", Flat(), width=8, depth=1).init(jax.random.key(0), Flat())


def test_a_network_does_not_start_on_a_game_of_other_shapes():
    with pytest.raises(InputError, match=r"built for observations \(3, 3, 2\) and 9 actions, got a game with"):
        Mlp().for_game(GAME).init(jax.random.key(0), make("connect2"))


class ConvolutionalPolicy(NnxNetwork):
    """A network without a layer named `policy`, without biases and without batch statistics."""

    def module(self, rngs):
        return _Convolutional(rngs)


class _Convolutional(nnx.Module):
    def __init__(self, rngs):
        self.squares = nnx.Conv(2, 1, (3, 3), use_bias=False, rngs=rngs)

    def __call__(self, observations, train):
        squares = self.squares(observations).reshape(len(observations), -1)
        return NetworkOutput(squares, jnp.tanh(squares.mean(axis=1)), {"squares": squares})


def test_no_layer_needs_a_certain_name_or_a_bias_and_outputs_may_be_added(observations):
    network = ConvolutionalPolicy().for_game(GAME)
    variables = network.init(jax.random.key(0), GAME)
    assert jax.tree.map(jnp.shape, variables) == {"params": {"squares": {"kernel": (3, 3, 2, 1)}}, "batch_stats": {}}
    output, new_variables = network.apply(variables, observations, train=True)
    assert output.prior_logits.shape == output.auxiliary["squares"].shape == (6, 9)
    jax.tree.map(np.testing.assert_array_equal, new_variables, variables)


def test_a_registered_network_is_made_by_its_name(monkeypatch):
    monkeypatch.setattr(networks.NETWORKS, "_entries", dict(networks.NETWORKS._entries))
    networks.register("convolutional")(ConvolutionalPolicy)
    assert make_network("convolutional", GAME, width=1, depth=1) == ConvolutionalPolicy().for_game(GAME)


def test_a_registered_network_gets_the_settings_that_it_has(monkeypatch):
    monkeypatch.setattr(networks.NETWORKS, "_entries", dict(networks.NETWORKS._entries))
    networks.register("shallow")(lambda width: Mlp(width, 1))
    assert make_network("shallow", GAME, width=5, depth=7) == Mlp(5, 1).for_game(GAME)


def test_a_network_without_a_game_is_not_applied(observations):
    with pytest.raises(InputError, match=r"Mlp\(width=8, .*\) has no game; `for_game\(game\)` gives it one"):
        Mlp(8).apply({}, observations, train=False)
