"""The laws of `equivariant_mlp`, its number of weights, and the games that it refuses."""

import jax
import numpy as np
import pytest

from azjax.games.registry import make
from azjax.networks import EquivariantMlp, make_network

GAMES = {
    "tictactoe": make("tictactoe"),
    "connect2": make("connect2"),
    "connect_four": make("connect_four"),
    "santorini 3x3": make("santorini"),
    "brandub": make("brandub"),
}


def _positions(game, plies=6, games=16):
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), games))
    for bits in jax.random.bits(jax.random.key(1), (plies, games)):
        states = jax.vmap(game.step)(states, jax.vmap(game.sample_legal_action)(states, bits))
    return states


def _without_zeros(variables):
    """Variables like these, with biases."""
    keys = iter(jax.random.split(jax.random.key(2), 100))
    return jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(next(keys), leaf.shape), variables)


@pytest.mark.parametrize("name", GAMES)
def test_the_policy_turns_with_the_position_and_the_value_stays(name):
    game = GAMES[name]
    network = EquivariantMlp(32, 3).for_game(game)
    variables = _without_zeros(network.init(jax.random.key(0), game))
    states = _positions(game)
    images, permutation = jax.jit(jax.vmap(game.symmetries))(states)
    apply = jax.jit(lambda observations: network.apply(variables, observations, False)[0])
    plain = apply(jax.vmap(game.observe)(states))
    for symmetry in range(permutation.shape[1]):
        turned = apply(jax.vmap(game.observe)(jax.tree.map(lambda leaf: leaf[:, symmetry], images)))
        back = np.take_along_axis(np.asarray(turned.prior_logits), np.asarray(permutation[:, symmetry]), axis=1)
        np.testing.assert_allclose(back, plain.prior_logits, rtol=0, atol=1e-5)
        np.testing.assert_allclose(turned.value, plain.value, rtol=0, atol=1e-6)
    assert len(permutation[0]) > 1
    # It tells positions apart, and actions that no symmetry makes equal.
    assert len(np.unique(np.round(np.asarray(plain.value), 6))) > 3
    assert (np.asarray(plain.prior_logits).std(axis=1) > 0.01).all()


def test_a_layer_has_as_many_weights_less_as_there_are_symmetries():
    game = GAMES["santorini 3x3"]
    params = EquivariantMlp(64, 2).init(jax.random.key(0), game)["params"]
    assert params["hidden_0"]["kernel"].shape == (9, 7, 8)  # squares, planes, features of a view
    assert params["hidden_1"]["kernel"].shape == (8, 8, 8)  # views, features, features
    assert params["policy"].shape == (8, 64)
    assert params["value"]["kernel"].shape == (8, 1)


@pytest.mark.parametrize(
    ("name", "options", "width", "message"),
    [
        ("santorini", {"size": 5, "workers": 2}, 32, "where its symmetries move an action depends on the position"),
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
