"""The laws of `equivariant_mlp`, its number of weights, and the games that it refuses."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.board_symmetries import board_symmetries
from azjax.games.registry import make
from azjax.networks import EquivariantMlp, make_network
from azjax.networks.equivariant_mlp import _Group

GAMES = {
    "tictactoe": make("tictactoe"),
    "connect2": make("connect2"),
    "connect_four": make("connect_four"),
    "santorini 3x3": make("santorini"),
    "brandub": make("brandub"),
    "santorini, two workers": make("santorini", size=3, workers=2),
    "santorini 5x5": make("santorini", size=5, workers=2, placement=True),
}


class Turns(type(GAMES["tictactoe"])):
    """Tic-tac-toe with its four turns alone."""

    def symmetries(self, state):
        states, permutation = super().symmetries(state)
        turns = [
            number
            for number, matrix in enumerate(board_symmetries(GAMES["tictactoe"]).matrices)
            if np.linalg.det(np.reshape(matrix, (2, 2))) > 0
        ]
        return jax.tree.map(lambda leaf: leaf[np.array(turns)], states), permutation[np.array(turns)]


def _positions(game, plies=6, games=16):
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), games))
    for bits in jax.random.bits(jax.random.key(1), (plies, games)):
        states = jax.vmap(game.step)(states, jax.vmap(game.sample_legal_action)(states, bits))
    return states


def _without_zeros(variables):
    """Variables like these, with biases."""
    keys = iter(jax.random.split(jax.random.key(2), 100))
    return jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(next(keys), leaf.shape), variables)


@pytest.mark.slow_except("connect2")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in ("tictactoe", "brandub") else []) for name in GAMES]
)
def test_the_policy_turns_with_the_position_and_the_value_stays(name):
    game = GAMES[name]
    network = EquivariantMlp(32, 3, activation="squared_relu").for_game(game)
    variables = _without_zeros(network.init(jax.random.key(0), game))
    states = _positions(game)
    images, permutation = jax.jit(jax.vmap(game.symmetries))(states)
    apply = jax.jit(lambda observations: network.apply(variables, observations, False)[0])
    plain = apply(jax.vmap(game.observe)(states))
    legal = np.asarray(jax.vmap(game.legal_action_mask)(states))
    for symmetry in range(permutation.shape[1]):
        turned = apply(jax.vmap(game.observe)(jax.tree.map(lambda leaf: leaf[:, symmetry], images)))
        back = np.take_along_axis(np.asarray(turned.prior_logits), np.asarray(permutation[:, symmetry]), axis=1)
        np.testing.assert_allclose(back[legal], plain.prior_logits[legal], rtol=0, atol=1e-5)
        np.testing.assert_allclose(turned.value, plain.value, rtol=0, atol=1e-6)
    assert len(permutation[0]) > 1
    # It tells positions apart, and actions that no symmetry makes equal.
    assert len(np.unique(np.round(np.asarray(plain.value), 6))) > 3
    assert (np.asarray(plain.prior_logits).std(axis=1) > 0.01).all()


def test_a_layer_has_as_many_weights_less_as_there_are_symmetries():
    game = GAMES["santorini 3x3"]
    params = EquivariantMlp(64, 2).init(jax.random.key(0), game)["params"]
    # Nine squares make three orbits: the middle, the corners and the edges.
    assert params["stem"]["kernel_0"].shape == (3 * 7, 8)
    # Four representations of one dimension and one of two: 8 * 8 * 8 weights instead of 64 * 64.
    kernels = {name: leaf.shape for name, leaf in params["block_0"]["first"].items() if name != "bias"}
    assert kernels == {f"kernel_{number}": (8, 8) for number in range(4)} | {"kernel_4": (16, 16)}
    # Of 64 pairs of directions, 8 stay under the reflection that keeps both.
    assert params["policy"]["kernel_0"].shape == (8, 10)
    assert params["value"]["kernel"].shape == (8, 1)


@pytest.mark.parametrize(("activation", "degree"), [("relu", 1), ("squared_relu", 2)])
def test_what_a_block_adds_grows_with_the_power_of_its_activation(activation, degree):
    game = GAMES["connect2"]
    network = EquivariantMlp(8, 1, activation=activation).for_game(game)
    variables = network.init(jax.random.key(0), game)
    states = _positions(game, plies=1)

    def added(factor):
        """The value's logit, with the first layer of the block `factor` times as large, less that without the block."""
        block = variables["params"]["block_0"]
        first = jax.tree.map(lambda leaf: factor * leaf, block["first"])
        params = variables["params"] | {"block_0": block | {"first": first}}
        output, _ = network.apply({**variables, "params": params}, jax.vmap(game.observe)(states), False)
        return np.arctanh(output.value)

    small, large = (added(factor) - added(0.0) for factor in (1e-2, 2e-2))
    np.testing.assert_allclose(large / small, 2.0**degree, rtol=0.02)


@pytest.mark.parametrize("name", GAMES)
def test_the_transform_has_an_inverse_and_keeps_lengths(name):
    group = _Group(board_symmetries(GAMES[name]))
    views = list(jax.random.normal(jax.random.key(0), (group.size, 3, 5)))
    coefficients = group.transform(views)
    assert sum(dimension**2 for dimension in group.dimensions) == group.size
    np.testing.assert_allclose(group.inverse(coefficients), views, rtol=0, atol=1e-6)
    length = sum(float(jnp.sum(each**2)) for each in coefficients)
    assert length == pytest.approx(float(jnp.sum(jnp.array(views) ** 2)), rel=1e-6)
    scaled = jnp.array(group.inverse(group.normalized(coefficients)))
    np.testing.assert_allclose((scaled**2).mean(axis=(0, 2)), np.ones(3), rtol=1e-4)


def test_turns_without_reflections_are_refused():
    with pytest.raises(ValueError, match="the symmetries of tictactoe must be reflections or include them"):
        EquivariantMlp(32, 1).for_game(Turns(**dataclasses.asdict(GAMES["tictactoe"])))


@pytest.mark.parametrize(
    ("name", "options", "width", "message"),
    [
        ("tictactoe", {}, 20, "width must be a multiple of the 8 symmetries of tictactoe"),
    ],
)
def test_what_it_cannot_do_is_refused(name, options, width, message):
    with pytest.raises(ValueError, match=message):
        make_network("equivariant_mlp", make(name, **options), width=width, depth=1)


def test_a_shape_without_rules_is_refused():
    class Shape:
        observation_shape = (3, 3, 2)
        num_actions = 9

    with pytest.raises(ValueError, match="needs a game with symmetries"):
        EquivariantMlp(32, 1).for_game(Shape())
